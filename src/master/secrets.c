#include "master/secrets.h"

#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/object_store.h"
#include "fmt/doc.h"
#include "link/layout.h"
#include "master/handover.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/upkeep/exports.h"
#include "spec/secret.h"

static struct doc *parse_client_env(struct live_run *lr)
{
	struct doc *d = NULL;

	if (!lr->row.client_env ||
	    json_parse(str_from(lr->row.client_env), lr->arena, &d, NULL) < 0)
		return NULL;
	return d;
}

/* The key of the credentials among the secrets of a run. */
#define CREDENTIALS "credentials"

static void set_credentials(struct live_run *lr)
{
	const struct doc *given = doc_table(lr->secrets, CREDENTIALS);

	lr->credentials = given ? doc_json_text(lr->arena, given) : NULL;
}

void run_secrets_take(struct live_run *lr, const struct doc *credentials)
{
	struct doc *client = parse_client_env(lr);
	struct doc *env = secrets_take(lr->job, lr->job_doc, client, lr->arena);

	lr->client_env = lr->row.client_env;
	lr->secrets = env;
	if (env) {
		lr->row.job_json = doc_json_text(lr->arena, lr->job_doc);
		lr->row.client_env = doc_json_text(lr->arena, client);
	}
	if (!credentials)
		return;
	if (!lr->secrets)
		lr->secrets = doc_new(lr->arena, DOC_TABLE);
	doc_set(lr->arena, lr->secrets, STR(CREDENTIALS), doc_copy(lr->arena, credentials));
	set_credentials(lr);
}

int run_secrets_save(const struct live_run *lr, struct err *err)
{
	CLEANUP(freep) char *path = path_join(lr->dir, LAYOUT_SECRETS);
	CLEANUP(arena_freep) struct arena *a = arena_new();

	if (!lr->secrets)
		return 0;
	return file_write_atomic(path, str_from(doc_json_text(a, lr->secrets)), 0600, true, err);
}

int run_secrets_load(struct live_run *lr, struct job *job, struct err *err)
{
	CLEANUP(freep) char *path = path_join(lr->dir, LAYOUT_SECRETS);
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *client = parse_client_env(lr);
	struct err why = {0};

	buf_init(&text, 4 * DOC_MAX_BYTES);
	if (file_read(path, &text, &why) == 0 &&
	    json_parse_limited(buf_str(&text), 4 * DOC_MAX_BYTES, DOC_MAX_NODES, lr->arena,
			       &lr->secrets, err) < 0)
		return err_wrap(err, "its secrets");
	if (why.kind != ERR_NONE && why.kind != ERR_NOT_FOUND) {
		*err = why;
		return -1;
	}
	if (!secrets_put(lr->secrets, job, client, lr->arena))
		return err_set(err, ERR_NOT_FOUND, "the values of the run's secrets are missing");
	set_credentials(lr);
	lr->client_env =
		lr->secrets && client ? doc_json_text(lr->arena, client) : lr->row.client_env;
	return 0;
}

const struct doc *run_store_credentials(const struct live_run *lr)
{
	return doc_table(doc_table(lr->secrets, CREDENTIALS), OBJECT_CREDENTIALS);
}

int run_credentials_renew(struct live_run *lr, const struct doc *credentials, struct err *err)
{
	struct doc *fresh = doc_copy(lr->arena, credentials);
	const struct doc *stores = run_store_credentials(lr);

	if (stores && !doc_get(fresh, OBJECT_CREDENTIALS)) /* what came is for the engine only */
		doc_set(lr->arena, fresh, STR(OBJECT_CREDENTIALS), doc_copy(lr->arena, stores));
	if (!lr->secrets)
		lr->secrets = doc_new(lr->arena, DOC_TABLE);
	doc_set(lr->arena, lr->secrets, STR(CREDENTIALS), fresh);
	if (run_secrets_save(lr, err) < 0)
		return -1;
	set_credentials(lr);
	return 0;
}

const char *run_credentials_read(const struct live_run *lr, struct arena *a)
{
	CLEANUP(freep) char *path = path_join(lr->dir, LAYOUT_SECRETS);
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *all = NULL;

	buf_init(&text, 4 * DOC_MAX_BYTES);
	if (file_read(path, &text, NULL) < 0 ||
	    json_parse_limited(buf_str(&text), 4 * DOC_MAX_BYTES, DOC_MAX_NODES, a, &all, NULL) < 0)
		return NULL;
	const struct doc *given = doc_table(all, CREDENTIALS);

	return given ? doc_json_text(a, given) : NULL;
}

void run_secrets_finish(const struct live_run *lr)
{
	CLEANUP(freep) char *path = path_join(lr->dir, LAYOUT_SECRETS);
	CLEANUP(arena_freep) struct arena *a = arena_new();
	bool owes = export_is_owed(lr) || handover_owes_results(lr);
	const char *credentials = owes ? run_credentials_read(lr, a) : NULL;
	const char *text =
		credentials ? arena_printf(a, "{\"" CREDENTIALS "\":%s}", credentials) : NULL;

	if (!text || file_write_atomic(path, str_from(text), 0600, true, NULL) < 0)
		unlink(path);
}
