#pragma once
/*
 * layout - every name that two of master, client, driver, agent and shim must agree on: files,
 * directories and sockets, and the version of the protocol.
 *
 * Names only: whoever joins them to a path does so itself.  What one of them alone reads and
 * writes is named where it is used.
 */

/* The version of docs/protocol.md: in HELLO, in agent.json and in the API. */
#define LINK_PROTO 1
/* What an agent asks for on the master's TLS port (ALPN); everybody else there speaks HTTP. */
#define LINK_ALPN "regatta-link/1"

/* In $REGATTA_HOME, mode 0700. */
#define LAYOUT_LOCK "lock"	       /* locked by the master; holds its pid */
#define LAYOUT_API_SOCKET "api.sock"   /* HTTP for clients of this user */
#define LAYOUT_LINK_SOCKET "link.sock" /* the link, for agents */
#define LAYOUT_MASTER_LOG "master.log" /* the master's own log */
#define LAYOUT_AGENTS_LOG "agents.log" /* that of all agents of this machine */
#define LAYOUT_BLOBS "blobs"	       /* source archives, by sha256 */
#define LAYOUT_CACHE "cache"	       /* of a host: what its nodes have fetched, by sha256 */
#define LAYOUT_RUNS "runs"	       /* one directory per run, by id */
#define LAYOUT_HOSTS "hosts"	       /* hosts that have joined, and which node has which */
#define LAYOUT_JOINED "joined" /* <name>/: what a host of this machine keeps, see host/host.h */
#define LAYOUT_TRASH "trash"   /* what was taken out of its place and is not removed yet */

/* In runs/<id>. */
#define LAYOUT_LOGS "logs"	   /* <node><stream_suffix> of every node */
#define LAYOUT_OUTPUTS "outputs"   /* <node>/ with what the node kept */
#define LAYOUT_NODE_SUFFIX ".node" /* <node>.node: the directory of a node on this machine */
#define LAYOUT_HOSTS_FILE "hosts" /* the names of isolated nodes; a copy in each node's directory */
#define LAYOUT_ATTEMPT_SUFFIX ".a%d" /* outputs/<node>.a2/: those of later attempts */

/* In a node's directory.  agent/agent.h says who writes what, and when. */
#define LAYOUT_AGENT_CONFIG "agent.json"
#define LAYOUT_AGENT_CLEAN "clean\n" /* last line of agent.json: nothing of the node is alive */
#define LAYOUT_WORK "work"
#define LAYOUT_OUTPUT "output" /* what is kept of the job, on a machine that is not the master's */
#define LAYOUT_HOSTFILE "hostfile"
#define LAYOUT_MACHINEFILE "machinefile"
#define LAYOUT_LONG_VALUES "env"  /* <variable>: values that are too long for an exec */
#define LAYOUT_NETNS "netns"	  /* holds the network namespace of an isolated node ... */
#define LAYOUT_NETNS_IFACE "eth0" /* ... and this is its interface, beside lo */

/* In an attempt's directory: the node's own for the first attempt, LAYOUT_ATTEMPT for later ones. */
#define LAYOUT_ATTEMPT "a%d"
#define LAYOUT_STATUS "status"
#define LAYOUT_METRICS_FIFO "metrics.fifo" /* where the job writes figures */
