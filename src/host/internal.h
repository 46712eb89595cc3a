#pragma once
/* The daemon's state, for the files of host/. */
#include <stdbool.h>
#include <stdint.h>
#include "base/backoff.h"
#include "base/list.h"
#include "host/host.h"
#include "link/message.h"
#include "sys/proctree.h"

struct conn;
struct dialer;
struct loop;
struct loop_timer;
struct workers;

#define HOST_MACHINE_LEN 32

struct host_daemon {
	const struct host_options *o;
	char id[33];
	char boot_id[PROC_BOOT_ID];
	char machine[HOST_MACHINE_LEN + 1]; /* "": it has none */
	char *dir;
	int lock, exit_code;
	struct loop *loop;
	/* One thread: questions are answered in the order of arrival. */
	struct workers *worker;
	struct list asks; /* struct node_ask, not answered yet */

	/* The connection. */
	char host[256]; /* of the URL */
	int port;
	struct conn *conn;
	struct dialer *dialer;
	char dial_why[240]; /* the last error of the dialer, logged only when it changes */
	bool joined;	    /* on this connection */
	bool was_joined;    /* ever */
	bool pinged, leaving;
	int64_t heard_ms, last_joined_ms;
	struct backoff backoff;
	struct loop_timer *dial, *silence, *bye, *expire;
};

/* host_link.c */
int host_link_init(struct host_daemon *h, struct err *err);
void host_link_release(struct host_daemon *h);
/* Send BYE, then call loop_stop(). */
void host_link_leave(struct host_daemon *h, const char *reason);
void host_link_send(struct host_daemon *h, enum frame_type type, const struct buf *payload);

/* host_nodes.c */
void host_nodes_ask(struct host_daemon *h, const struct message_host_ask *m);
/* The connection is lost: answers are not sent, and questions that wait are not executed. */
void host_nodes_drop(struct host_daemon *h);
/* The nodes that exist on this host. */
void host_nodes_list(struct host_daemon *h, struct arena *a, struct message_host_nodes *ret);
/* Empty the trash. */
void host_nodes_tidy(struct host_daemon *h);
/* The master was silent for KEEP_MS: remove nodes whose agent has exited. */
void host_nodes_expire(struct host_daemon *h);
