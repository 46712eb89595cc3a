#include "cli/client/submit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/rand.h"
#include "cli/client/api.h"
#include "cli/client/data_upload.h"
#include "cli/client/target.h"
#include "cli/command/job_input.h"
#include "driver/driver.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "fmt/tar.h"
#include "net/digest.h"

#define SUBMIT_MS 30000
#define MAX_BODY (4u << 20)

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

static void add_environment(struct jsonw *w, bool here)
{
	jsonw_key(w, "client_env");
	jsonw_open(w, '{');
	for (char **e = environ; *e; e++) {
		struct str rest = str_from(*e), name = str_cut(&rest, '=');
		/* A value that is not UTF-8 cannot be sent as JSON. */
		if (!rest.p || !is_passed(name, here ? passed_here : passed_anywhere) ||
		    !str_is_utf8(rest))
			continue;
		jsonw_key_str(w, name);
		jsonw_str(w, rest);
	}
	jsonw_close(w);
}

static int pack(struct api *api, const struct job *job, struct submission *s, struct err *err)
{

	if (strstr(job->source, "://"))
		return err_set(err, ERR_INVALID,
			       "source '%.100s': a run on this machine takes a file or a directory",
			       job->source);
	CLEANUP(freep) char *path = path_join(job->base_dir, job->source);
	if (access(path, R_OK) < 0)
		return err_errno(err, errno, "source '%.120s'", path);
	s->source = blob_temporary(api, err);
	if (s->source < 0)
		return -1;
	if (tar_pack(path, s->source, err) < 0)
		return err_wrap(err, "pack source '%.80s'", job->source);
	if (sha256_fd_hex(s->source, s->sha256, &s->size, err) < 0)
		return err_wrap(err, "read the packed source");
	return 0;
}

static int upload(struct api *api, const struct submission *s, struct err *err)
{
	return blob_upload(api, s->source, s->sha256, s->size, err) < 0
		       ? err_wrap(err, "upload the source")
		       : 0;
}

/* Of an engine that is asked with the caller's credentials: the facts of the plan, found here, and
 * the credentials, which the master keeps as a secret of the run. */
static int add_facts(const struct job_input *in, struct jsonw *w, struct err *err)
{
	const struct resolver *r = resolver_for(in->job->engine);
	const struct resolve_input input = {
		.base_dir = in->job->base_dir,
		.nodes = in->plan.crew.n,
		.options = plan_engine_options(in->job, in->a),
	};
	struct doc *facts, *credentials = NULL;

	if (!r || !r->at_client)
		return 0;
	if (r->resolve(&input, in->a, &facts, err) < 0 ||
	    (r->credentials && r->credentials(&input, in->a, &credentials, err) < 0))
		return -1;
	jsonw_key(w, "facts");
	jsonw_raw(w, str_from(doc_json_text(in->a, facts)));
	if (credentials) {
		jsonw_key(w, "credentials");
		jsonw_raw(w, str_from(doc_json_text(in->a, credentials)));
	}
	return 0;
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
	if (s->source >= 0)
		jsonw_kz(&w, "source_sha256", s->sha256);
	if (s->data.n > 0) {
		jsonw_key(&w, "data");
		jsonw_raw(&w, buf_str(&s->data));
	}
	add_environment(&w, here);
	if (add_facts(in, &w, err) < 0)
		return -1;
	jsonw_close(&w);
	if (job.overflow || text.overflow)
		return err_set(err, ERR_INVALID,
			       "the job and its environment are too large to send");
	/* Without its opening brace: the request id is put in front later. */
	buf_add(&s->body, text.p + 1, text.n - 1);
	return 0;
}

int submission_prepare(struct api *api, const struct job_input *in, struct submission *ret,
		       struct err *err)
{
	struct submission s = {.source = -1};

	buf_init(&s.body, MAX_BODY);
	buf_init(&s.data, MAX_BODY);
	bool shares = plan_shares_files(in->job);

	if ((in->job->source && (pack(api, in->job, &s, err) < 0 || upload(api, &s, err) < 0)) ||
	    (!shares && data_upload(api, in, &s.data, err) < 0) ||
	    make_body(in, shares && !api_remote(api), &s, err) < 0) {
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
	buf_printf(&body, "{\"request_id\":\"%s\",", request_id);
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
