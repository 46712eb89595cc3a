#pragma once
/* listen - the addresses of the master: unix sockets always, TCP if a port is free. */
struct err;
struct master;

/* Limit of API connections: half of the files that may be open; agents, logs and the store share
 * the other half. */
int listen_max_connections(void);
/* Limit of logs that are open at the same time: a quarter of the files. */
int listen_max_logs(void);
/* ERR_QUOTA, and the limit named, if the active runs, the hosts that are connected and `nodes` more
 * nodes need too many open files. */
int listen_check_files(const struct master *m, int nodes, struct err *err);
/* The same check for the active runs alone, when a master starts. */
int listen_check_files_of_found(const struct master *m, struct err *err);
/* The same check for one more host. */
int listen_check_host(const struct master *m, struct err *err);
/* listen: "ADDR:PORT", or NULL for the next free port of 127.0.0.1.  On success m->http_url and
 * the file `http` in the home have the URL; without a free port it is empty. */
int listen_http(struct master *m, const char *listen, struct err *err);
void listen_close(struct master *m);
