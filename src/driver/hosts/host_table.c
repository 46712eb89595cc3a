#include "driver/hosts/host_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "driver/hosts/internal.h"
#include "fmt/doc.h"

#define STRAY_LIMIT_MS 20000
#define STRAY_AGAIN_MS 2000
/* A host that has spoken since has not booted in between: whoever says so is another machine. */
#define BOOT_MS 10000

/* The destroy of a stray, for whose answer no thread waits. */
struct stray_ask {
	struct pending_ask pending;
	struct host_ask ask;
	char *run, *node;
	struct list in_list;
};

/* ---- connections ---- */

bool host_is_here(const struct known_host *h)
{
	return h->conn && h->ready;
}

void host_note_free(struct host_table *t, const struct known_host *h)
{
	t->freed = t->freed || (host_is_here(h) && h->held.n == 0);
}

int64_t host_heard_ms(const struct known_host *h)
{
	return h->heard ? *h->heard : h->heard_ms;
}

static struct str conn_key(const void *const *conn)
{
	return (struct str){(const char *)conn, sizeof(*conn)};
}

static struct known_host *host_on(const struct host_table *t, const void *conn)
{
	return map_get(t->conns, conn_key(&conn));
}

static void set_conn(struct host_table *t, struct known_host *h, void *conn,
		     const _Atomic int64_t *heard)
{
	const void *old = h->conn, *key = conn;

	h->heard_ms = host_heard_ms(h);
	h->heard = heard;
	if (old)
		map_del(t->conns, conn_key(&old));
	if (conn)
		map_put(t->conns, conn_key(&key), h);
	h->conn = conn;
}

/* ---- the table ---- */

struct known_host *known_host_add(struct host_table *t, const char *name)
{
	struct known_host *h = xcalloc(1, sizeof(*h));

	h->table = t;
	list_init(&h->sent);
	h->heard_ms = clock_boot_ms();
	map_put(t->hosts, str_from(name), h);
	return h;
}

static void known_host_free(struct known_host *h)
{
	while (h->held.n)
		held_remove(h, &h->held.v[0]);
	vec_release(&h->held);
	arena_free(h->arena);
	free(h->saved);
	free(h);
}

static void stray_free(struct stray_ask *s)
{
	list_remove(&s->in_list);
	list_remove(&s->pending.in_list);
	free(s->run);
	free(s->node);
	free(s);
}

struct host_table *host_table_new(const char *dir, void (*wake)(void *ctx), void *ctx)
{
	struct host_table *t = xcalloc(1, sizeof(*t));
	pthread_condattr_t attr;

	pthread_mutex_init(&t->lock, NULL);
	pthread_mutex_init(&t->disk, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->changed, &attr);
	pthread_condattr_destroy(&attr);
	t->dir = xstrdup(dir);
	t->hosts = map_new();
	t->conns = map_new();
	t->places = map_new();
	list_init(&t->waiting);
	list_init(&t->strays);
	t->wake = wake;
	t->ctx = ctx;
	return t;
}

struct host_table *host_table_free(struct host_table *t)
{
	struct list *pos, *tmp;
	struct str name;
	void *value;

	if (!t)
		return NULL;
	list_each_safe (pos, tmp, &t->strays)
		stray_free(list_item(pos, struct stray_ask, in_list));
	for (size_t i = 0; map_at(t->hosts, &i, &name, &value);)
		known_host_free(value);
	map_free(t->hosts);
	map_free(t->conns);
	map_free(t->places);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	pthread_mutex_destroy(&t->disk);
	free(t->dir);
	free(t);
	return NULL;
}

/* ---- for the loop ---- */

/* The question has its answer: wake the thread that waits for it when it was its last one, or handle
 * the answer to the destroy of a stray. */
static void ask_over(struct host_table *t, struct pending_ask *p)
{
	struct stray_ask *s = p->stray;

	p->state = ASK_OVER;
	list_remove(&p->in_list);
	if (p->call && --p->call->left == 0)
		pthread_cond_broadcast(&t->changed);
	if (!s)
		return;
	struct held_node *held = held_find(p->host, &s->ask.node);

	if (held && held->stray &&
	    (s->ask.outcome == OUTCOME_DONE || s->ask.outcome == OUTCOME_ABSENT)) {
		held_remove(p->host, held);
		host_note_free(t, p->host);
	}
	stray_free(s);
}

static void no_answer(struct host_table *t, struct pending_ask *p, enum err_kind kind,
		      const char *why)
{
	p->ask->outcome = OUTCOME_UNSURE;
	err_set(&p->ask->err, kind, "host '%s' %s", p->host->facts.name, why);
	ask_over(t, p);
}

static void end_asks(struct host_table *t, struct list *asks, const struct known_host *h)
{
	struct list *pos, *tmp;

	list_each_safe (pos, tmp, asks) {
		struct pending_ask *p = list_item(pos, struct pending_ask, in_list);

		if (p->host == h)
			no_answer(t, p, ERR_UNAVAILABLE, "left before it answered");
	}
}

/* End the questions sent on a lost connection, and those that were to be sent. */
static void disconnect(struct host_table *t, struct known_host *h)
{
	set_conn(t, h, NULL, NULL);
	h->ready = false;
	end_asks(t, &h->sent, h);
	end_asks(t, &t->waiting, h);
}

static const struct held_node *first_reserved(const struct known_host *h)
{
	for (size_t i = 0; i < h->held.n; i++)
		if (!h->held.v[i].stray)
			return &h->held.v[i];
	return NULL;
}

static bool differs(const char *a, const char *b)
{
	return a[0] && b[0] && strcmp(a, b) != 0;
}

/* The same id: the same host, or another machine with a copy of its directory. */
static int check_machine(const struct known_host *h, const struct host_facts *f, struct err *err)
{
	bool speaks = h->conn && clock_boot_ms() - host_heard_ms(h) < BOOT_MS;

	if ((differs(h->facts.machine, f->machine) && (h->conn || first_reserved(h))) ||
	    (differs(h->facts.boot_id, f->boot_id) && speaks))
		return err_set(
			err, ERR_CONFLICT,
			"this host's directory is a copy of that of '%s' on another machine (%s): "
			"start it with an empty directory (--dir) and another name (--name)",
			f->name, h->facts.address);
	return 0;
}

static int check_name(const struct known_host *h, const struct host_facts *f, struct err *err)
{
	const struct held_node *held = first_reserved(h);

	if (strcmp(h->facts.id, f->id) == 0)
		return check_machine(h, f, err);
	if (h->conn)
		return err_set(
			err, ERR_CONFLICT,
			"another host named '%s' has joined from %s: give this one another name "
			"(--name)",
			f->name, h->facts.address);
	if (held)
		return err_set(
			err, ERR_CONFLICT,
			"a host named '%s' with another directory has node '%s' of run '%s': "
			"give this one another name (--name)",
			f->name, held->node, held->run);
	return 0;
}

int host_table_join(struct host_table *t, const struct host_facts *f, void *conn,
		    const _Atomic int64_t *heard_ms, void **ret_old, struct err *err)
{
	int rc = 0;

	*ret_old = NULL;
	pthread_mutex_lock(&t->lock);
	struct known_host *h = map_get(t->hosts, str_from(f->name));

	if (h)
		rc = check_name(h, f, err);
	else
		h = known_host_add(t, f->name);
	if (rc == 0) {
		*ret_old = h->conn;
		disconnect(t, h);
		host_set_facts(h, f);
		set_conn(t, h, conn, heard_ms);
		host_store_facts(t, h);
	}
	pthread_mutex_unlock(&t->lock);
	return rc;
}

static void sweep_host(struct host_table *t, struct known_host *h)
{
	int64_t now = clock_boot_ms();

	for (size_t i = 0; i < h->held.n; i++) {
		struct held_node *held = &h->held.v[i];

		if (!held->stray || (held->asked_ms && now - held->asked_ms < STRAY_AGAIN_MS))
			continue;
		held->asked_ms = now;
		struct stray_ask *s = xcalloc(1, sizeof(*s));

		s->run = xstrdup(held->run);
		s->node = xstrdup(held->node);
		s->ask = (struct host_ask){.op = HOST_DESTROY,
					   .node = {s->run, s->node, held->incarnation},
					   .token = "",
					   .id = "",
					   .limit_ms = STRAY_LIMIT_MS,
					   .no = ++t->last_no};
		s->pending = (struct pending_ask){.ask = &s->ask, .host = h, .stray = s};
		list_append(&t->strays, &s->in_list);
		list_append(&t->waiting, &s->pending.in_list);
	}
}

void host_table_has(struct host_table *t, const void *conn, const struct host_node *nodes, size_t n)
{
	pthread_mutex_lock(&t->lock);
	struct known_host *h = host_on(t, conn);

	for (size_t i = 0; h && i < h->held.n;)
		if (h->held.v[i].stray)
			held_remove(h, &h->held.v[i]);
		else
			i++;
	for (size_t i = 0; h && i < n; i++)
		if (!held_find(h, &nodes[i]))
			held_add(h, &nodes[i], true);
	if (h) {
		h->ready = true;
		host_note_free(t, h);
		sweep_host(t, h);
	}
	pthread_mutex_unlock(&t->lock);
	t->wake(t->ctx);
}

void host_table_sweep(struct host_table *t)
{
	struct str name;
	void *value;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; map_at(t->hosts, &i, &name, &value);) {
		struct known_host *h = value;

		if (host_is_here(h))
			sweep_host(t, h);
	}
	pthread_mutex_unlock(&t->lock);
	t->wake(t->ctx);
}

bool host_table_left(struct host_table *t, const void *conn)
{
	pthread_mutex_lock(&t->lock);
	struct known_host *h = host_on(t, conn);

	if (h)
		disconnect(t, h);
	pthread_mutex_unlock(&t->lock);
	return h != NULL;
}

bool host_table_send(struct host_table *t, int most,
		     void (*send)(void *conn, const struct host_ask *ask))
{
	struct list *pos, *tmp;
	bool more = false;

	pthread_mutex_lock(&t->lock);
	list_each_safe (pos, tmp, &t->waiting) {
		struct pending_ask *p = list_item(pos, struct pending_ask, in_list);

		if (!p->host->conn)
			continue;
		more = most-- <= 0;
		if (more)
			break;
		p->state = ASK_SENT;
		list_remove(&p->in_list);
		list_append(&p->host->sent, &p->in_list);
		send(p->host->conn, p->ask);
	}
	pthread_mutex_unlock(&t->lock);
	return more;
}

bool host_table_freed(struct host_table *t)
{
	pthread_mutex_lock(&t->lock);
	bool freed = t->freed;

	t->freed = false;
	pthread_mutex_unlock(&t->lock);
	return freed;
}

void host_table_answer(struct host_table *t, const void *conn, int64_t no, enum outcome outcome,
		       const struct err *err, const char *id)
{
	struct list *pos;

	pthread_mutex_lock(&t->lock);
	struct known_host *h = host_on(t, conn);

	for (pos = h ? h->sent.next : NULL; h && pos != &h->sent; pos = pos->next) {
		struct pending_ask *p = list_item(pos, struct pending_ask, in_list);

		if (p->ask->no != no)
			continue;
		p->ask->outcome = outcome;
		p->ask->err = *err;
		snprintf(p->ask->ret_id, sizeof(p->ask->ret_id), "%s", id);
		ask_over(t, p);
		break;
	}
	pthread_mutex_unlock(&t->lock);
}

static struct doc *host_doc(const struct known_host *h, struct arena *a)
{
	const struct host_facts *f = &h->facts;
	struct doc *d = doc_new(a, DOC_TABLE), *labels = doc_new(a, DOC_TABLE);
	const char *state = !host_is_here(h) ? "gone" : h->held.n ? "busy" : "free";
	struct doc *run =
		h->held.n ? doc_new_str(a, str_from(h->held.v[0].run)) : doc_new(a, DOC_NULL);

	for (size_t i = 0; f->labels && i < f->labels->table.n; i++)
		doc_set(a, labels, arena_str(a, f->labels->table.v[i].key),
			doc_new_str(a, f->labels->table.v[i].value->s));
	doc_set(a, d, STR("name"), doc_new_str(a, str_from(f->name)));
	doc_set(a, d, STR("address"), doc_new_str(a, str_from(f->address)));
	doc_set(a, d, STR("state"), doc_new_str(a, str_from(state)));
	doc_set(a, d, STR("cpus"), doc_new_int(a, f->cpus));
	doc_set(a, d, STR("memory"), doc_new_int(a, (int64_t)f->memory));
	doc_set(a, d, STR("gpus"), doc_new_int(a, f->gpus));
	doc_set(a, d, STR("labels"), labels);
	doc_set(a, d, STR("version"), doc_new_str(a, str_from(f->version)));
	doc_set(a, d, STR("run"), run);
	return d;
}

static int by_name(const void *x, const void *y)
{
	const struct known_host *a = *(struct known_host *const *)x;
	const struct known_host *b = *(struct known_host *const *)y;

	return strcmp(a->facts.name, b->facts.name);
}

static int check_forget(const struct known_host *h, const char *name, struct err *err)
{
	const struct held_node *held = h ? first_reserved(h) : NULL;

	if (!h)
		return err_set(err, ERR_NOT_FOUND,
			       "no host '%.60s' has joined: 'regatta hosts' lists them", name);
	if (h->conn)
		return err_set(err, ERR_CONFLICT,
			       "host '%s' is connected: stop its 'regatta agent' first", name);
	if (held)
		return err_set(
			err, ERR_CONFLICT,
			"host '%s' may still have node '%s' of run '%s': wait until the run has given it "
			"up, or 'regatta kill %s'",
			name, held->node, held->run, held->run);
	return 0;
}

int host_table_forget(struct host_table *t, const char *name, struct err *err)
{
	pthread_mutex_lock(&t->lock);
	struct known_host *h = map_get(t->hosts, str_from(name));
	int rc = check_forget(h, name, err);

	if (rc == 0)
		rc = host_remove_facts(t, name, err);
	if (rc == 0) {
		map_del(t->hosts, str_from(name));
		known_host_free(h);
	}
	pthread_mutex_unlock(&t->lock);
	return rc;
}

struct doc *host_table_list(struct host_table *t, struct arena *a)
{
	struct doc *list = doc_new(a, DOC_ARRAY);
	struct str name;
	void *value;
	size_t n = 0;

	pthread_mutex_lock(&t->lock);
	struct known_host **all = arena_array(a, struct known_host *, map_count(t->hosts) + 1);

	for (size_t i = 0; map_at(t->hosts, &i, &name, &value);)
		all[n++] = value;
	qsort(all, n, sizeof(struct known_host *), by_name);
	for (size_t i = 0; i < n; i++)
		doc_append(a, list, host_doc(all[i], a));
	pthread_mutex_unlock(&t->lock);
	return list;
}

/* ---- questions ---- */

static void wait_a_while(struct host_table *t, int ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (int64_t)ms % 1000 * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&t->changed, &t->lock, &until);
}

static void put_ask(struct host_table *t, struct pending_ask *p, struct host_ask *ask,
		    struct ask_call *call)
{
	*p = (struct pending_ask){
		.ask = ask, .host = held_holder(t, &ask->node, NULL), .call = call};
	ask->no = ++t->last_no;
	list_init(&p->in_list);
	if (p->host && host_is_here(p->host)) {
		call->left++;
		list_append(&t->waiting, &p->in_list);
		return;
	}
	p->state = ASK_OVER;
	ask->outcome = OUTCOME_UNSURE;
	err_set(&ask->err, ERR_UNAVAILABLE, "host '%s' is not connected",
		p->host ? p->host->facts.name : "?");
}

void host_table_ask(struct host_table *t, struct host_ask *asks, size_t n, const struct deadline *d)
{
	struct pending_ask *v = xcalloc(n + 1, sizeof(*v));
	struct ask_call call = {0};

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < n; i++)
		put_ask(t, &v[i], &asks[i], &call);
	pthread_mutex_unlock(&t->lock);
	t->wake(t->ctx);
	pthread_mutex_lock(&t->lock);
	while (call.left > 0 && deadline_check(d, "", NULL) == 0)
		wait_a_while(t, deadline_slice_ms(d));
	for (size_t i = 0; i < n; i++)
		if (v[i].state != ASK_OVER)
			no_answer(t, &v[i], ERR_TIMEOUT, "did not answer in time");
	pthread_mutex_unlock(&t->lock);
	free(v);
}
