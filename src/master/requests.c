#include "master/requests.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/hex.h"
#include "base/vec.h"
#include "driver/driver.h"
#include "master/effects.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "net/digest.h"

#define REQUEST_MAX (4u << 20)
#define HEX_BYTES (2 * SHA256_BYTES + 1)

static void hash_of(struct str bytes, char out[static HEX_BYTES])
{
	uint8_t hash[SHA256_BYTES];

	sha256_of(bytes.p, bytes.n, hash);
	hex_encode(hash, sizeof(hash), out);
}

/* True for a create that was not sent before, of a driver that renders requests. */
static bool is_new(const struct live_run *lr, const struct effect *fx)
{
	const struct core_resource *res = &lr->core->resources[fx->index];
	const struct driver *d;

	if (fx->kind != FX_CREATE || res->state != RES_SENT || res->unsure)
		return false;
	d = driver_for(lr->plan.resources[fx->index].kind);
	return d && d->render;
}

static int save_batch(struct live_run *lr, const struct effect *fx, size_t n, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) struct driver_row *rows = xcalloc(n, sizeof(*rows));
	CLEANUP(freep) char(*tokens)[65] = xcalloc(n, sizeof(*tokens));
	CLEANUP(buf_release) struct buf bytes = {0};
	char hash[HEX_BYTES];

	buf_init(&bytes, REQUEST_MAX);
	for (size_t i = 0; i < n; i++)
		effect_row(lr, &fx[i], a, &rows[i], tokens[i]);
	driver_for(rows[0].kind)->render(rows, n, &bytes);
	/* too large: nothing is stored, so request_load() fails and nothing is sent */
	if (bytes.overflow)
		return 0;
	hash_of(buf_str(&bytes), hash);
	return store_request_save(lr->m->store, lr->row.no, fx->batch, buf_str(&bytes), hash, err);
}

int requests_save(struct live_run *lr, struct err *err)
{
	VEC(struct effect) new = {0};
	int rc = 0;

	for (size_t i = 0; i < lr->fx.n; i++)
		if (is_new(lr, &lr->fx.v[i]))
			*vec_push(&new) = lr->fx.v[i];
	if (new.n > 0)
		qsort_r(new.v, new.n, sizeof(*new.v), effects_compare, lr);
	for (size_t from = 0, to; from < new.n &&rc == 0; from = to) {
		for (to = from + 1; to < new.n &&effects_one_call(lr, &new.v[from], &new.v[to]);)
			to++;
		rc = save_batch(lr, &new.v[from], to - from, err);
	}
	vec_release(&new);
	return rc;
}

int request_load(struct live_run *lr, int batch, struct arena *a, const char **ret_bytes,
		 struct err *err)
{
	const char *bytes, *stored;
	char hash[HEX_BYTES];

	if (store_request_load(lr->m->store, lr->row.no, batch, a, &bytes, &stored, err) < 0) {
		/* ERR_IO, since ERR_NOT_FOUND would be taken for an answer of the provider. */
		return err_set(err, ERR_IO, "the request of batch %d is not stored: it is not sent",
			       batch);
	}
	hash_of(str_from(bytes), hash);
	if (strcmp(hash, stored) != 0)
		return err_set(err, ERR_IO,
			       "the stored request of batch %d is damaged: it is not sent", batch);
	*ret_bytes = bytes;
	return 0;
}
