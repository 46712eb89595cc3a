/*
 * The nodes of this host.  A question of the master becomes one call of the local driver, on a worker
 * thread.  The driver's row is made here; only names and the node's token come from the master.
 */
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/vec.h"
#include "driver/driver.h"
#include "fmt/jsonw.h"
#include "host/internal.h"
#include "link/layout.h"
#include "sys/worker.h"

#define SPEC_MAX (16 * 1024)
#define ANSWER_MAX (4 * 1024)
#define NAME_MAX_LEN 128
#define KIND "local.node"
#define EXPIRE_MS 60000 /* for one node */

struct node_ask {
	struct host_daemon *h;
	struct arena *arena;
	struct message_host_ask m;
	struct driver_row row;
	atomic_bool dropped; /* the connection is lost: do not send the answer */
	struct list in_list;
};

/* ---- names ---- */

/* Is this name from the master safe as a part of a path? */
static bool name_ok(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t n = strlen(name);

	return n > 0 && n <= NAME_MAX_LEN && strspn(name, allowed) == n && name[0] != '.';
}

static const char *run_dir(const struct host_daemon *h, const char *run, int incarnation,
			   struct arena *a)
{
	return arena_printf(a, "%s/" LAYOUT_RUNS "/%s/%d", h->dir, run, incarnation);
}

/* The spec for driver/local of a node whose master is on another machine. */
static const char *spec_of(const struct host_daemon *h, const char *dir, struct arena *a)
{
	struct jsonw w;
	struct buf out;

	buf_init(&out, SPEC_MAX);
	jsonw_init(&w, &out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "home", h->dir);
	jsonw_kz(&w, "run_dir", dir);
	jsonw_kz(&w, "master", h->o->url);
	jsonw_kz(&w, "pin", h->o->pin);
	jsonw_close(&w);
	const char *text = arena_strndup(a, out.p, out.n);

	buf_release(&out);
	return text;
}

/* ---- one question ---- */

static enum outcome call(const struct driver *d, enum host_op op, struct driver_row *row)
{
	switch (op) {
	case HOST_CREATE:
		return d->create(row);
	case HOST_FIND:
		return d->find(row);
	case HOST_OBSERVE:
		return d->observe(row);
	case HOST_DESTROY:
		return d->destroy(row);
	}
	return OUTCOME_UNSURE;
}

/* Remove the directories above a node that is not there, if they are empty. */
static void remove_parents(const struct node_ask *q)
{
	const char *dir = run_dir(q->h, q->m.run, q->m.incarnation, q->arena);
	CLEANUP(freep) char *above = xasprintf("%s/" LAYOUT_RUNS "/%s", q->h->dir, q->m.run);

	rmdir(dir);
	rmdir(above);
}

static void act(struct node_ask *q)
{
	const char *dir = run_dir(q->h, q->m.run, q->m.incarnation, q->arena);

	if (q->m.op == HOST_CREATE && file_mkdir_p(dir, 0700, &q->row.err) < 0)
		q->row.outcome = OUTCOME_REFUSED;
	else
		q->row.outcome = call(driver_for(KIND), q->m.op, &q->row);
}

/* On the worker. */
static void answer(void *arg, const struct deadline *deadline)
{
	struct node_ask *q = arg;

	if (q->dropped)
		return;
	q->row.deadline = deadline;
	act(q);
	if (q->row.outcome == OUTCOME_ABSENT || q->row.outcome == OUTCOME_REFUSED ||
	    q->m.op == HOST_DESTROY)
		remove_parents(q);
}

static void send_answer(const struct node_ask *q)
{
	bool failed = q->row.outcome != OUTCOME_DONE;
	struct message_host_answer m = {.no = q->m.no,
					.outcome = q->row.outcome,
					.kind = failed ? q->row.err.kind : ERR_NONE,
					.text = failed ? q->row.err.msg : "",
					.id = q->row.id};
	struct buf out;

	buf_init(&out, ANSWER_MAX);
	message_host_answer_put(&m, &out);
	host_link_send(q->h, FRAME_HOST_ANSWER, &out);
	buf_release(&out);
}

static void answered(void *arg, enum err_kind how)
{
	struct node_ask *q = arg;

	if (how == ERR_NONE && !q->dropped)
		send_answer(q);
	list_remove(&q->in_list);
	host_nodes_tidy(q->h);
	arena_free(q->arena);
	free(q);
}

static struct node_ask *new_ask(struct host_daemon *h, const struct message_host_ask *m)
{
	struct node_ask *q = xcalloc(1, sizeof(*q));
	struct arena *a = arena_new();

	q->h = h;
	q->arena = a;
	q->m = *m;
	q->m.run = arena_strdup(a, m->run);
	q->m.node = arena_strdup(a, m->node);
	q->row = (struct driver_row){
		.kind = KIND,
		.name = q->m.node,
		.run = q->m.run,
		.install = "",
		.role = "",
		.incarnation = m->incarnation,
		.token = arena_strdup(a, m->token),
		.spec = spec_of(h, run_dir(h, q->m.run, m->incarnation, a), a),
	};
	snprintf(q->row.id, sizeof(q->row.id), "%s", m->id);
	list_append(&h->asks, &q->in_list);
	return q;
}

void host_nodes_ask(struct host_daemon *h, const struct message_host_ask *m)
{
	struct node_ask *q = new_ask(h, m);

	if (name_ok(m->run) && name_ok(m->node)) {
		workers_submit(h->worker, answer, answered, q,
			       m->limit_ms < INT32_MAX ? (int)m->limit_ms : INT32_MAX);
		return;
	}
	q->row.outcome = OUTCOME_REFUSED;
	err_set(&q->row.err, ERR_INVALID, "the name of the run or node is not valid");
	answered(q, ERR_NONE);
}

void host_nodes_drop(struct host_daemon *h)
{
	struct list *pos;

	list_each (pos, &h->asks)
		list_item(pos, struct node_ask, in_list)->dropped = true;
}

/* ---- listing ---- */

typedef void each_fn(void *ctx, const char *path, const char *name);

static void each_entry(const char *dir, each_fn *fn, void *ctx)
{
	DIR *d = opendir(dir);
	const struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d))) {
		CLEANUP(freep) char *path = path_join(dir, e->d_name);

		if (name_ok(e->d_name))
			fn(ctx, path, e->d_name);
	}
	closedir(d);
}

struct node_list {
	struct arena *a;
	const char *run;
	int64_t incarnation;
	VEC(struct message_host_node) nodes;
};

static void add_node(void *ctx, const char *path, const char *name)
{
	struct node_list *l = ctx;
	struct str s = str_from(name), suffix = STR(LAYOUT_NODE_SUFFIX);

	(void)path;
	if (!str_ends(s, suffix))
		return;
	*vec_push(&l->nodes) = (struct message_host_node){
		.run = l->run,
		.node = arena_strndup(l->a, s.p, s.n - suffix.n),
		.incarnation = (int)l->incarnation,
	};
}

static void add_incarnation(void *ctx, const char *path, const char *name)
{
	struct node_list *l = ctx;

	if (str_to_i64(str_from(name), &l->incarnation) && l->incarnation >= 0 &&
	    l->incarnation <= INT32_MAX)
		each_entry(path, add_node, l);
}

static void add_run(void *ctx, const char *path, const char *name)
{
	struct node_list *l = ctx;

	l->run = arena_strdup(l->a, name);
	each_entry(path, add_incarnation, l);
}

void host_nodes_list(struct host_daemon *h, struct arena *a, struct message_host_nodes *ret)
{
	CLEANUP(freep) char *runs = path_join(h->dir, LAYOUT_RUNS);
	struct node_list l = {.a = a};

	each_entry(runs, add_run, &l);
	ret->nnodes = l.nodes.n;
	ret->nodes = arena_array(a, struct message_host_node, l.nodes.n + 1);
	if (l.nodes.n)
		memcpy(ret->nodes, l.nodes.v, l.nodes.n * sizeof(*l.nodes.v));
	vec_release(&l.nodes);
}

/* ---- expired nodes ---- */

/* On the worker. */
static void expire(void *arg, const struct deadline *deadline)
{
	struct node_ask *q = arg;

	q->row.deadline = deadline;
	if (call(driver_for(KIND), HOST_OBSERVE, &q->row) != OUTCOME_BROKEN)
		return; /* its agent is alive, and has a lease */
	log_warn("node '%s' of run '%s' was kept for a master that did not come back: removed",
		 q->m.node, q->m.run);
	if (call(driver_for(KIND), HOST_DESTROY, &q->row) == OUTCOME_DONE)
		remove_parents(q);
}

void host_nodes_expire(struct host_daemon *h)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct message_host_nodes all;

	host_nodes_list(h, a, &all);
	for (size_t i = 0; i < all.nnodes; i++) {
		struct message_host_ask m = {.run = all.nodes[i].run,
					     .node = all.nodes[i].node,
					     .incarnation = all.nodes[i].incarnation,
					     .token = "",
					     .id = ""};
		struct node_ask *q = new_ask(h, &m);

		q->dropped = true; /* no answer is to be sent */
		workers_submit(h->worker, expire, answered, q, EXPIRE_MS);
	}
}

/* ---- the trash ---- */

static void empty_trash(void *arg, const struct deadline *deadline)
{
	struct host_daemon *h = arg;
	CLEANUP(freep) char *trash = path_join(h->dir, LAYOUT_TRASH);
	struct err err = {0};

	(void)deadline;
	if (file_exists(trash) && file_remove_tree(trash, &err) < 0)
		log_warn("%s", err.msg);
}

void host_nodes_tidy(struct host_daemon *h)
{
	if (list_empty(&h->asks))
		workers_submit(h->worker, empty_trash, NULL, h, -1);
}
