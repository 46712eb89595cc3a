#pragma once
/* listen - where the master can be reached: unix sockets always, TCP where a port is free. */
struct err;
struct master;

/* Connections of the API: at most half of the open files; agents, logs and the store have the rest. */
int listen_max_connections(void);
/* ERR_QUOTA, with the limit named: so many more nodes would need more files than may be open. */
int listen_check_files(const struct master *m, int nodes, struct err *err);
/* The same of the runs that a master finds when it starts. */
int listen_check_files_of_found(const struct master *m, struct err *err);
/* listen: "ADDR:PORT" or NULL for the next free port of 127.0.0.1.  On success m->http_url says
 * where, and so does the file `http` in the home; empty if no port was free. */
int listen_http(struct master *m, const char *listen, struct err *err);
void listen_close(struct master *m);
