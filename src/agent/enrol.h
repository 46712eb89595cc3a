#pragma once
/*
 * enrol - the beginning of an agent on a machine that does not know which node it is.
 *
 * All machines of a role may boot with the same file.  The agent asks the master once, keeps the answer
 * as agent.json of its node directory (mode 0600) and goes on as any agent; when it is started again
 * it finds that file and asks nobody.
 *
 * The file is JSON:
 *
 *	run, role, token	which machines these are; the token is that of the driver's row (driver.h)
 *	urls, pin		the masters to try in turn ("https://HOST:PORT"), and the pin of their key;
 *				or link_dir and link_name: a unix socket of this machine
 *	identity		what the provider calls this machine, or where that is found:
 *				{"from": "file", "path": PATH}, {"from": "hostname"}, or
 *				{"from": "imds"}, an instance of EC2, which knows its place as well
 *	place			optional: its place among the machines of its call
 *	dir			optional: the node directory; default: "node" beside the file
 *	cache, expires_file	optional: as in agent.json
 *	limit_ms		optional: how long it asks before it gives up; default: half an hour
 */

/* Until the agent leaves; returns the process's exit code. */
int agent_enrol_main(const char *file);
