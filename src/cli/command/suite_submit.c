/*
 * A submission is what `regatta run` would send.  The variants of the matrix share one, in which the
 * master puts the values of each: their sources and facts are the same, unless a value changes them
 * or the engine is asked with the caller's credentials.
 */
#include "cli/command/suite_submit.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/interrupt.h"
#include "cli/client/submit.h"
#include "cli/client/watch.h"
#include "cli/command/suite_input.h"
#include "driver/driver.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "spec/params.h"

#define SUBMIT_MS 60000
#define MAX_BODY (1u << 20) /* of a request, as the master takes it */

struct sending {
	struct api *api;
	const struct suite_input *in;
	struct buf submissions;
	int n;
	int shared;  /* the submission of the matrix; -1: not made yet */
	VEC(int) of; /* per variant */
};

/* Does one of the variant's values change what is uploaded or resolved? */
static bool changes_inputs(const struct suite *s, const struct suite_variant *v,
			   const struct doc *job)
{
	static const char *const keys[] = {"source", "data", "registry", "output", "engine"};
	bool params = params_in_inputs(job);

	for (int k = 0; k < s->nkeys; k++) {
		struct str rest = str_from(s->keys[k]), first = str_cut(&rest, '.');

		for (size_t i = 0; v->values[k] && i < sizeof(keys) / sizeof(keys[0]); i++)
			if (str_is(first, keys[i]) || (params && str_is(first, "params")))
				return true;
	}
	return false;
}

static bool is_shared(const struct sending *x, int variant, const struct job_input *job)
{
	const struct suite_variant *v = &x->in->suite.variants[variant];
	const struct resolver *r = resolver_for(job->job->engine);

	return v->experiment < 0 && !(r && r->at_client) &&
	       !changes_inputs(&x->in->suite, v, job->doc);
}

static int add_variant(void *ctx, int variant, struct job_input *job)
{
	struct sending *x = ctx;
	bool shared = is_shared(x, variant, job);
	struct submission s;
	struct err err;

	if (shared && x->shared >= 0) {
		*vec_push(&x->of) = x->shared;
		return 0;
	}
	job->no_diff = x->n > 0; /* once in a request is enough: it has a limit */
	if (submission_prepare(x->api, job, &s, &err) < 0)
		return api_fail(x->api, &err);
	if (x->n)
		buf_addc(&x->submissions, ',');
	buf_addc(&x->submissions, '{');
	buf_addstr(&x->submissions, buf_str(&s.body));
	submission_release(&s);
	if (shared)
		x->shared = x->n;
	*vec_push(&x->of) = x->n++;
	return 0;
}

static void make_body(const struct sending *x, const char *request_id, const char *client,
		      struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "request_id", request_id);
	/* The own master is here, too: the client matters only if the suite gets a master elsewhere. */
	if (client)
		jsonw_kz(&w, api_remote(x->api) ? "client" : "client_away", client);
	jsonw_kz(&w, "base_dir", x->in->base_dir);
	jsonw_key(&w, "suite");
	jsonw_raw(&w, str_from(doc_json_text(x->in->a, x->in->doc)));
	jsonw_key(&w, "auto");
	jsonw_open(&w, '{');
	jsonw_kint(&w, "nodes", x->in->nodes);
	jsonw_kbool(&w, "here", x->in->here);
	jsonw_close(&w);
	jsonw_key(&w, "of");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < x->of.n; i++)
		jsonw_int(&w, x->of.v[i]);
	jsonw_close(&w);
	jsonw_key(&w, "submissions");
	jsonw_open(&w, '[');
	jsonw_raw(&w, buf_str(&x->submissions));
	jsonw_close(&w);
	jsonw_close(&w);
}

int suite_send(struct api *api, const char *path, struct str body, int *ret_signals,
	       struct buf *ret_json, struct err *err)
{
	CLEANUP(close_fdp) int signals = watch_signals(err);

	if (signals < 0 || interrupt_begin(err) < 0)
		return -1;
	api->stop = interrupt_flag;
	int rc = api_call(api, "POST", path, body, SUBMIT_MS, ret_json, err);
	interrupt_end();
	api->stop = NULL;
	if (rc < 0)
		return err->kind != ERR_CANCELLED
			       ? -1
			       : err_set(err, ERR_CANCELLED,
					 "interrupted before the master answered: the suite may "
					 "still start; 'regatta suite list' shows it, 'regatta suite "
					 "cancel SUITE' ends it");
	*ret_signals = TAKE_FD(signals);
	return 0;
}

int suite_submit(struct api *api, const struct cli_call *c, struct suite_input *in,
		 const char *client, int *ret_signals, struct buf *ret_json)
{
	struct sending x = {.api = api, .in = in, .shared = -1};
	CLEANUP(buf_release) struct buf body = {0};
	char request[REQUEST_ID_SIZE];
	struct err err;

	buf_init(&body, MAX_BODY);
	buf_init(&x.submissions, MAX_BODY);
	request_id_new(request);
	int code = suite_input_each(in, c, add_variant, &x);

	if (code == 0) {
		make_body(&x, request, client, &body);
		if (x.submissions.overflow || body.overflow)
			code = cli_fail(
				(err_set(&err, ERR_INVALID,
					 "the suite is too large to send: its jobs and values "
					 "take more than %u KiB",
					 MAX_BODY / 1024),
				 &err));
		else if (suite_send(api, "/api/v1/suites", buf_str(&body), ret_signals, ret_json,
				    &err) < 0)
			code = api_fail(api, &err);
	}
	buf_release(&x.submissions);
	vec_release(&x.of);
	return code;
}
