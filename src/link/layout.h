#pragma once
/*
 * layout - every name that two of master, client, driver, agent and shim must agree on: files,
 * directories and sockets, and the version of the protocol.
 *
 * Names only; the users build the paths.  A file that only one program reads and writes is named
 * where it is used.
 */
#include "base/str.h"

/* The version of docs/protocol.md: in HELLO, in agent.json and in the API. */
#define LINK_PROTO 1
/* The ALPN protocol that agents and hosts ask for on the master's TLS port; all others get HTTP. */
#define LINK_ALPN "regatta-link/1"

/* In $REGATTA_HOME, mode 0700. */
#define LAYOUT_LOCK "lock"	       /* locked by the master; holds its pid */
#define LAYOUT_API_SOCKET "api.sock"   /* HTTP for clients of this user */
#define LAYOUT_LINK_SOCKET "link.sock" /* the link, for agents */
#define LAYOUT_MASTER_LOG "master.log" /* the master's own log */
#define LAYOUT_AGENTS_LOG "agents.log" /* the log of all agents on this machine */
#define LAYOUT_CONTEXTS "contexts"     /* masters that commands can name */
#define LAYOUT_BLOBS "blobs"	       /* source archives, by sha256 */
#define LAYOUT_CACHE "cache"	       /* on a host: files fetched for its nodes, by sha256 */
#define LAYOUT_RUNS "runs"	       /* one directory per run, by id */
#define LAYOUT_SUITES "suites"	       /* one directory per suite, by id */
#define LAYOUT_HOSTS "hosts"	       /* hosts that have joined, and the nodes placed on each */
#define LAYOUT_JOINED                                                                              \
	"joined" /* <name>/: state of a host that runs on this machine, see host/host.h */
#define LAYOUT_TRASH "trash" /* directories moved here to be removed */

/* In runs/<id>. */
#define LAYOUT_LOGS "logs"		  /* <node><stream_suffix> of every node */
#define LAYOUT_OUTPUTS "outputs"	  /* <node>/ with the files kept of the node */
#define LAYOUT_OUTPUT_LIST "outputs.json" /* these files, with sizes and sums; written at the end */
#define LAYOUT_SOURCE_STATE "source.json" /* the git commit of the source */
#define LAYOUT_SOURCE_DIFF "source.diff"  /* what of it was not committed */
#define LAYOUT_STALL "stall"		  /* <node>.txt: what the hang watchdog found last */
#define LAYOUT_SECRETS                                                                             \
	"secrets.json" /* values that no other file has; removed when the run has ended */
#define LAYOUT_METRICS_SENT "metrics-sent.json" /* how many samples went to the sink of metrics */
#define LAYOUT_RESULTS "results.json"		/* where the directory was copied to, once it was */
#define LAYOUT_FETCHED                                                                             \
	".fetched" /* the copy of a run that was handed over, before it is taken in */
#define LAYOUT_NODE_SUFFIX ".node" /* <node>.node: the directory of a node on this machine */
#define LAYOUT_HOSTS_FILE "hosts" /* the names of isolated nodes; a copy in each node's directory */
#define LAYOUT_ATTEMPT_SUFFIX ".a%d" /* outputs/<node>.a2/: files kept of later attempts */

/* In a node's directory.  agent/agent.h says who writes what, and when. */
#define LAYOUT_AGENT_CONFIG "agent.json"
#define LAYOUT_AGENT_CLEAN "clean\n" /* last line of agent.json: nothing of the node is alive */
#define LAYOUT_WORK "work"
#define LAYOUT_OUTPUT "output" /* files kept of the job, on machines other than the master's */
#define LAYOUT_HOSTFILE "hostfile"
#define LAYOUT_MACHINEFILE "machinefile"
#define LAYOUT_GPUS "gpus" /* in a node's directory: the GPUs that are its own */
#define LAYOUT_RSH                                                                                 \
	"regatta-rsh" /* a link to the program: how the job starts commands on other nodes */
#define LAYOUT_TEE "regatta-tee" /* a link to the program: starts a rank and copies its output */
#define LAYOUT_TMP "tmp"	 /* temporary files of a job with a launcher and of its daemons */
#define LAYOUT_TAIL "tail"	 /* there if the end of the job is reported with its last words */
#define LAYOUT_RSH_SOCKET "rsh.sock" /* where that program finds the agent */
#define LAYOUT_INSIDE                                                                              \
	"regatta-inside"     /* of a node that runs containers: the program, for use in them */
#define LAYOUT_SETUP "setup" /* what is run before the job: an attempt's directory for each step */
#define LAYOUT_PREEMPT "preempt"     /* there if the machine will be taken: the Unix time */
#define LAYOUT_LONG_VALUES "env"     /* <variable>: values too long for execve */
#define LAYOUT_CONTAINER "container" /* of a node that runs containers: see sys/container.h */
#define LAYOUT_NETNS "netns"	     /* bind mount of an isolated node's network namespace */
#define LAYOUT_NETNS_IFACE "eth0"    /* the interface in that namespace, beside lo */

/* In an attempt's directory: the node's own for the first attempt, LAYOUT_ATTEMPT for later ones.
 * LAYOUT_CONTAINER is there too if the job runs in a container. */
#define LAYOUT_ATTEMPT "a%d"
#define LAYOUT_PROCESS "p%d" /* in the names of logs: one of several processes of a node */
#define LAYOUT_STATUS "status"
#define LAYOUT_METRICS_FIFO "metrics.fifo" /* the job writes metrics to it */

/* The number of the attempt whose directory has this name (LAYOUT_ATTEMPT); 0: none has.  A node that was replaced has
 * those of its earlier attempts on another machine. */
static inline int layout_attempt_no(const char *name)
{
	int64_t no;

	return name[0] == 'a' && str_to_i64(str_from(name + 1), &no) && no > 1 && no <= INT32_MAX
		       ? (int)no
		       : 0;
}

/* Runs of a suite that another run carries (master/suite_carrier.h) are called <carrier>-<entry>; other ids end with
 * letters, or with -r and a number.  All may be labels of the DNS.  The id of the carrier; empty: the run is of no such
 * suite. */
static inline struct str layout_carrier_of(struct str run)
{
	size_t n = run.n;

	while (n > 0 && run.p[n - 1] >= '0' && run.p[n - 1] <= '9')
		n--;
	if (n == run.n || n < 2 || run.p[n - 1] != '-')
		return (struct str){0};
	return (struct str){run.p, n - 1};
}

/* The carrier of a suite has its id; one that is made when it is resumed <suite>-r<number>.  The id of the suite. */
static inline struct str layout_suite_of(struct str carrier)
{
	size_t n = carrier.n;

	while (n > 0 && carrier.p[n - 1] >= '0' && carrier.p[n - 1] <= '9')
		n--;
	if (n == carrier.n || n < 3 || carrier.p[n - 1] != 'r' || carrier.p[n - 2] != '-')
		return carrier;
	return (struct str){carrier.p, n - 2};
}
