#include "cli/client/submit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/rand.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/data_upload.h"
#include "cli/client/git_source.h"
#include "cli/client/git_state.h"
#include "cli/client/target.h"
#include "cli/command/job_input.h"
#include "driver/driver.h"
#include "driver/object_store.h"
#include "driver/registry_login.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "fmt/tar.h"
#include "net/digest.h"
#include "spec/variable.h"

#define SUBMIT_MS 30000
#define RESULTS_MS 20000	    /* for a look at their bucket */
#define MAX_BODY ((1u << 20) - 128) /* of a request, as the master takes it, and room for its id */

extern char **environ;

/* The variables of the user's environment by which a job on this machine finds its programs and libraries; a name that
 * ends with '*' is a prefix. */
static const char *const passed_here[] = {
	"PATH",	  "HOME",     "USER", "LOGNAME",	 "SHELL",      "LANG",	      "LC_*",
	"TZ",	  "TMPDIR",   "TERM", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_*",
	"CUDA_*", "NVIDIA_*", NULL,
};

/* Variables that mean the same on every machine. */
static const char *const passed_anywhere[] = {"LANG", "LC_*", "TZ", "TERM", NULL};

static bool is_passed(struct str name, const char *const *passed)
{
	for (size_t i = 0; passed[i]; i++) {
		struct str p = str_from(passed[i]);
		bool prefix = p.p[p.n - 1] == '*';
		if (prefix ? str_starts(name, (struct str){p.p, p.n - 1}) : str_eq(name, p))
			return true;
	}
	return false;
}

/* `pass` of the job.  What regatta sets itself is not the shell's to say. */
static bool is_asked_for(const struct job *job, struct str name)
{
	return variable_name_ok(name) && !str_starts(name, STR("REGATTA_")) &&
	       variable_matches(&job->pass, name);
}

static int add_environment(const struct job *job, struct jsonw *w, bool here, struct err *err)
{
	const char *password = job->registry.password_env;

	if (password && !getenv(password))
		return err_set(err, ERR_INVALID,
			       "registry: the variable %s is not set: it must have the password",
			       password);
	jsonw_key(w, "client_env");
	jsonw_open(w, '{');
	for (char **e = environ; *e; e++) {
		struct str rest = str_from(*e), name = str_cut(&rest, '=');
		/* A value that is not UTF-8 cannot be sent as JSON. */
		bool wanted = is_passed(name, here ? passed_here : passed_anywhere) ||
			      is_asked_for(job, name) || (password && str_is(name, password));

		if (!rest.p || !wanted || !str_is_utf8(rest))
			continue;
		jsonw_key_str(w, name);
		jsonw_str(w, rest);
	}
	jsonw_close(w);
	return 0;
}

/* The directory of a source that git has fetched, to be removed; the job is sent with the commit in
 * place of the branch or tag. */
static int fetch_git(struct api *api, const struct job_input *in, char **ret_dir, struct err *err)
{
	const char *pinned;

	if (git_source_fetch(in->job->source, api->target->home, in->a, ret_dir, &pinned, err) < 0)
		return err_wrap(err, "source '%.80s'", in->job->source);
	doc_set(in->a, in->doc, STR("source"), doc_new_str(in->a, str_from(pinned)));
	return 0;
}

/* What git has fetched is what is tracked: nothing of it is left out. */
static int pack_tree(const char *path, bool fetched, int fd, struct err *err)
{
	size_t left_out = 0;

	if (fetched)
		return tar_pack(path, fd, err);
	if (tar_pack_source(path, fd, &left_out, err) < 0)
		return -1;
	if (left_out)
		cli_say("source: %zu name%s left out, by .gitignore and .regattaignore", left_out,
			left_out == 1 ? " is" : "s are");
	return 0;
}

static int pack_path(struct api *api, const char *source, const char *path, struct submission *s,
		     struct err *err)
{
	if (access(path, R_OK) < 0)
		return err_errno(err, errno, "source '%.120s'", path);
	s->source = blob_temporary(api, err);
	if (s->source < 0)
		return -1;
	if (pack_tree(path, input_is_git(source), s->source, err) < 0)
		return err_wrap(err, "pack source '%.80s'", source);
	if (sha256_fd_hex(s->source, s->sha256, &s->size, err) < 0)
		return err_wrap(err, "read the packed source");
	return 0;
}

static int pack(struct api *api, const struct job_input *in, struct submission *s, struct err *err)
{
	CLEANUP(freep) char *path = NULL;

	if (!input_is_git(in->job->source)) {
		path = path_join(in->job->base_dir, in->job->source);
		return pack_path(api, in->job->source, path, s, err);
	}
	if (fetch_git(api, in, &path, err) < 0)
		return -1;
	int rc = pack_path(api, in->job->source, path, s, err);

	(void)file_remove_tree(path, NULL);
	return rc;
}

static int upload(struct api *api, const struct submission *s, struct err *err)
{
	return blob_upload(api, s->source, s->sha256, s->size, err) < 0
		       ? err_wrap(err, "upload the source")
		       : 0;
}

static void add_credentials(const struct job_input *in, struct jsonw *w, const struct doc *given)
{
	if (!given)
		return;
	jsonw_key(w, "credentials");
	jsonw_raw(w, str_from(doc_json_text(in->a, given)));
}

/* The first input that is in a store of objects; NULL: none. */
static const char *stored_input(const struct job_input *in)
{
	const struct data_spec *v;
	size_t n = job_data(in->job, in->a, &v);

	for (size_t i = 0; i < n; i++)
		if (object_url_is(v[i].src))
			return v[i].src;
	return NULL;
}

/* A bucket that is missing, somebody else's or in another region will not get the results later either.  One that
 * cannot be reached from here may be reached by the master. */
static int check_results(const struct job_input *in, const struct doc *credentials, struct err *err)
{
	static char *looked_at; /* most variants of a suite have the same */
	CLEANUP(object_store_freep) struct object_store *st = NULL;
	const struct deadline d = deadline_in(RESULTS_MS, NULL);
	const struct object_access who = {.credentials = doc_json_text(in->a, credentials),
					  .own = true};

	if (looked_at && strcmp(looked_at, in->job->output.s3) == 0)
		return 0;
	free(looked_at);
	looked_at = xstrdup(in->job->output.s3);
	if (object_store_open(in->job->output.s3, &who, &d, &st, err) == 0 &&
	    object_store_check(st, &d, err) == 0)
		return 0;
	if (err->kind != ERR_UNAVAILABLE && err->kind != ERR_TIMEOUT)
		return err_wrap(err, "output.s3");
	cli_say("warning: output.s3 could not be looked at: %s", err->msg);
	return 0;
}

/* For the master that copies the results, signs URLs of inputs, and asks for a login of a registry.  *ret stays as it
 * is if the job has nothing of that. */
static int store_credentials(const struct job_input *in, struct doc **ret, struct err *err)
{
	const char *results = in->job->output.s3, *url = results ? results : stored_input(in);
	const char *login = in->job->registry.login;

	if (!url && !login)
		return 0;
	if (!url && registry_login_credentials(login, in->a, ret, err) < 0)
		return err_wrap(err, "registry \"%s\"", login);
	if (url && object_credentials(url, NULL, in->a, ret, err) < 0)
		return err_wrap(err, "%.80s", results ? "output.s3" : url);
	return results ? check_results(in, *ret, err) : 0;
}

/* Adds to an error of a provider that nothing exists, and, unless it says by itself what to change in the
 * job, where to look.  At most 60 bytes, so that a request id at the end of the error stays. */
static int nothing_made(const char *engine, struct err *err)
{
	if (err->kind == ERR_INVALID || err->kind == ERR_CAPACITY)
		return err_set(err, err->kind, "%.180s; nothing was made", err->msg);
	return err_set(err, err->kind, "%.180s; nothing was made; see 'regatta doctor --engine %s'",
		       err->msg, engine);
}

/* Of an engine that is asked with the caller's credentials: the facts of the plan, found here, and
 * the credentials, which the master keeps as a secret of the run. */
static int add_facts(const struct job_input *in, uint64_t fetched_bytes, struct jsonw *w,
		     struct err *err)
{
	const struct resolver *r = resolver_for(in->job->engine);
	const struct resolve_input input = {
		.base_dir = in->job->base_dir,
		.nodes = in->plan.crew.n,
		.fetched_bytes = fetched_bytes,
		.options = plan_engine_options(in->job, in->a),
	};
	struct doc *facts, *credentials = NULL, *stores = NULL;

	if (!(r && r->has_stores) && store_credentials(in, &stores, err) < 0)
		return -1;
	if (!r || !r->at_client) {
		add_credentials(in, w, stores);
		return 0;
	}
	if (r->resolve(&input, in->a, &facts, err) < 0 ||
	    (r->credentials && r->credentials(&input, in->a, &credentials, err) < 0))
		return nothing_made(in->job->engine, err);
	for (size_t i = 0; in->facts && i < in->facts->table.n; i++)
		doc_set(in->a, facts, in->facts->table.v[i].key, in->facts->table.v[i].value);
	jsonw_key(w, "facts");
	jsonw_raw(w, str_from(doc_json_text(in->a, facts)));
	if (stores && !credentials)
		credentials = doc_new(in->a, DOC_TABLE);
	if (stores)
		doc_set(in->a, credentials, STR(OBJECT_CREDENTIALS), stores);
	add_credentials(in, w, credentials);
	return 0;
}

/* The git commit of the source, or of the directory that the job runs in.  It never keeps a run from
 * its start. */
static void add_source_state(const struct job_input *in, struct jsonw *w)
{
	CLEANUP(git_state_release) struct git_state g = {0};
	const char *source = in->job->source;
	struct err err;

	if (in->source_state) {
		jsonw_key(w, "source");
		jsonw_raw(w, str_from(doc_json_text(in->a, in->source_state)));
		return;
	}
	if (in->source_sha256 || (source && (!input_is_packed(source) || input_is_git(source))))
		return;
	CLEANUP(freep) char *dir = path_join(in->job->base_dir, source ? source : ".");
	if (git_state_read(dir, in->a, &g, &err) < 0)
		cli_say("warning: %s", err.msg);
	if (!g.revision)
		return;
	jsonw_key(w, "source");
	git_state_to_json(&g, !in->no_diff, w);
}

/* The body of the request, without the request id. */
static int make_body(const struct job_input *in, bool here, struct submission *s, struct err *err)
{
	CLEANUP(buf_release) struct buf job, text;
	struct jsonw w;

	buf_init(&job, MAX_BODY);
	buf_init(&text, MAX_BODY);
	doc_to_json(in->doc, &job);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_key(&w, "job");
	jsonw_raw(&w, buf_str(&job));
	jsonw_kz(&w, "base_dir", in->job->base_dir);
	jsonw_kz(&w, "path", in->path);
	if (s->sha256[0])
		jsonw_kz(&w, "source_sha256", s->sha256);
	if (in->tags) {
		jsonw_key(&w, "tags");
		jsonw_raw(&w, str_from(doc_json_text(in->a, in->tags)));
	}
	if (s->data.n > 0) {
		jsonw_key(&w, "data");
		jsonw_raw(&w, buf_str(&s->data));
	}
	add_source_state(in, &w);
	if (add_environment(in->job, &w, here, err) < 0 ||
	    add_facts(in, s->fetched_bytes, &w, err) < 0)
		return -1;
	jsonw_close(&w);
	if (job.overflow || text.overflow)
		return err_set(err, ERR_INVALID,
			       "the job and its environment are too large to send: they take more "
			       "than %u KiB",
			       MAX_BODY / 1024 + 1);
	/* Without its opening brace: the request id is put in front later. */
	buf_add(&s->body, text.p + 1, text.n - 1);
	return 0;
}

/* The archive of an earlier run, which the master has. */
static int use_archive(struct api *api, const char *sha256, struct submission *s, struct err *err)
{
	char path[128];

	snprintf(path, sizeof(path), "/api/v1/blobs/%s", sha256);
	if (api_call(api, "HEAD", path, (struct str){0}, SUBMIT_MS, NULL, err) < 0)
		return err->kind != ERR_NOT_FOUND
			       ? -1
			       : err_set(err, ERR_NOT_FOUND,
					 "the master has the source of that run no more: --set source=DIR "
					 "sends another");
	snprintf(s->sha256, sizeof(s->sha256), "%s", sha256);
	return 0;
}

int submission_prepare(struct api *api, const struct job_input *in, struct submission *ret,
		       struct err *err)
{
	struct submission s = {.source = -1};

	buf_init(&s.body, MAX_BODY);
	buf_init(&s.data, MAX_BODY);
	bool here = plan_shares_files(in->job) && !api_remote(api);
	bool packs = in->job->source && input_is_packed(in->job->source) && !in->source_sha256;

	if ((in->source_sha256 && use_archive(api, in->source_sha256, &s, err) < 0) ||
	    (packs && (pack(api, in, &s, err) < 0 || upload(api, &s, err) < 0)) ||
	    data_upload(api, in, &s.data, &s.fetched_bytes, err) < 0 ||
	    make_body(in, here, &s, err) < 0) {
		submission_release(&s);
		return -1;
	}
	*ret = s;
	return 0;
}

void submission_drop_source(struct submission *s)
{
	if (s->source >= 0)
		close(s->source);
	s->source = -1;
}

void submission_release(struct submission *s)
{
	buf_release(&s->body);
	buf_release(&s->data);
	submission_drop_source(s);
}

void request_id_new(char out[static REQUEST_ID_SIZE])
{
	uint8_t bits[16];

	rand_bytes(bits, sizeof(bits));
	hex_encode(bits, sizeof(bits), out);
}

int submission_send(struct api *api, const struct submission *s, const char *request_id,
		    struct buf *ret_json, struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};

	buf_init(&body, MAX_BODY + 64);
	buf_printf(&body, "{\"request_id\":\"%s\",%s", request_id,
		   s->no_wait ? "\"no_wait\":true," : "");
	buf_addstr(&body, buf_str(&s->body));
	if (api_call(api, "POST", "/api/v1/runs", buf_str(&body), SUBMIT_MS, ret_json, err) == 0)
		return 0;
	/* The master may have removed the archive between the check and the request. */
	if (err->kind != ERR_NOT_FOUND || s->source < 0 || upload(api, s, err) < 0)
		return -1;
	return api_call(api, "POST", "/api/v1/runs", buf_str(&body), SUBMIT_MS, ret_json, err);
}

int submission_interrupted(struct err *err)
{
	if (err->kind != ERR_CANCELLED)
		return -1;
	return err_set(
		err, ERR_CANCELLED,
		"interrupted before the master answered: the run may still start; 'regatta ps' "
		"shows it, 'regatta kill RUN' ends it");
}
