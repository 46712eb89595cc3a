#pragma once
/*
 * isolation - the namespaces of a job with isolate = "netns": the node's network, a host name, and
 * mounts in which /etc/hosts names all nodes.
 *
 * The network namespace belongs to the node and outlives the job.  The mount and UTS namespaces are
 * made for each job and end with its last process.
 */
struct isolation {
	const char *netns; /* path of the network namespace; NULL: the job shares the machine's */
	const char *hosts; /* the file that the job sees as /etc/hosts */
	const char *name;  /* the job's host name */
};

/* Move the calling process into the namespaces.  -1: errno is set, and the process must exit. */
int isolation_enter(const struct isolation *i);
