#pragma once
/*
 * isolation - the namespaces of a job with isolate = "netns": the node's network, a host name, and
 * mounts in which /etc/hosts names all nodes.
 *
 * The network namespace is the node's and outlives the job.  The other two are made for each job
 * and end with its last process.
 */
struct isolation {
	const char *netns; /* where the network namespace is; NULL: the job shares the machine's */
	const char *hosts; /* the file that it sees as /etc/hosts */
	const char *name;  /* its host name */
};

/* Of the calling process.  -1: errno says why; then it must not go on. */
int isolation_enter(const struct isolation *i);
