/*
 * The files of the host table: known/NAME.json with the facts of each host, and held.json with all
 * reservations.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/hosts/internal.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

#define FACTS_MAX (16 * 1024)
#define HELD_MAX (64 * 1024 * 1024)
#define HELD_MAX_VALUES 1000000
#define HELD_FILE "held.json"
#define KNOWN_DIR "known"
#define SUFFIX ".json"

static const char *copy(struct arena *a, const char *text)
{
	return arena_strdup(a, text ? text : "");
}

void host_set_facts(struct known_host *h, const struct host_facts *f)
{
	struct arena *a = arena_new();
	struct doc *labels = doc_new(a, DOC_TABLE);

	for (size_t i = 0; f->labels && i < f->labels->table.n; i++) {
		const struct doc_entry *e = &f->labels->table.v[i];

		if (e->value->type == DOC_STRING)
			doc_set(a, labels, arena_str(a, e->key), doc_new_str(a, e->value->s));
	}
	h->facts = (struct host_facts){.name = copy(a, f->name),
				       .id = copy(a, f->id),
				       .address = copy(a, f->address),
				       .version = copy(a, f->version),
				       .machine = copy(a, f->machine),
				       .boot_id = copy(a, f->boot_id),
				       .cpus = f->cpus,
				       .gpus = f->gpus,
				       .memory = f->memory,
				       .labels = labels};
	arena_free(h->arena);
	h->arena = a;
}

static char *facts_text(const struct known_host *h)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out = {0};
	const struct host_facts *f = &h->facts;
	struct jsonw w;

	buf_init(&out, FACTS_MAX);
	jsonw_init(&w, &out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "name", f->name);
	jsonw_kz(&w, "id", f->id);
	jsonw_kz(&w, "address", f->address);
	jsonw_kz(&w, "version", f->version);
	jsonw_kz(&w, "machine", f->machine);
	jsonw_kint(&w, "cpus", f->cpus);
	jsonw_kint(&w, "gpus", f->gpus);
	jsonw_kint(&w, "memory", (int64_t)f->memory);
	jsonw_key(&w, "labels");
	jsonw_raw(&w, str_from(doc_json_text(a, f->labels)));
	jsonw_close(&w);
	buf_addc(&out, '\n');
	return xasprintf("%.*s", STR_ARG(buf_str(&out)));
}

/* The facts are only shown until the host joins again and sends them; errors are ignored. */
void host_store_facts(struct host_table *t, struct known_host *h)
{
	CLEANUP(freep) char *dir = path_join(t->dir, KNOWN_DIR);
	CLEANUP(freep) char *path = xasprintf("%s/%s" SUFFIX, dir, h->facts.name);
	char *text = facts_text(h);

	if (h->saved && strcmp(h->saved, text) == 0) {
		free(text);
		return;
	}
	free(h->saved);
	h->saved = text;
	if (file_mkdir_p(dir, 0700, NULL) == 0)
		file_write_atomic(path, str_from(text), 0600, false, NULL);
}

int host_remove_facts(struct host_table *t, const char *name, struct err *err)
{
	CLEANUP(freep) char *path = xasprintf("%s/" KNOWN_DIR "/%s" SUFFIX, t->dir, name);

	if (unlink(path) < 0 && errno != ENOENT)
		return err_errno(err, errno, "remove '%s'", path);
	return 0;
}

static void put_held(const struct host_table *t, struct buf *out)
{
	struct jsonw w;
	struct str name;
	void *value;

	jsonw_init(&w, out);
	jsonw_open(&w, '[');
	for (size_t i = 0; map_at(t->hosts, &i, &name, &value);) {
		const struct known_host *h = value;

		for (size_t k = 0; k < h->held.n; k++) {
			if (h->held.v[k].stray)
				continue;
			jsonw_open(&w, '{');
			jsonw_kstr(&w, "host", name);
			jsonw_kz(&w, "run", h->held.v[k].run);
			jsonw_kz(&w, "node", h->held.v[k].node);
			jsonw_kint(&w, "incarnation", h->held.v[k].incarnation);
			jsonw_close(&w);
		}
	}
	jsonw_close(&w);
	buf_addc(out, '\n');
}

int host_store_held(struct host_table *t, bool durable, struct err *err)
{
	CLEANUP(freep) char *path = path_join(t->dir, HELD_FILE);
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, HELD_MAX);
	pthread_mutex_lock(&t->lock);
	put_held(t, &text);
	pthread_mutex_unlock(&t->lock);
	if (text.overflow)
		return err_set(err, ERR_CAPACITY, "too many reservations of hosts");
	if (file_mkdir_p(t->dir, 0700, err) < 0 ||
	    file_write_atomic(path, buf_str(&text), 0600, durable, err) < 0)
		return err_wrap(err, "store the reservations of hosts");
	return 0;
}

/* ---- loading ---- */

static int read_json(const char *path, size_t max, struct arena *a, struct doc **ret,
		     struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, max);
	if (file_read(path, &text, err) < 0 ||
	    json_parse_limited(buf_str(&text), max, HELD_MAX_VALUES, a, ret, err) < 0)
		return err_wrap(err, "%s", path);
	return 0;
}

static int load_known(struct host_table *t, const char *path, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d;

	if (read_json(path, FACTS_MAX, a, &d, err) < 0)
		return -1;
	struct host_facts f = {.name = doc_str(d, "name", STR("")).p,
			       .id = doc_str(d, "id", STR("")).p,
			       .address = doc_str(d, "address", STR("")).p,
			       .version = doc_str(d, "version", STR("")).p,
			       .machine = doc_str(d, "machine", STR("")).p,
			       .boot_id = "", /* it may have booted since */
			       .cpus = doc_int(d, "cpus", 0),
			       .gpus = doc_int(d, "gpus", 0),
			       .memory = (uint64_t)doc_int(d, "memory", 0),
			       .labels = doc_table(d, "labels")};
	struct known_host *h = known_host_add(t, f.name);

	host_set_facts(h, &f);
	h->saved = facts_text(h);
	return 0;
}

static int load_all_known(struct host_table *t, struct err *err)
{
	CLEANUP(freep) char *dir = path_join(t->dir, KNOWN_DIR);
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = 0;

	if (!d)
		return errno == ENOENT ? 0 : err_errno(err, errno, "open '%s'", dir);
	while (rc == 0 && (e = readdir(d))) {
		CLEANUP(freep) char *path = path_join(dir, e->d_name);

		if (e->d_name[0] != '.' && str_ends(str_from(e->d_name), STR(SUFFIX)))
			rc = load_known(t, path, err);
	}
	closedir(d);
	return rc;
}

/* A host whose facts were lost is added with the name in its reservations. */
static struct known_host *find_or_add(struct host_table *t, struct str name)
{
	struct known_host *h = map_get(t->hosts, name);

	if (h)
		return h;
	h = known_host_add(t, name.p);
	host_set_facts(h, &(struct host_facts){.name = name.p});
	return h;
}

int host_table_load(struct host_table *t, bool (*is_active)(void *ctx, const char *run), void *ctx,
		    struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *path = path_join(t->dir, HELD_FILE);
	struct doc *d = NULL;

	if (load_all_known(t, err) < 0)
		return -1;
	if (file_exists(path) && read_json(path, HELD_MAX, a, &d, err) < 0)
		return -1;
	for (size_t i = 0; d && d->type == DOC_ARRAY && i < d->array.n; i++) {
		const struct doc *e = d->array.v[i];
		struct str host = doc_str(e, "host", STR(""));
		struct host_node n = {doc_str(e, "run", STR("")).p, doc_str(e, "node", STR("")).p,
				      (int)doc_int(e, "incarnation", 0)};

		if (host.n && is_active(ctx, n.run))
			held_add(find_or_add(t, host), &n, false);
	}
	return 0;
}
