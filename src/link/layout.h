#pragma once
/* layout - names that two of master, driver, agent, shim and client must agree on. */

/* The version of docs/protocol.md: in HELLO, in agent.json and in the API. */
#define LINK_PROTO 1
