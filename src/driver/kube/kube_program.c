/*
 * kube.program - the program, for a pod whose image does not have it and that can fetch it from nowhere: ConfigMaps of
 * at most PART bytes each, which the pod's shell puts together (kube_master.c).
 *
 * The object of the row says how many bytes there are, and is made last: where it is, all parts are.
 */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hex.h"
#include "driver/kube/kube_kind.h"
#include "driver/kube/object.h"
#include "driver/own_program.h"
#include "fmt/doc.h"

#define NAME "<run>-regatta-program" /* as plan/kubernetes_master.c mounts it */
#define PART 1000000

static int64_t size_of(const struct kube_work *w)
{
	int64_t n = 0;

	return str_to_i64(doc_str(doc_table(w->object, "data"), "size", STR("")), &n) ? n : 0;
}

static void put(struct arena *a, struct doc *d, const char *key, struct str value)
{
	doc_set(a, d, str_from(key), doc_new_str(a, value));
}

/* The ConfigMap of the part, without its bytes. */
static struct doc *part_object(const struct kube_work *w, int64_t index)
{
	struct doc *d = doc_new(w->a, DOC_TABLE);
	struct doc *meta = doc_copy(w->a, doc_table(w->object, "metadata"));

	put(w->a, d, "apiVersion", STR("v1"));
	put(w->a, d, "kind", STR("ConfigMap"));
	put(w->a, meta, "name", str_from(arena_printf(w->a, NAME "-%02lld", (long long)index)));
	kube_object_fill(meta, w->row->run, w->row->install, w->a);
	doc_set(w->a, d, STR("metadata"), meta);
	return d;
}

static int add_bytes(const struct kube_work *w, int fd, int64_t index, struct doc *part,
		     struct err *err)
{
	CLEANUP(freep) char *bytes = xmalloc(PART);
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *data = doc_new(w->a, DOC_TABLE);
	size_t n = 0;

	if (file_pread_full(fd, bytes, PART, index * PART, &n, err) < 0)
		return err_wrap(err, "read this program");
	buf_init(&text, 2 * PART);
	b64_encode(&text, bytes, n);
	put(w->a, data, arena_printf(w->a, "part-%02lld", (long long)index), buf_str(&text));
	doc_set(w->a, part, STR("binaryData"), data);
	doc_set(w->a, part, STR("immutable"), doc_new_bool(w->a, true));
	return 0;
}

/* The program that was planned may not be there any more: it was replaced by a newer one. */
static int open_program(const struct kube_work *w, int *ret_fd, struct err *err)
{
	struct str sum = doc_str(doc_table(w->object, "data"), "sha256", STR(""));
	uint64_t size;

	if (own_program_open(sum.p, ret_fd, &size, err) < 0)
		return err_set(err, ERR_INVALID,
			       "this master is of another version than the one that planned "
			       "the run: submit it again");
	return 0;
}

static enum outcome do_create(struct kube_work *w)
{
	CLEANUP(close_fdp) int fd = -1;
	struct err *err = &w->row->err;
	const char *uid;

	if (open_program(w, &fd, err) < 0)
		return OUTCOME_REFUSED;
	for (int64_t i = 0; i * PART < size_of(w); i++) {
		struct doc *part = part_object(w, i);

		if (add_bytes(w, fd, i, part, err) < 0)
			return OUTCOME_REFUSED;
		enum outcome o = kube_object_create(w, part, &uid);

		if (o != OUTCOME_DONE)
			return o;
	}
	return kube_kind_create(w);
}

/* DONE: none is left. */
static enum outcome remove_parts(struct kube_work *w)
{
	for (int64_t i = 0; i * PART < size_of(w); i++) {
		enum outcome o = kube_object_delete(w, part_object(w, i), "");

		if (o != OUTCOME_DONE && o != OUTCOME_ABSENT)
			return o;
	}
	return OUTCOME_DONE;
}

static enum outcome do_find(struct kube_work *w)
{
	enum outcome o = kube_kind_find(w);

	if (o != OUTCOME_ABSENT)
		return o;
	o = remove_parts(w);
	return o == OUTCOME_DONE ? OUTCOME_ABSENT : o;
}

static enum outcome do_destroy(struct kube_work *w)
{
	enum outcome o = remove_parts(w);

	return o == OUTCOME_DONE ? kube_kind_destroy(w) : o;
}

KUBE_DRIVER(kube_program_driver, "kube.program", do_create, do_find, kube_kind_observe, NULL,
	    do_destroy);
