/* A run that is handed to another master, which this test plays; and the end of that master's machine. */
#include "rig.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "core/machine_end.h"
#include "driver/aws/aws_session.h"
#include "driver/results.h"
#include "fake_s3.h"
#include "link/layout.h"
#include "master/run_json.h"
#include "master/runs.h"
#include "master/suite_carrier.h"
#include "master/suite_submission.h"
#include "master/suites.h"
#include "master/upkeep/exports.h"
#include "master/upkeep/own_machine.h"
#include "master/upkeep/reports.h"
#include "net/http_server.h"
#include "net/tls.h"
#include "sys/loop.h"

#define ARCHIVE "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TOKEN "t0ken"
#define FACTS                                                                                      \
	"\"account\":\"" FAKE_S3_ACCOUNT "\",\"region\":\"us-east-1\",\"bucket\":\"b-1\","         \
	"\"client\":\"203.0.113.7/32\",\"subnets\":[{\"zone\":\"z\",\"id\":\"s\"}]"
#define JOB "{\"name\":\"t\",\"command\":[\"true\"],\"engine\":\"aws.ec2\"}"
#define ADOPTED                                                                                    \
	",\"adopted\":[{\"name\":\"bucket\",\"id\":\"b\"},{\"name\":\"group\",\"id\":\"g\"},"      \
	"{\"name\":\"master\",\"id\":\"i\",\"age_ms\":7}]"

/* ---- the other master ---- */

/* It is asked only while this thread waits for its answer. */
struct other {
	char *dir;
	pthread_t thread;
	int stop_fd, ready_fd, port;
	struct loop *loop;
	struct http_server *http;
	char pin[TLS_PIN_SIZE];
	int put_status, post_status;
	bool has_archive, lose_answer, denied; /* lose_answer: of the next POST of a run */
	const char *run;		       /* the answer to a GET; NULL: 404 */
	const char *suite;		       /* the same of a suite */
	const char *kept;		       /* names of runs whose results it keeps */
	char log[2048];			       /* "METHOD path " of each request */
	char bodies[2][8192];		       /* of the offers */
	int offers, cancels;
};

static bool any(const void *ctx, const void *user)
{
	(void)ctx, (void)user;
	return true;
}

static void cut(void *ctx)
{
	struct other *o = ctx;

	http_server_cut(o->http, any, NULL);
}

static void gone(void *ctx)
{
	(void)ctx;
}

static void take_offer(struct other *o, struct http_exchange *x)
{
	struct str body = http_request(x)->body;

	snprintf(o->bodies[o->offers % 2], sizeof(o->bodies[0]), "%.*s", STR_ARG(body));
	o->offers++;
	if (o->lose_answer) {
		o->lose_answer = false;
		http_stream_begin(x, 201, "application/json", gone, o);
		http_stream_write(x, STR("{"));
		loop_soon(o->loop, cut, o);
		return;
	}
	http_reply(x, o->post_status, "application/json",
		   o->post_status < 300 ? STR("{}") : STR("{\"error\":{\"message\":\"no\"}}"));
}

/* A complete copy without files. */
static void serve_results(struct other *o, struct http_exchange *x)
{
	struct str run = http_request(x)->path;
	char name[64], index[128];

	run.p += strlen("/api/v1/runs/");
	run.n -= strlen("/api/v1/runs/") + strlen("/results");
	snprintf(name, sizeof(name), " %.*s ", STR_ARG(run));
	snprintf(index, sizeof(index), "{\"version\":1,\"run\":\"%.*s\",\"files\":[]}",
		 STR_ARG(run));
	bool kept = o->kept && strstr(o->kept, name);

	http_reply(x, kept ? 200 : 404, "application/json",
		   str_from(kept ? index : "{\"error\":{\"message\":\"none\"}}"));
}

static void on_request(void *ctx, struct http_exchange *x)
{
	struct other *o = ctx;
	const struct http_request *q = http_request(x);
	size_t n = strlen(o->log);

	snprintf(o->log + n, sizeof(o->log) - n, "%.*s %.*s ", STR_ARG(q->method),
		 STR_ARG(q->path));
	if (!str_is(http_header(x, "Authorization"), "Bearer " TOKEN) || o->denied)
		http_reply(x, 401, "application/json", STR("{}"));
	else if (str_is(q->method, "HEAD"))
		http_reply(x, o->has_archive ? 200 : 404, "text/plain", STR(""));
	else if (str_is(q->method, "PUT"))
		http_reply(x, o->put_status, "application/json", STR("{}"));
	else if (str_is(q->path, "/api/v1/runs"))
		take_offer(o, x);
	else if (str_is(q->method, "POST"))
		o->cancels++, http_reply(x, 200, "application/json", STR("{}"));
	else if (str_ends(q->path, STR("/results")))
		serve_results(o, x);
	else if (str_starts(q->path, STR("/api/v1/suites/")))
		http_reply(x, o->suite ? 200 : 404, "application/json",
			   str_from(o->suite ? o->suite : "{}"));
	else
		http_reply(x, o->run ? 200 : 404, "application/json",
			   str_from(o->run ? o->run : "{}"));
}

static void stop(void *ctx, int fd, int events)
{
	(void)fd, (void)events;
	loop_stop(ctx);
}

static void *serve(void *arg)
{
	static const struct http_handler handler = {.on_request = on_request};
	struct other *o = arg;
	struct tls_server *tls;
	struct err err = {0};
	uint64_t one = 1;

	o->loop = loop_new();
	o->http = http_server_new(o->loop, NULL, &handler, o);
	struct loop_io *io = loop_io_new(o->loop, o->stop_fd, LOOP_READ, stop, o->loop);

	if (tls_server_open(o->dir, &tls, &err) < 0 ||
	    http_server_listen_tls(o->http, "127.0.0.1", 0, tls, &o->port, &err) < 0)
		abort();
	tls_server_pin(tls, o->pin);
	if (write(o->ready_fd, &one, sizeof(one)) != sizeof(one))
		abort();
	loop_run(o->loop);
	http_server_free(o->http);
	tls_server_free(tls);
	loop_io_free(io);
	loop_free(o->loop);
	return NULL;
}

static void other_start(struct other *o)
{
	void *dir = NULL;
	uint64_t one;

	*o = (struct other){.put_status = 201, .post_status = 201};
	assert_int_equal(unit_make_dir(&dir), 0);
	o->dir = dir;
	o->stop_fd = eventfd(0, EFD_CLOEXEC);
	o->ready_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(pthread_create(&o->thread, NULL, serve, o), 0);
	assert_int_equal(read(o->ready_fd, &one, sizeof(one)), sizeof(one));
}

static void other_stop(struct other *o)
{
	uint64_t one = 1;
	void *dir = o->dir;

	assert_int_equal(write(o->stop_fd, &one, sizeof(one)), sizeof(one));
	pthread_join(o->thread, NULL);
	close(o->stop_fd);
	close(o->ready_fd);
	unit_remove_dir(&dir);
}

/* ---- the run ---- */

struct handed {
	struct rig *r;
	struct other other;
	struct fake_s3 s3;
};

static int set_up(void **state)
{
	struct handed *h = xcalloc(1, sizeof(*h));
	void *rig;

	if (rig_make(&rig) < 0)
		return -1;
	h->r = rig;
	fake_s3_start(&h->s3);
	other_start(&h->other);
	struct driver_master *at = &h->r->reach_at;

	snprintf(at->url, sizeof(at->url), "https://127.0.0.1:%d", h->other.port);
	snprintf(at->pin, sizeof(at->pin), "%s", h->other.pin);
	snprintf(at->token, sizeof(at->token), "%s", TOKEN);
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	struct handed *h = *state;
	void *rig = h->r;
	int rc = rig_drop(&rig);

	aws_sessions_drop();
	other_stop(&h->other);
	fake_s3_stop(&h->s3);
	free(h);
	return rc;
}

static struct core_run *core(struct handed *h)
{
	return rig_run(h->r)->core;
}

/* Submitted with an archive, as by a client that hands the run over. */
static void submit_with(struct handed *h, const char *credentials)
{
	CLEANUP(freep)
	char *blob = xasprintf("%s/" LAYOUT_BLOBS "/" ARCHIVE, h->r->home);
	CLEANUP(freep)
	char *body = xasprintf(
		"{\"request_id\":\"request-0123456789\",\"job\":" JOB
		",\"base_dir\":\"/\",\"client_env\":{},\"tags\":[\"mine\"],\"source_sha256\":\"" ARCHIVE
		"\",\"credentials\":%s,\"facts\":{\"at\":\"client\"," FACTS "}}",
		credentials);
	CLEANUP(freep) char *dir = xasprintf("%s/" LAYOUT_BLOBS, h->r->home);

	assert_int_equal(file_mkdir_p(dir, 0700, NULL), 0);
	assert_int_equal(file_write_atomic(blob, STR("archive"), 0600, false, NULL), 0);
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs", body), 201);
}

static void submit(struct handed *h)
{
	submit_with(h, h->s3.credentials);
}

static void hand_over(struct handed *h)
{
	h->other.run = "{\"state\":\"running\"}";
	submit(h);
	rig_until(h->r, core(h)->phase == RUN_RUNNING);
}

/* What status shows that the run waits for. */
static bool shown(struct handed *h, const char *text)
{
	CLEANUP(buf_release) struct buf json = {0};

	buf_init(&json, 1 << 20);
	run_to_json(rig_run(h->r), true, &json);
	buf_addc(&json, '\0');
	const char *waiting = strstr(json.p, "\"waiting\":");

	return waiting && strstr(waiting, text);
}

static bool has_context(const struct handed *h, const char *run)
{
	CLEANUP(freep) char *path = xasprintf("%s/" LAYOUT_CONTEXTS "/%s.json", h->r->home, run);
	struct stat st;

	return stat(path, &st) == 0 && (st.st_mode & 0777) == 0600;
}

/* ---- offers ---- */

static void the_archive_goes_first_and_no_credentials_go_at_all(void **state)
{
	struct handed *h = *state;

	hand_over(h);
	assert_non_null(strstr(h->other.log, "HEAD /api/v1/blobs/" ARCHIVE
					     " PUT /api/v1/blobs/" ARCHIVE " POST /api/v1/runs "));
	assert_non_null(strstr(h->other.bodies[0], "\"request_id\":\"request-0123456789\""));
	assert_non_null(strstr(h->other.bodies[0], "\"adopted\":["));
	assert_null(strstr(h->other.bodies[0], "\"at\""));
	assert_null(strstr(h->other.bodies[0], "credentials"));
	assert_true(has_context(h, rig_run(h->r)->row.id));
	assert_int_equal(rig_count(h->r, "publish"), 1);
}

/* Rule: what is for the provider stays here, what is for stores that are not the provider's goes along. */
static void credentials_for_stores_go_along(void **state)
{
	struct handed *h = *state;
	CLEANUP(freep)
	char *both =
		xasprintf("{\"access_key\":\"of-the-provider\",\"store\":%s}", h->s3.credentials);
	CLEANUP(freep)
	char *sent = xasprintf("\"credentials\":{\"store\":%.*s,\"ca_pem\":\"CAs of mine\"}}",
			       (int)strlen(h->s3.credentials) - 1, h->s3.credentials);
	CLEANUP(freep) char *bundle = xasprintf("%s/bundle.pem", h->other.dir);

	assert_int_equal(file_write_atomic(bundle, STR("CAs of mine"), 0600, false, NULL), 0);
	setenv("SSL_CERT_FILE", bundle, 1);
	h->other.run = "{\"state\":\"running\"}";
	submit_with(h, both);
	rig_until(h->r, core(h)->phase == RUN_RUNNING);
	assert_non_null(strstr(h->other.bodies[0], sent));
	assert_null(strstr(h->other.bodies[0], "of-the-provider"));
	unsetenv("SSL_CERT_FILE");
}

static void the_tags_of_the_run_go_along(void **state)
{
	struct handed *h = *state;

	hand_over(h);
	assert_non_null(strstr(h->other.bodies[0], "\"tags\":[\"mine\"]"));
}

static void what_is_made_is_recorded_with_its_kind_and_name(void **state)
{
	struct handed *h = *state;

	hand_over(h);
	assert_true(rig_events(h->r, "created") > 0);
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM event WHERE kind = 'created' "
					  "AND text NOT LIKE '%.% %: id %'"),
			 0);
}

static void an_archive_that_does_not_arrive_is_sent_again_before_the_run(void **state)
{
	struct handed *h = *state;

	h->other.put_status = 503;
	submit(h);
	rig_until(h->r, core(h)->remote.at_ms);
	assert_int_equal(h->other.offers, 0);
	assert_true(shown(h, "its master does not answer yet"));
	h->other.put_status = 201;
	rig_until(h->r, core(h)->phase == RUN_RUNNING);
	assert_int_equal(h->other.offers, 1);
}

static void an_archive_that_is_refused_ends_the_run(void **state)
{
	struct handed *h = *state;

	h->other.put_status = 507;
	submit(h);
	rig_until(h->r, core(h)->verdict == VERDICT_FAILED);
	assert_int_equal(core(h)->cause.kind, ERR_CAPACITY);
	assert_int_equal(h->other.offers, 0);
}

static void a_server_with_another_key_is_told_nothing(void **state)
{
	struct handed *h = *state;

	snprintf(h->r->reach_at.pin, sizeof(h->r->reach_at.pin),
		 "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
	submit(h);
	rig_until(h->r, core(h)->verdict == VERDICT_FAILED);
	assert_int_equal(core(h)->cause.kind, ERR_DENIED);
	assert_string_equal(h->other.log, "");
}

static void an_offer_whose_answer_is_lost_is_made_again(void **state)
{
	struct handed *h = *state;

	h->other.lose_answer = true;
	hand_over(h);
	assert_int_equal(h->other.offers, 2);
	/* but for the age of what there is already */
	const char *facts = strstr(h->other.bodies[0], "\"facts\"");

	assert_non_null(facts);
	assert_memory_equal(h->other.bodies[0], h->other.bodies[1],
			    (size_t)(facts - h->other.bodies[0]));
}

/* The next master does not know whether the offer was taken; an answer that comes too late is nobody's. */
static void a_master_that_dies_with_an_offer_open_offers_again(void **state)
{
	struct handed *h = *state;

	err_set(&h->r->reach_fails, ERR_UNAVAILABLE, "no address yet");
	submit(h);
	rig_until(h->r, core(h)->remote.at_ms);
	h->r->work_waits = true;
	h->r->reach_fails = (struct err){0};
	rig_until(h->r, core(h)->remote.asked);
	rig_crash(h->r);
	assert_int_equal(h->other.offers, 1);
	h->other.run = "{\"state\":\"running\"}";
	assert_true(rig_start(h->r));
	assert_true(core(h)->remote.doubt);
	rig_until(h->r, core(h)->phase == RUN_RUNNING);
	assert_int_equal(h->other.offers, 2);
}

/* ---- following ---- */

static void what_the_run_waits_for_there_is_shown_here(void **state)
{
	struct handed *h = *state;

	hand_over(h);
	h->other.run =
		"{\"state\":\"cleaning\",\"waiting\":[{\"kind\":\"ec2.subnet\",\"name\":\"s\","
		"\"state\":\"deleting\",\"why\":\"not authorized: ec2:DeleteSubnet\","
		"\"why_kind\":\"denied\"}]}";
	rig_until(h->r, shown(h, "not authorized: ec2:DeleteSubnet"));
	assert_string_equal(rig_run(h->r)->remote.state, "cleaning");
	assert_true(shown(h, "\"why_kind\":\"denied\""));
}

static void credentials_that_expire_are_shown_and_the_run_goes_on(void **state)
{
	struct handed *h = *state;

	hand_over(h);
	rig_run(h->r)->remote.at.url[0] = '\0'; /* as after a lost connection */
	err_set(&h->r->reach_fails, ERR_DENIED, "ExpiredToken");
	rig_until(h->r, shown(h, "ExpiredToken"));
	assert_int_equal(core(h)->phase, RUN_RUNNING);
	h->r->reach_fails = (struct err){0};
	rig_until(h->r, !shown(h, "ExpiredToken"));
}

static void a_cancel_is_passed_on(void **state)
{
	struct handed *h = *state;

	hand_over(h);
	rig_cancel(h->r, true);
	rig_until(h->r, h->other.cancels > 0);
	assert_non_null(strstr(h->other.log, "/cancel"));
}

static void results_that_the_other_master_has_given_up_are_the_cause(void **state)
{
	struct handed *h = *state;

	hand_over(h);
	h->other.run =
		"{\"state\":\"succeeded\",\"verdict\":\"succeeded\",\"ended_ms\":5,\"waiting\":[{"
		"\"kind\":\"" WAIT_RESULTS "\",\"state\":\"copying\",\"why\":\"slow\"}]}";
	rig_until(h->r, shown(h, "slow"));
	assert_int_equal(core(h)->phase, RUN_COLLECTING);
	h->other.run = "{\"ended_ms\":5,\"waiting\":[{\"kind\":\"" WAIT_RESULTS
		       "\",\"state\":\"" WAIT_GIVEN_UP
		       "\",\"why\":\"s3:PutObject\",\"why_kind\":\"denied\"}]}";
	rig_until(h->r, core(h)->verdict == VERDICT_FAILED);
	assert_int_equal(core(h)->cause.kind, ERR_DENIED);
	assert_string_equal(core(h)->cause.text, "its results were not copied: s3:PutObject");
}

/* This master may not read the store: the other one, which writes there, still says how the copy went. */
static void a_store_that_refuses_this_master_does_not_keep_the_run(void **state)
{
	struct handed *h = *state;

	hand_over(h);
	h->s3.refuse = "HEAD /b-1/runs/";
	h->s3.refuse_status = 403;
	h->s3.refuse_body = "";
	h->s3.refusals = 1000;
	h->other.run = "{\"state\":\"succeeded\",\"verdict\":\"succeeded\",\"ended_ms\":5,"
		       "\"waiting\":[{\"kind\":\"" WAIT_RESULTS "\",\"state\":\"" WAIT_GIVEN_UP
		       "\",\"why\":\"s3:PutObject\",\"why_kind\":\"denied\"}]}";
	rig_until(h->r, core(h)->verdict == VERDICT_FAILED);
	assert_string_equal(core(h)->cause.text, "its results were not copied: s3:PutObject");
}

/* The other master does not know the run, and there are no results. */
static void what_a_lost_master_left_is_swept_until_it_is_gone(void **state)
{
	struct handed *h = *state;

	hand_over(h);
	h->other.run = NULL;
	h->r->sweeping = OUTCOME_HELD;
	rig_until(h->r, shown(h, "a subnet is left"));
	assert_int_equal(core(h)->verdict, VERDICT_FAILED);
	assert_false(rig_exists(h->r, "master"));
	assert_true(rig_exists(h->r, "group"));
	h->r->sweeping = OUTCOME_DONE;
	rig_until(h->r, !rig_run(h->r));
	assert_false(rig_exists(h->r, "group"));
	assert_int_equal(rig_count(h->r, "sweep"), 2);
}

/* ---- the end of the machine, on the other side ---- */

static void submit_there(struct handed *h)
{
	CLEANUP(freep)
	char *body = xasprintf("{\"request_id\":\"request-0123456789\",\"job\":" JOB
			       ",\"base_dir\":\"/\",\"client_env\":{},\"credentials\":%s,"
			       "\"facts\":{" FACTS ADOPTED "}}",
			       h->s3.credentials);

	rig_stop(h->r);
	h->r->adopted = "group master";
	setenv("REGATTA_OWN_MACHINE", "1", 1);
	assert_true(rig_start(h->r));
	unsetenv("REGATTA_OWN_MACHINE");
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs", body), 201);
	rig_until(h->r, core(h)->phase >= RUN_PROVISIONING);
	rig_cancel(h->r, true);
}

static int place_of(const struct handed *h, const char *verb, const char *name)
{
	for (size_t i = 0; i < h->r->calls.n; i++)
		if (!strcmp(h->r->calls.v[i].verb, verb) && !strcmp(h->r->calls.v[i].name, name))
			return (int)i;
	return -1;
}

/* As the master does about every second. */
static bool steps(const struct handed *h)
{
	own_machine_check(h->r->m.own_machine);
	return true;
}

static void the_machine_ends_itself_after_its_run_and_its_group(void **state)
{
	struct handed *h = *state;

	submit_there(h);
	rig_until(h->r, steps(h) && place_of(h, "destroy", "master") >= 0);
	assert_null(rig_run(h->r));
	assert_true(place_of(h, "detach", "master") >= 0);
	assert_true(place_of(h, "detach", "master") < place_of(h, "destroy", "group"));
	assert_true(place_of(h, "destroy", "group") < place_of(h, "destroy", "master"));
	assert_int_equal(place_of(h, "destroy", "bucket"), -1);
}

static void a_machine_that_cannot_end_says_why(void **state)
{
	struct handed *h = *state;

	err_set(&h->r->end_fails, ERR_DENIED, "ec2:DeleteSecurityGroup");
	submit_there(h);
	rig_until(h->r, steps(h) && own_machine_why(h->r->m.own_machine));
	assert_string_equal(own_machine_why(h->r->m.own_machine), "ec2:DeleteSecurityGroup");
	assert_int_equal(place_of(h, "destroy", "master"), -1);
}

/* They are gone with the machine: whoever follows the run must learn why first. */
static void results_that_cannot_be_copied_keep_the_machine_for_a_while(void **state)
{
	struct handed *h = *state;
	bool given_up = false;

	h->s3.refuse = "PUT /b-1/runs/";
	h->s3.refuse_status = 403;
	h->s3.refuse_body = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>";
	h->s3.refusals = 1000;
	submit_there(h);
	rig_until(h->r, exports_failure(h->r->m.exports, 1, &given_up));
	assert_true(given_up);
	assert_int_equal(exports_failure(h->r->m.exports, 1, &given_up)->kind, ERR_DENIED);
	int64_t ends_ms = clock_boot_ms() + MACHINE_END_FIRST_MS + 500; /* if nothing was lost */

	rig_until(h->r, steps(h) && clock_boot_ms() > ends_ms);
	assert_int_equal(place_of(h, "detach", "master"), -1);
}

/* ---- suites ---- */

#define SUITE                                                                                      \
	"\"suite\":{\"name\":\"s\",\"suite\":{\"job\":\"x.toml\",\"parallel\":2,"                  \
	"\"on_exit\":[\"true\"]},\"matrix\":{\"count\":[1,2]}},"                                   \
	"\"base_dir\":\"/\",\"auto\":{\"nodes\":2,\"here\":false},"

/* Two variants, each with a submission; the second has more facts. */
static void submit_suite(struct handed *h, const char *more)
{
	CLEANUP(freep)
	char *body = xasprintf(
		"{\"request_id\":\"request-0123456789\",\"client_away\":\"laptop-01\"," SUITE
		"\"of\":[0,1],\"submissions\":[{\"job\":" JOB
		",\"base_dir\":\"/\",\"client_env\":{},\"credentials\":%s,\"facts\":{\"at\":\"client\"," FACTS
		"}},{\"job\":" JOB
		",\"base_dir\":\"/\",\"client_env\":{},\"credentials\":%s,\"facts\":{\"at\":\"client\"," FACTS
		"%s}}]}",
		h->s3.credentials, h->s3.credentials, more);

	assert_int_equal(rig_http(h->r, "POST", "/api/v1/suites", body), 201);
}

static struct live_suite *the_suite(struct handed *h)
{
	return suites_active(h->r->m.suites) ? suites_at(h->r->m.suites, 0) : NULL;
}

static void suite_is_away(struct handed *h)
{
	h->other.run = "{\"state\":\"running\"}";
	h->other.suite =
		"{\"state\":\"closing\",\"variants\":[{\"runs\":[{\"state\":\"succeeded\",\"attempt\":1,"
		"\"run\":\"s-1\",\"cost_usd\":0.5}]},{\"runs\":[{\"state\":\"running\",\"attempt\":1,"
		"\"run\":\"s-2\"}]}]}";
	submit_suite(h, "");
	rig_until(h->r, core(h)->phase == RUN_RUNNING);
	rig_until(h->r, the_suite(h)->core->entries[1].state == ENTRY_RUNNING);
}

static void a_suite_has_one_master_which_gets_all_of_it_but_no_credentials(void **state)
{
	struct handed *h = *state;

	suite_is_away(h);
	assert_string_equal(rig_run(h->r)->row.id, the_suite(h)->row.id);
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM run"), 1);
	assert_non_null(strstr(h->other.bodies[0], "\"submissions\":["));
	assert_non_null(strstr(h->other.bodies[0], "\"carries\":true"));
	assert_non_null(strstr(h->other.bodies[0], "\"client\":\"laptop-01\""));
	assert_null(strstr(h->other.bodies[0], "credentials"));
	/* What is told is shown, and stored. */
	assert_int_equal(the_suite(h)->core->entries[0].state, ENTRY_SUCCEEDED);
	assert_int_equal(the_suite(h)->core->spent_micro, 500000);
	assert_true(has_context(h, "s-2") && !has_context(h, "s-1"));
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM suite_entry WHERE run = 's-2'"), 1);
	/* The next master follows it. */
	rig_crash(h->r);
	assert_true(rig_start(h->r));
	assert_true(the_suite(h)->core->away);
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM run"), 1);
}

static void a_cancel_of_the_suite_reaches_the_master_that_has_it(void **state)
{
	struct handed *h = *state;

	suite_is_away(h);
	CLEANUP(freep)
	char *path = xasprintf("/api/v1/suites/%s/cancel", the_suite(h)->row.id);

	assert_int_equal(rig_http(h->r, "POST", path, "{}"), 200);
	rig_until(h->r, h->other.cancels > 0);
	assert_int_equal(the_suite(h)->core->phase, SUITE_STOPPING);
}

static void a_suite_whose_master_is_lost_comes_back_without_what_ran(void **state)
{
	struct handed *h = *state;

	suite_is_away(h);
	h->other.run = h->other.suite = NULL;
	rig_until(h->r, !the_suite(h));
	assert_int_equal(rig_stored(h->r, "SELECT phase FROM suite"), SUITE_FAILED);
	assert_int_equal(rig_stored(h->r, "SELECT state FROM suite_entry WHERE place = 1"),
			 ENTRY_FAILED);
	assert_false(rig_exists(h->r, "master") || has_context(h, "s-2"));
}

/* Rule: an error that may pass keeps the suite away; its runs are not left behind. */
static void runs_that_cannot_be_taken_in_now_are_taken_in_later(void **state)
{
	struct handed *h = *state;

	suite_is_away(h);
	h->r->disk_full = true;
	h->other.run = h->other.suite = NULL;
	rig_until(h->r, !the_suite(h) || the_suite(h)->core->returns > 0);
	assert_non_null(the_suite(h));
	assert_true(the_suite(h)->core->away && !the_suite(h)->returns);
	assert_int_equal(rig_stored(h->r, "SELECT away FROM suite"), 1);
	h->r->disk_full = false;
	rig_until(h->r, !the_suite(h));
	assert_int_equal(rig_stored(h->r, "SELECT phase FROM suite"), SUITE_FAILED);
}

#define ENDED_THERE                                                                                \
	"{\"state\":\"failed\",\"exit_code\":1,\"variants\":[{\"runs\":[{\"state\":"               \
	"\"succeeded\",\"attempt\":1,\"run\":\"s-1\"}]},{\"runs\":[{\"state\":\"failed\","         \
	"\"attempt\":1,\"run\":\"s-2\"}]}]}"

/* Its master is lost, and this one is gone before it could take in anything. */
static void lose(struct handed *h)
{
	h->r->disk_full = true;
	h->other.run = h->other.suite = NULL;
	rig_until(h->r, the_suite(h)->core->returns > 0);
	rig_crash(h->r);
	h->r->disk_full = false;
}

static void take_back(struct handed *h)
{
	assert_true(rig_start(h->r));
	rig_until(h->r, !the_suite(h));
}

/* Rule: on_exit does not run here after it has run there, if all that is known of it was told before a restart. */
static void the_next_master_knows_that_the_suite_has_ended_there(void **state)
{
	struct handed *h = *state;

	suite_is_away(h);
	h->other.suite = ENDED_THERE;
	rig_until(h->r, the_suite(h)->core->closed_there);
	lose(h);
	take_back(h);
	assert_int_equal(rig_stored(h->r, "SELECT phase FROM suite"), SUITE_FAILED);
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM suite WHERE cause = ''"), 1);
}

/* A run that has succeeded and is called `id` (SQL) from now on; no master runs then. */
static void add_ended_run(struct handed *h, const char *id)
{
	CLEANUP(freep)
	char *sql =
		xasprintf("UPDATE run SET id = %s, verdict = %d WHERE request_id LIKE 'taken-%%'",
			  id, VERDICT_SUCCEEDED);

	rig_damage(h->r, sql);
}

static void end_a_run(struct handed *h)
{
	assert_non_null(rig_try_submit(h->r, "taken-0123456789", RIG_JOB, &(struct err){0}));
	rig_cancel(h->r, true);
	rig_until(h->r, !rig_run(h->r));
}

/* Rule: its results tell how a run has ended at a lost master, whatever was seen of it. */
static void what_succeeded_at_a_lost_master_has_not_failed(void **state)
{
	struct handed *h = *state;

	end_a_run(h);
	suite_is_away(h);
	lose(h);
	add_ended_run(h, "(SELECT id || '-2' FROM suite)");
	rig_damage(h->r,
		   "UPDATE suite_entry SET run = (SELECT id || '-2' FROM suite) WHERE place = 1");
	take_back(h);
	assert_int_equal(rig_stored(h->r, "SELECT state FROM suite_entry WHERE place = 1"),
			 ENTRY_SUCCEEDED);
}

/* The same of one that was not seen to have started, and has had a run before: it is found by the name that it must have. */
static void what_started_and_succeeded_at_a_lost_master_does_not_wait(void **state)
{
	struct handed *h = *state;

	end_a_run(h);
	suite_is_away(h);
	lose(h);
	add_ended_run(h, "(SELECT id || '-2' FROM suite)");
	rig_damage(h->r, "UPDATE suite_entry SET state = 0, run = 's-abcd-2' WHERE place = 1");
	take_back(h);
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM suite_entry JOIN run ON run.id = "
					  "suite_entry.run WHERE place = 1 AND state = 3"),
			 1);
}

static int resume_with(struct handed *h, const char *suite, const char *body)
{
	CLEANUP(freep) char *path = xasprintf("/api/v1/suites/%s/resume", suite);

	return rig_http(h->r, "POST", path, body);
}

/* The suite with one run that has succeeded and one that ran has come back from a lost master. */
static char *lose_and_resume(struct handed *h)
{
	suite_is_away(h);
	char *suite = xstrdup(the_suite(h)->row.id);

	h->other.run = h->other.suite = NULL;
	rig_until(h->r, !the_suite(h));
	h->other.run = "{\"state\":\"running\"}";
	CLEANUP(freep)
	char *body = xasprintf("{\"failed\":true,\"credentials\":{\"aws.ec2\":{\"fresh\":1,%s}}",
			       h->s3.credentials + 1);

	assert_int_equal(resume_with(h, suite, body), 200);
	return suite;
}

/* Rule: a suite that is resumed has one master again, which does not run again what has succeeded. */
static void a_resumed_suite_gets_a_master_again_which_knows_what_succeeded(void **state)
{
	struct handed *h = *state;
	CLEANUP(freep) char *suite = lose_and_resume(h);
	CLEANUP(freep) char *carrier = xasprintf("%s-r2", suite);
	CLEANUP(freep) char *run = xasprintf("\"run\":\"%s\"", carrier);

	assert_string_equal(rig_run(h->r)->row.id, carrier);
	assert_non_null(strstr(rig_run(h->r)->credentials, "fresh"));
	rig_until(h->r, core(h)->phase == RUN_RUNNING);
	assert_int_equal(h->other.offers, 2);
	assert_non_null(strstr(h->other.bodies[1], run));
	assert_null(strstr(h->other.bodies[1], "fresh"));
	assert_null(strstr(h->other.bodies[1], "on_exit"));
	assert_non_null(
		strstr(h->other.bodies[1],
		       "\"entries\":[{\"at\":0,\"state\":\"succeeded\",\"attempt\":1,"
		       "\"cost_micro\":500000},{\"at\":1,\"state\":\"waiting\",\"attempt\":2,"));
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM run"), 2);
	/* The next master follows it. */
	rig_crash(h->r);
	assert_true(rig_start(h->r));
	assert_true(the_suite(h)->core->away);
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/suites/s/cancel", "{}"), 200);
	rig_until(h->r, h->other.cancels > 0);
}

static void a_suite_comes_back_from_its_second_master(void **state)
{
	struct handed *h = *state;
	CLEANUP(freep) char *suite = lose_and_resume(h);

	rig_until(h->r, core(h)->phase == RUN_RUNNING);
	h->other.suite = "{\"state\":\"running\",\"variants\":[{\"runs\":[{\"state\":\"succeeded\","
			 "\"attempt\":1,\"cost_usd\":0.5}]},{\"runs\":[{\"state\":\"running\","
			 "\"attempt\":2,\"run\":\"s-r2-2\"}]}]}";
	rig_until(h->r, the_suite(h)->core->entries[1].state == ENTRY_RUNNING);
	assert_int_equal(the_suite(h)->core->spent_micro, 500000);
	assert_true(has_context(h, "s-r2-2"));
	h->other.run = h->other.suite = NULL;
	rig_until(h->r, !the_suite(h));
	assert_false(rig_exists(h->r, "master") || has_context(h, "s-r2-2"));
	assert_int_equal(rig_stored(h->r, "SELECT state FROM suite_entry WHERE place = 0"),
			 ENTRY_SUCCEEDED);
	assert_int_equal(rig_stored(h->r, "SELECT state FROM suite_entry WHERE place = 1"),
			 ENTRY_FAILED);
	assert_int_equal(rig_stored(h->r, "SELECT carrier FROM suite WHERE away = 0"), 2);
	/* It may go there a third time. */
	assert_int_equal(resume_with(h, suite, "{\"failed\":true}"), 200);
	assert_int_equal(rig_stored(h->r, "SELECT carrier FROM suite WHERE away = 1"), 3);
}

/* Rule: results of a later carrier, too, are asked for again while they cannot be taken in. */
static void results_of_the_second_master_are_taken_in_later(void **state)
{
	struct handed *h = *state;

	free(lose_and_resume(h));
	rig_until(h->r, core(h)->phase == RUN_RUNNING);
	h->r->disk_full = true;
	h->other.run = h->other.suite = NULL;
	rig_until(h->r, the_suite(h)->core->returns > 0);
	h->r->disk_full = false;
	rig_until(h->r, !the_suite(h));
	assert_int_equal(
		rig_stored(h->r, "SELECT phase FROM suite WHERE ended_ms > 0 AND away = 0"),
		SUITE_FAILED);
}

/* Rule: a suite that is away comes back, whatever is left of what was submitted. */
static void a_suite_whose_submission_is_lost_comes_back(void **state)
{
	struct handed *h = *state;

	suite_is_away(h);
	CLEANUP(freep) char *request = path_join(the_suite(h)->dir, SUITE_REQUEST_FILE);

	lose(h);
	assert_int_equal(unlink(request), 0);
	take_back(h);
	assert_int_equal(
		rig_stored(h->r, "SELECT phase FROM suite WHERE ended_ms > 0 AND away = 0"),
		SUITE_FAILED);
}

/* Rule: its runs get the credentials of who resumes it, also those that have masters of their own. */
static void who_resumes_a_suite_gives_it_credentials(void **state)
{
	struct handed *h = *state;
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(freep) char *suite = lose_and_resume(h);
	CLEANUP(freep)
	char *path = xasprintf("%s/" LAYOUT_SUITES "/%s/request.json", h->r->home, suite);

	buf_init(&text, 1 << 20);
	assert_int_equal(file_read(path, &text, NULL), 0);
	buf_addc(&text, '\0');
	const char *first = strstr(text.p, "\"fresh\":1");

	assert_non_null(first);
	assert_non_null(strstr(first + 1, "\"fresh\":1"));
	buf_reset(&text);
	suite_engines_to_json(the_suite(h), &text);
	buf_addc(&text, '\0');
	assert_non_null(strstr(text.p, "{\"engines\":[{\"name\":\"aws.ec2\",\"options\":{"));
	assert_null(strstr(text.p, "fresh"));
}

/* Rule: a resume that is refused leaves the suite as it was. */
static void a_resume_whose_carrier_is_refused_changes_nothing(void **state)
{
	struct handed *h = *state;

	suite_is_away(h);
	CLEANUP(freep) char *suite = xstrdup(the_suite(h)->row.id);

	h->other.run = h->other.suite = NULL;
	rig_until(h->r, !the_suite(h));
	rig_crash(h->r);
	rig_damage(h->r, "UPDATE run SET id = id || '-r2'"); /* the id of the next carrier */
	assert_true(rig_start(h->r));
	assert_int_equal(resume_with(h, suite, "{\"failed\":true}"), 409);
	assert_null(the_suite(h));
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM run"), 1);
	assert_int_equal(
		rig_stored(h->r, "SELECT phase FROM suite WHERE ended_ms > 0 AND away = 0"),
		SUITE_FAILED);
	rig_crash(h->r);
	rig_damage(h->r, "UPDATE run SET id = 's-none'");
	assert_true(rig_start(h->r));
	assert_int_equal(resume_with(h, suite, "{\"failed\":true}"), 200);
}

/* Rule: a suite never goes away with a carrier that has ended. */
static void a_carrier_that_could_not_be_made_is_not_taken_for_the_next(void **state)
{
	struct handed *h = *state;

	suite_is_away(h);
	CLEANUP(freep) char *suite = xstrdup(the_suite(h)->row.id);
	CLEANUP(freep) char *dir = xasprintf("%s/" LAYOUT_RUNS "/%s-r2", h->r->home, suite);
	CLEANUP(freep) char *run = xasprintf("/api/v1/runs/%s-r2/cleanup", suite);

	h->other.run = h->other.suite = NULL;
	rig_until(h->r, !the_suite(h));
	assert_int_equal(file_write(dir, STR("in the way"), 0600, NULL), 0);
	assert_int_not_equal(resume_with(h, suite, "{\"failed\":true}"), 200);
	rig_until(h->r, !rig_run(h->r));
	assert_int_equal(unlink(dir), 0);
	assert_int_equal(resume_with(h, suite, "{\"failed\":true}"), 409);
	assert_null(the_suite(h));
	assert_int_equal(rig_http(h->r, "POST", run, "{}"), 200);
	h->other.run = "{\"state\":\"running\"}";
	assert_int_equal(resume_with(h, suite, "{\"failed\":true}"), 200);
	assert_true(the_suite(h)->core->away);
}

/* Rule: a run is not taken for another whose id begins with its own. */
static void a_removed_run_of_a_suite_is_not_another_one(void **state)
{
	struct handed *h = *state;

	end_a_run(h);
	submit_suite(h, ",\"vpc\":\"vpc-2\"");
	rig_until(h->r, the_suite(h)->core->entries[1].state == ENTRY_RUNNING);
	rig_crash(h->r);
	add_ended_run(h, "'s-gone-10'");
	rig_damage(h->r, "UPDATE suite_entry SET run = 's-gone-1' WHERE place = 1");
	assert_true(rig_start(h->r));
	assert_int_equal(the_suite(h)->core->entries[1].state, ENTRY_FAILED);
	assert_string_equal(the_suite(h)->core->entries[1].cause, "its run was removed");
}

/* Rule: commands about a run of the suite find its master where it is now. */
static void the_runs_of_a_suite_are_found_where_their_master_is_now(void **state)
{
	struct handed *h = *state;
	CLEANUP(freep) char *path = xasprintf("%s/" LAYOUT_CONTEXTS "/s-2.json", h->r->home);
	CLEANUP(buf_release) struct buf text = {0};
	struct driver_master *at = &h->r->reach_at;

	suite_is_away(h);
	rig_crash(h->r);
	snprintf(at->url, sizeof(at->url), "https://localhost:%d", h->other.port);
	assert_true(rig_start(h->r));
	rig_until(h->r, rig_run(h->r)->remote.has_context);
	buf_init(&text, 4096);
	assert_int_equal(file_read(path, &text, NULL), 0);
	buf_addc(&text, '\0');
	assert_non_null(strstr(text.p, "https://localhost:"));
}

/* Nothing ran there, so there are no results to take in before it is back. */
static void a_suite_that_the_other_master_refuses_has_ended_in_the_store_too(void **state)
{
	struct handed *h = *state;

	h->other.post_status = 400;
	submit_suite(h, "");
	rig_until(h->r, !the_suite(h));
	assert_int_equal(rig_stored(h->r, "SELECT phase FROM suite"), SUITE_FAILED);
	assert_int_equal(rig_stored(h->r, "SELECT away FROM suite"), 0);
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM suite WHERE ended_ms > 0"), 1);
	assert_false(rig_exists(h->r, "master"));
}

/* Rule: what the other master says goes into paths and into the store only if it can be meant. */
static void an_entry_that_cannot_be_meant_is_passed_over(void **state)
{
	struct handed *h = *state;

	suite_is_away(h);
	h->other.suite =
		"{\"state\":\"running\",\"variants\":[{\"runs\":[{\"state\":\"running\",\"attempt\":0,"
		"\"run\":\"s-1\"}]},{\"runs\":[{\"state\":\"running\",\"attempt\":2,"
		"\"run\":\"../s-3\",\"cost_usd\":-1}]}]}";
	rig_until(h->r, strcmp(the_suite(h)->there, "running") == 0);
	assert_int_equal(h->r->m.exit_code, 0);
	assert_int_equal(the_suite(h)->core->entries[0].attempt, 1);
	assert_int_equal(the_suite(h)->core->entries[1].attempt, 1);
	h->other.suite =
		"{\"state\":\"closing\",\"variants\":[{\"runs\":[{\"state\":\"running\",\"attempt\":1,"
		"\"run\":\"../s-3\"}]}]}";
	rig_until(h->r, strcmp(the_suite(h)->there, "closing") == 0);
	assert_string_equal(the_suite(h)->runs[0], "s-1");
	assert_false(has_context(h, "../s-3"));
}

static void variants_that_need_different_things_have_masters_of_their_own(void **state)
{
	struct handed *h = *state;

	submit_suite(h, ",\"vpc\":\"vpc-2\"");
	rig_until(h->r, rig_stored(h->r, "SELECT count(*) FROM run") == 2);
	assert_false(the_suite(h)->core->away);
}

/* ---- suites in a cluster, where results stay with the master ---- */

#define IN_CLUSTER "\"namespace\":\"n\",\"binary\":{\"sha256\":\"ab\",\"size\":9},"
#define OF_PODS                                                                                     \
	"\"job\":{\"name\":\"s\",\"command\":[\"true\"],\"engine\":\"kubernetes\",\"kubernetes\":{" \
	"\"image\":\"i\"}},\"base_dir\":\"/\",\"client_env\":{},"

#define STORED_PODS                                                                                 \
	"\"job\":{\"name\":\"s\",\"command\":[\"true\"],\"engine\":\"kubernetes\",\"kubernetes\":{" \
	"\"image\":\"i\"},\"output\":{\"s3\":\"s3://b-1/runs\"}},\"base_dir\":\"/\",\"client_env\":{},"

/* server: of the second variant. */
static void submit_suite_of_pods(struct handed *h, const char *server)
{
	CLEANUP(freep)
	char *body = xasprintf("{\"request_id\":\"request-0123456789\"," SUITE
			       "\"of\":[0,1],\"submissions\":[{" OF_PODS
			       "\"facts\":{\"at\":\"client\"," IN_CLUSTER
			       "\"server\":\"https://k\"}},{" OF_PODS
			       "\"facts\":{\"at\":\"client\"," IN_CLUSTER "\"server\":\"%s\"}}]}",
			       server);

	assert_int_equal(rig_http(h->r, "POST", "/api/v1/suites", body), 201);
}

static void a_suite_of_pods_has_one_master_which_is_told_how_many_runs_it_gets(void **state)
{
	struct handed *h = *state;

	h->other.run = "{\"state\":\"running\"}";
	submit_suite_of_pods(h, "https://k");
	assert_true(the_suite(h)->core->away);
	rig_until(h->r, core(h)->phase == RUN_RUNNING);
	assert_non_null(strstr(h->other.bodies[0], "\"carries\":true,\"runs\":2"));
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM run"), 1);
}

static void variants_of_two_clusters_have_masters_of_their_own(void **state)
{
	struct handed *h = *state;

	submit_suite_of_pods(h, "https://another");
	assert_false(the_suite(h)->core->away);
}

/* Rule: what a cluster makes of a run is called after it, and a name has a limit. */
static void a_suite_whose_names_are_too_long_has_a_master_for_each_run(void **state)
{
	static const char name[] = "a-name-of-forty-letters-abcdefghijklmnop";
	struct handed *h = *state;

	for (int repeats = 499; repeats <= 500; repeats++) {
		CLEANUP(freep)
		char *body = xasprintf(
			"{\"request_id\":\"request-0123456789-%d\",\"suite\":{\"name\":\"%s\",\"suite\":"
			"{\"job\":\"x.toml\",\"repeats\":%d,\"parallel\":1},\"matrix\":{\"count\":[1,2]}},"
			"\"base_dir\":\"/\",\"auto\":{\"nodes\":2,\"here\":false},\"of\":[0,0],"
			"\"submissions\":[{" OF_PODS "\"facts\":{\"at\":\"client\"," IN_CLUSTER
			"\"server\":\"https://k\"}}]}",
			repeats, name, repeats);

		assert_int_equal(rig_http(h->r, "POST", "/api/v1/suites", body), 201);
		assert_int_equal(
			suites_at(h->r->m.suites, suites_active(h->r->m.suites) - 1)->core->away,
			repeats == 499);
	}
}

/* Rule: one object of the cluster names all runs, and has a limit, too. */
static void a_suite_of_very_many_runs_has_a_master_for_each(void **state)
{
	struct handed *h = *state;

	for (int repeats = 5000; repeats <= 7000; repeats += 2000) {
		CLEANUP(freep)
		char *body = xasprintf(
			"{\"request_id\":\"request-0123456789-%d\",\"suite\":{\"name\":\"s\",\"suite\":"
			"{\"job\":\"x.toml\",\"repeats\":%d,\"parallel\":1},\"matrix\":{\"count\":[1,2]}},"
			"\"base_dir\":\"/\",\"auto\":{\"nodes\":2,\"here\":false},\"of\":[0,0],"
			"\"submissions\":[{" OF_PODS "\"facts\":{\"at\":\"client\"," IN_CLUSTER
			"\"server\":\"https://k\"}}]}",
			repeats, repeats);

		assert_int_equal(rig_http(h->r, "POST", "/api/v1/suites", body), 201);
		assert_int_equal(
			suites_at(h->r->m.suites, suites_active(h->r->m.suites) - 1)->core->away,
			repeats == 5000);
	}
}

static bool was_fetched(const struct handed *h, const char *suite, const char *entry)
{
	CLEANUP(freep)
	char *path = xasprintf("%s/" LAYOUT_RUNS "/%s%s/" LAYOUT_FETCHED "/" RESULTS_INDEX,
			       h->r->home, suite, entry);

	return file_exists(path);
}

/* These copies are empty: a record of the run is not in them, and the next step fails. */
static bool was_taken(const struct handed *h, const char *suite, const char *entry)
{
	CLEANUP(freep)
	char *path = xasprintf("%s/" LAYOUT_RUNS "/%s%s/" LAYOUT_RESULTS, h->r->home, suite, entry);

	return file_exists(path);
}

static bool has_directory(const struct handed *h, const char *suite, const char *entry)
{
	CLEANUP(freep) char *path = xasprintf("%s/" LAYOUT_RUNS "/%s%s", h->r->home, suite, entry);

	return file_exists(path);
}

/* The suite has ended at the other master, which is asked for its results. */
struct ended_there {
	char suite[40], text[512], kept[200];
};

static void end_submitted(struct handed *h, struct ended_there *e)
{
	h->other.run = "{\"state\":\"running\"}";
	rig_until(h->r, core(h)->phase == RUN_RUNNING);
	snprintf(e->suite, sizeof(e->suite), "%s", the_suite(h)->row.id);
	snprintf(
		e->text, sizeof(e->text),
		"{\"state\":\"failed\",\"exit_code\":1,\"variants\":[{\"runs\":[{\"state\":"
		"\"succeeded\",\"attempt\":1,\"run\":\"%s-1\"},{\"run\":\"s-efgh-7\"}]},{\"runs\":[{"
		"\"state\":\"failed\",\"attempt\":1,\"run\":\"%s-2\"}]}]}",
		e->suite, e->suite);
	h->other.suite = e->text;
	h->other.run = "{\"state\":\"failed\",\"verdict\":\"failed\",\"ended_ms\":7}";
}

static void end_there(struct handed *h, struct ended_there *e)
{
	submit_suite_of_pods(h, "https://k");
	end_submitted(h, e);
}

/* Rule: nothing in the cluster is removed before the results of all runs of the suite are here. */
static void a_carrier_is_collected_with_all_runs_of_its_suite(void **state)
{
	struct handed *h = *state;
	struct ended_there e;

	end_there(h, &e);
	snprintf(e.kept, sizeof(e.kept), " %s %s-1 ", e.suite, e.suite);
	h->other.kept = e.kept;
	rig_until(h->r, was_fetched(h, e.suite, "-1"));
	rig_until(h->r, core(h)->remote.waits[0]); /* for those of the other */
	assert_int_equal(core(h)->phase, RUN_COLLECTING);
	assert_true(was_fetched(h, e.suite, ""));
	assert_int_equal(place_of(h, "destroy", "master"), -1);
	assert_null(strstr(h->other.log, "s-efgh-7"));
	char all[300];

	snprintf(all, sizeof(all), "%s%s-2 ", e.kept, e.suite);
	h->other.kept = all;
	rig_until(h->r, !the_suite(h));
	assert_true(was_fetched(h, e.suite, "-2"));
	assert_true(place_of(h, "destroy", "master") >= 0);
	assert_true(was_taken(h, e.suite, "-1") && was_taken(h, e.suite, "-2"));
}

/* Rule: results that could not be copied are fetched, and taken in from where they are. */
static void runs_of_a_suite_that_were_not_copied_are_fetched_and_taken_in(void **state)
{
	struct handed *h = *state;
	struct ended_there e;
	CLEANUP(freep)
	char *body =
		xasprintf("{\"request_id\":\"request-0123456789\"," SUITE
			  "\"of\":[0,0],\"submissions\":[{" STORED_PODS
			  "\"credentials\":{\"store\":%s},\"facts\":{\"at\":\"client\"," IN_CLUSTER
			  "\"server\":\"https://k\"}}]}",
			  h->s3.credentials);

	assert_int_equal(rig_http(h->r, "POST", "/api/v1/suites", body), 201);
	CLEANUP(freep) char *suite = xstrdup(the_suite(h)->row.id);
	struct fake_s3_object *copy = &h->s3.objects[h->s3.n++]; /* of the carrier */

	copy->name = xasprintf("b-1/runs/%s/" RESULTS_INDEX, suite);
	copy->body = xasprintf("{\"version\":1,\"run\":\"%s\",\"files\":[]}", suite);
	copy->n = strlen(copy->body);
	snprintf(e.kept, sizeof(e.kept), " %s-1 %s-2 ", suite, suite);
	h->other.kept = e.kept;
	end_submitted(h, &e);
	h->other.run =
		"{\"state\":\"failed\",\"verdict\":\"failed\",\"ended_ms\":7,\"waiting\":[{\"kind\":"
		"\"results\",\"state\":\"given up\",\"why\":\"no\",\"why_kind\":\"denied\"}]}";
	rig_until(h->r, !the_suite(h));
	assert_true(was_taken(h, suite, "-1") && was_taken(h, suite, "-2"));
	assert_int_equal(rig_stored(h->r,
				    "SELECT count(*) FROM event WHERE kind = 'results' AND "
				    "text LIKE 'not copied, and fetched from its master: no'"),
			 1);
}

/* Rule: while nobody can say where the other master is, it has not said that it has no results. */
static void results_of_a_master_that_is_not_found_now_are_waited_for(void **state)
{
	struct handed *h = *state;
	struct ended_there e;

	end_there(h, &e);
	snprintf(e.kept, sizeof(e.kept), " %s ", e.suite);
	h->other.kept = e.kept;
	rig_until(h->r, core(h)->phase == RUN_COLLECTING && core(h)->remote.waits[0]);
	rig_crash(h->r);
	err_set(&h->r->reach_fails, ERR_NOT_FOUND, "no Secret");
	assert_true(rig_start(h->r));
	rig_until(h->r, core(h)->remote.waits_kind == ERR_UNAVAILABLE);
	assert_int_equal(core(h)->phase, RUN_COLLECTING);
	char all[300];

	snprintf(all, sizeof(all), " %s %s-1 %s-2 ", e.suite, e.suite, e.suite);
	h->other.kept = all;
	h->r->reach_fails = (struct err){0};
	rig_until(h->r, core(h)->phase == RUN_CLEANING);
	assert_true(was_fetched(h, e.suite, "-1") && was_fetched(h, e.suite, "-2"));
}

/* Rule: results that the other master does not have, and never will, keep nothing in the cluster. */
static void runs_of_a_suite_without_results_are_not_waited_for(void **state)
{
	struct handed *h = *state;
	struct ended_there e;

	end_there(h, &e);
	snprintf(e.kept, sizeof(e.kept), " %s %s-2 ", e.suite, e.suite);
	h->other.kept = e.kept;
	h->other.run =
		"{\"state\":\"failed\",\"verdict\":\"failed\",\"ended_ms\":7,\"waiting\":[{\"kind\":"
		"\"results\",\"state\":\"given up\",\"why\":\"disk full\",\"why_kind\":\"io\"}]}";
	rig_until(h->r, !rig_run(h->r));
	assert_true(was_fetched(h, e.suite, "-2"));
	assert_false(was_fetched(h, e.suite, "-1"));
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM event WHERE kind = 'results' AND "
					  "text LIKE 'of 1 runs of the suite there are none'"),
			 1);
	rig_until(h->r, !the_suite(h));
	assert_false(has_directory(h, e.suite, "-1"));
}

static void end_machine(struct handed *h, const char *name)
{
	for (size_t i = 0; i < h->r->exist.n; i++)
		if (strcmp(h->r->exist.v[i], name) == 0)
			h->r->exist.v[i][0] = '\0';
}

/* Rule: one that is lost when only some of the results were fetched leaves a note of how many are missing. */
static void results_that_a_lost_master_had_of_a_suites_runs_are_missed(void **state)
{
	struct handed *h = *state;
	struct ended_there e;

	end_there(h, &e);
	snprintf(e.kept, sizeof(e.kept), " %s %s-1 ", e.suite, e.suite);
	h->other.kept = e.kept;
	rig_until(h->r, core(h)->remote.waits[0] && core(h)->phase == RUN_COLLECTING);
	CLEANUP(freep)
	char *left = xasprintf("%s/" LAYOUT_RUNS "/%s/" LAYOUT_FETCHED "/" SUITE_STATE_FILE,
			       h->r->home, e.suite);

	assert_int_equal(file_write(left, str_from(e.text), 0600, NULL), 0);
	h->other.denied = true;
	end_machine(h, "master");
	rig_until(h->r, !rig_run(h->r));
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM event WHERE kind = 'results' AND "
					  "text LIKE 'of 1 runs of the suite there are none'"),
			 1);
}

/* Rule: a master that does not know the suite any more, as one whose disk was lost, has no results of its runs. */
static void a_master_that_has_lost_the_suite_has_lost_its_results(void **state)
{
	struct handed *h = *state;
	struct ended_there e;

	end_there(h, &e);
	h->other.run = "{\"state\":\"succeeded\",\"verdict\":\"succeeded\",\"ended_ms\":7}";
	rig_until(h->r, core(h)->phase == RUN_COLLECTING);
	snprintf(e.kept, sizeof(e.kept), " %s ", e.suite);
	h->other.suite = NULL;
	h->other.kept = e.kept;
	rig_until(h->r, !rig_run(h->r));
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM run WHERE cause_text LIKE "
					  "'its results were not copied%'"),
			 1);
}

static struct live_run *named(struct handed *h, const char *id)
{
	return map_get(h->r->m.runs, str_from(id));
}

/* more: keys of the suite. */
static int post_suite_there(struct handed *h, const char *run, const char *more)
{
	CLEANUP(freep)
	char *body = xasprintf(
		"{\"request_id\":\"carrier-0123456789\",\"run\":\"%s\",\"job\":{\"name\":\"s\","
		"\"command\":[\"true\"],\"engine\":\"aws.ec2\"},\"base_dir\":\"/\",\"client_env\":{},"
		"\"credentials\":%s,\"facts\":{" FACTS ADOPTED ",\"carries\":true},"
		"\"suite\":{\"request_id\":\"request-0123456789\"," SUITE
		"%s\"of\":[0,0],\"submissions\":[{\"job\":" JOB
		",\"base_dir\":\"/\",\"client_env\":{},\"credentials\":%s,"
		"\"facts\":{\"at\":\"client\"," FACTS "}}]}}",
		run, h->s3.credentials, more, h->s3.credentials);

	return rig_http(h->r, "POST", "/api/v1/runs", body);
}

static void be_there(struct handed *h)
{
	rig_stop(h->r);
	h->r->adopted = "group master";
	setenv("REGATTA_OWN_MACHINE", "1", 1);
	assert_true(rig_start(h->r));
	unsetenv("REGATTA_OWN_MACHINE");
}

static void submit_suite_there(struct handed *h)
{
	be_there(h);
	assert_int_equal(post_suite_there(h, "s-abcd", ""), 201);
	rig_until(h->r, named(h, "s-abcd-1") && named(h, "s-abcd-2"));
}

/* Rule: what has succeeded before does not start at the next master, nor after its restart. */
static void the_suite_goes_on_there_as_it_stood(void **state)
{
	struct handed *h = *state;

	be_there(h);
	assert_int_equal(
		post_suite_there(h, "s-abcd-r2",
				 "\"entries\":[{\"at\":0,\"state\":\"succeeded\",\"attempt\":1,"
				 "\"cost_micro\":7},{\"at\":1,\"state\":\"waiting\",\"attempt\":2,"
				 "\"cost_micro\":0}],"),
		201);
	rig_until(h->r, named(h, "s-abcd-r2-2"));
	assert_null(named(h, "s-abcd-r2-1"));
	rig_crash(h->r);
	assert_true(rig_start(h->r));
	assert_int_equal(the_suite(h)->core->entries[0].state, ENTRY_SUCCEEDED);
	assert_int_equal(the_suite(h)->core->spent_micro, 7);
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM run"), 2);
}

/* Rule: the state of an entry that cannot be is refused, and nothing starts. */
static void entries_that_cannot_be_meant_are_refused(void **state)
{
	static const char *const rows[] = {
		"{\"at\":2,\"state\":\"waiting\",\"attempt\":1,\"cost_micro\":0}",
		"{\"at\":-1,\"state\":\"waiting\",\"attempt\":1,\"cost_micro\":0}",
		"{\"at\":0,\"state\":\"running\",\"attempt\":1,\"cost_micro\":0}",
		"{\"at\":0,\"state\":\"odd\",\"attempt\":1,\"cost_micro\":0}",
		"{\"at\":0,\"state\":\"waiting\",\"attempt\":0,\"cost_micro\":0}",
		"{\"at\":0,\"state\":\"waiting\",\"attempt\":1,\"cost_micro\":-1}",
		"7"};
	struct suite_variant variants[2] = {{.name = "a"}, {.name = "b"}};
	const struct suite plan = {.variants = variants, .n = 2, .runs.repeats = 1};
	struct core_suite *s = core_suite_new(&plan, 1);
	struct handed *h = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(freep) char *text = xasprintf("{\"entries\":[%s]}", rows[i]);
		struct err err = {0};
		struct doc *d;

		assert_int_equal(json_parse(str_from(text), a, &d, NULL), 0);
		assert_int_equal(carrier_take_entries(s, doc_array(d, "entries"), &err), -1);
		assert_string_equal(err.msg, "'entries': one is not the state of an entry");
	}
	core_suite_free(s);
	be_there(h);
	assert_int_equal(post_suite_there(h, "s-abcd-r2", "\"entries\":[{\"at\":9}],"), 400);
	assert_null(named(h, "s-abcd-r2-1"));
}

static void the_runs_of_a_suite_share_the_machine_which_its_carrier_pays(void **state)
{
	struct handed *h = *state;

	submit_suite_there(h);
	const struct live_run *carrier = named(h, "s-abcd"), *run = named(h, "s-abcd-2");

	rig_until(h->r, carrier->core->phase == RUN_RUNNING);
	assert_int_equal(carrier->plan.crew.n, 0);
	assert_int_equal(run->plan.crew.n, 2);
	int at = machine_end_machine(&run->plan);

	assert_string_equal(run->plan.resources[at].id, "i");
	assert_int_equal(run->plan.resources[at].prices.n, 0);
	assert_true(carrier->plan.resources[at].prices.n > 0);
	assert_true(run->plan.resources[run->plan.resource_of[0]].prices.n > 0);
	assert_int_equal(place_of(h, "create", "master"), -1);
	assert_int_equal(place_of(h, "create", "group"), -1);
}

#define ROOT_AND_MASTER                                                                              \
	"\"adopted\":[{\"name\":\"root\",\"id\":\"r\"},{\"name\":\"account\",\"id\":\"a\"},{"        \
	"\"name\":\"role\",\"id\":\"o\"},{\"name\":\"binding\",\"id\":\"b\"},{\"name\":\"program\"," \
	"\"id\":\"p\"},{\"name\":\"master\",\"id\":\"m\"}]"

/* They go to a bucket, with credentials that came with the carrier. */
static void submit_suite_of_pods_there(struct handed *h)
{
	CLEANUP(freep)
	char *body = xasprintf(
		"{\"request_id\":\"carrier-0123456789\",\"run\":\"s-abcd\"," STORED_PODS
		"\"credentials\":{\"store\":%s},\"facts\":{" IN_CLUSTER
		"\"carries\":true,\"runs\":2," ROOT_AND_MASTER "},"
		"\"suite\":{\"request_id\":\"request-0123456789\"," SUITE
		"\"of\":[0,0],\"submissions\":[{" STORED_PODS
		"\"facts\":{\"at\":\"client\"," IN_CLUSTER "\"server\":\"https://k\"}}]}}",
		h->s3.credentials);

	be_there(h);
	h->r->adopted = "root account role binding program master";
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs", body), 201);
	rig_until(h->r, named(h, "s-abcd-1") && named(h, "s-abcd-2"));
}

/* Rule: they have the root and the credentials for stores of the run that carries them, and no master. */
static void the_runs_of_a_suite_of_pods_have_what_their_carrier_has_for_them(void **state)
{
	struct handed *h = *state;

	submit_suite_of_pods_there(h);
	const struct live_run *run = named(h, "s-abcd-2");

	assert_int_equal(machine_end_machine(&run->plan), -1);
	assert_string_equal(run->plan.resources[0].name, "root");
	assert_string_equal(run->plan.resources[0].id, "r");
	assert_non_null(strstr(run->credentials, "\"store\":"));
	rig_until(h->r, place_of(h, "create", "worker") >= 0);
	assert_int_equal(place_of(h, "create", "root"), -1);
	assert_int_equal(place_of(h, "create", "master"), -1);
}

/* Rule: the machine is that of the carrier, and ends when the whole suite is copied. */
static void the_master_of_a_suite_of_pods_ends_itself(void **state)
{
	struct handed *h = *state;

	submit_suite_of_pods_there(h);
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs/s-abcd/cancel", "{}"), 200);
	rig_until(h->r, !named(h, "s-abcd"));
	rig_until(h->r, steps(h) && place_of(h, "destroy", "master") >= 0);
	assert_int_equal(place_of(h, "destroy", "root"), -1);
}

/* Rule: a run of the suite whose results are not copied keeps the master, as those of the carrier would. */
static void results_of_one_run_keep_the_master_of_a_suite(void **state)
{
	struct handed *h = *state;

	h->s3.refuse = "PUT /b-1/runs/s-abcd-1/";
	h->s3.refuse_status = 403;
	h->s3.refuse_body = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>";
	h->s3.refusals = 1000;
	submit_suite_of_pods_there(h);
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs/s-abcd/cancel", "{}"), 200);
	rig_until(h->r, !named(h, "s-abcd") && !exports_waiting(h->r->m.exports));
	assert_true(exports_failed(h->r->m.exports));
	int64_t ends_ms = clock_boot_ms() + MACHINE_END_FIRST_MS + 500; /* if nothing was lost */

	rig_until(h->r, steps(h) && clock_boot_ms() > ends_ms);
	assert_int_equal(place_of(h, "detach", "master"), -1);
}

/* The index of results that are kept here; "": there is none now. */
static void read_index(const struct handed *h, const char *run, struct buf *ret)
{
	CLEANUP(freep)
	char *path = xasprintf("%s/" LAYOUT_RUNS "/%s/" RESULTS_INDEX, h->r->home, run);

	buf_reset(ret);
	(void)file_read(path, ret, NULL);
}

/* What the index says of a file of the run is what the file is. */
static bool is_in_index(const struct handed *h, const char *run, const char *name, struct buf *text)
{
	CLEANUP(freep) char *path = xasprintf("%s/" LAYOUT_RUNS "/%s/%s", h->r->home, run, name);
	struct stat st;

	read_index(h, run, text);
	if (text->n == 0 || stat(path, &st) < 0)
		return false;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d;

	assert_int_equal(json_parse(buf_str(text), a, &d, NULL), 0);
	const struct doc *files = doc_array(d, "files");

	for (size_t i = 0; i < files->array.n; i++)
		if (str_is(doc_str(files->array.v[i], "path", STR("")), name))
			return doc_int(files->array.v[i], "size", -1) == st.st_size;
	return false;
}

static bool kept_here(const struct handed *h, const char *run, const char *name)
{
	CLEANUP(freep) char *path = xasprintf("%s/" LAYOUT_RUNS "/%s/%s", h->r->home, run, name);

	return file_exists(path);
}

/* The index is newer than the report, also when time has passed. */
static bool is_last(struct handed *h, const char *run)
{
	CLEANUP(freep)
	char *index = xasprintf("%s/" LAYOUT_RUNS "/%s/" RESULTS_INDEX, h->r->home, run);
	CLEANUP(freep) char *page = xasprintf("%s/" LAYOUT_RUNS "/%s/report.html", h->r->home, run);
	int64_t until_ms = clock_boot_ms() + 1000;
	struct stat x, y;

	rig_until(h->r, clock_boot_ms() > until_ms);
	assert_int_equal(stat(index, &x), 0);
	assert_int_equal(stat(page, &y), 0);
	return x.st_mtim.tv_sec > y.st_mtim.tv_sec ||
	       (x.st_mtim.tv_sec == y.st_mtim.tv_sec && x.st_mtim.tv_nsec > y.st_mtim.tv_nsec);
}

/* Rule: what changes a file of results that wait to be fetched makes their index again. */
static void kept_results_are_what_their_index_says(void **state)
{
	struct handed *h = *state;
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 1 << 20);
	be_there(h);
	h->r->adopted = "root account role binding program master";
	assert_int_equal(
		rig_http(h->r, "POST", "/api/v1/runs",
			 "{\"request_id\":\"request-0123456789\",\"run\":\"s-abcd\"," OF_PODS
			 "\"facts\":{" IN_CLUSTER ROOT_AND_MASTER "}}"),
		201);
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs/s-abcd/cancel", "{\"hurry\":true}"),
			 200);
	rig_until(h->r, is_in_index(h, "s-abcd", "summary.json", &text));
	rig_until(h->r, !exports_waiting(h->r->m.exports) && !reports_waiting(h->r->m.reports));
	assert_true(is_last(h, "s-abcd"));
	assert_int_equal(
		rig_http(h->r, "POST", "/api/v1/runs/s-abcd/tags", "{\"add\":[\"a-new-tag\"]}"),
		200);
	assert_false(is_in_index(h, "s-abcd", "summary.json", &text)); /* not before the new one */
	rig_until(h->r, is_in_index(h, "s-abcd", "summary.json", &text));
	rig_until(h->r, !exports_waiting(h->r->m.exports) && !reports_waiting(h->r->m.reports));
	assert_true(is_in_index(h, "s-abcd", "summary.json", &text));
	assert_true(is_last(h, "s-abcd"));
}

static int64_t changed_at(const struct handed *h, const char *run, const char *name)
{
	CLEANUP(freep) char *path = xasprintf("%s/" LAYOUT_RUNS "/%s/%s", h->r->home, run, name);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
}

/* A run in a cluster whose results stay with this master; it ends at once. */
static void keep_results_here(struct handed *h, const char *more)
{
	CLEANUP(freep)
	char *body =
		xasprintf("{\"request_id\":\"request-0123456789\",\"run\":\"s-abcd\","
			  "\"job\":{\"name\":\"s\",\"command\":[\"true\"],\"engine\":"
			  "\"kubernetes\",\"kubernetes\":{\"image\":\"i\"}%s},\"base_dir\":"
			  "\"/\",\"client_env\":{},\"facts\":{" IN_CLUSTER ROOT_AND_MASTER "}}",
			  more);

	be_there(h);
	h->r->adopted = "root account role binding program master";
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs", body), 201);
}

static void cancel_it(struct handed *h)
{
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs/s-abcd/cancel", "{\"hurry\":true}"),
			 200);
}

/* Rule: so does a change while the index is being made. */
static void results_that_change_while_they_are_indexed_are_indexed_again(void **state)
{
	struct handed *h = *state;

	keep_results_here(h, "");
	cancel_it(h);
	while (!kept_here(h, "s-abcd", RESULTS_RECORD)) { /* its index is next */
		rig_let_work_go(h->r);
		h->r->work_waits = true;
		assert_true(rig_turn(h->r));
	}
	assert_int_equal(
		rig_http(h->r, "POST", "/api/v1/runs/s-abcd/tags", "{\"add\":[\"a-new-tag\"]}"),
		200);
	rig_let_work_go(h->r);
	rig_until(h->r, !exports_waiting(h->r->m.exports) && !reports_waiting(h->r->m.reports));
	assert_true(changed_at(h, "s-abcd", RESULTS_RECORD) >
		    changed_at(h, "s-abcd", "summary.json"));
	assert_true(is_last(h, "s-abcd"));
}

/* Rule: results are kept without a report, too, if none can be begun. */
static void results_are_kept_without_a_report_that_cannot_be_begun(void **state)
{
	struct handed *h = *state;

	keep_results_here(h, "");
	for (int i = 0; i < 200; i++) {
		CLEANUP(freep)
		char *taken = xasprintf("%s/" LAYOUT_RUNS "/s-abcd/.report.html.%d-%d", h->r->home,
					(int)getpid(), i);

		assert_int_equal(file_write(taken, STR(""), 0600, NULL), 0);
	}
	cancel_it(h);
	rig_until(h->r, kept_here(h, "s-abcd", LAYOUT_RESULTS));
	assert_true(kept_here(h, "s-abcd", RESULTS_INDEX));
}

/* Rule: what on_finish prints is in the results as it is, however long it takes. */
static void what_on_finish_prints_is_what_the_index_says(void **state)
{
	struct handed *h = *state;
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 1 << 20);
	keep_results_here(h, ",\"on_finish\":{\"command\":[\"/bin/sh\",\"-c\","
			     "\"echo tried; [ -e $REGATTA_RUN_DIR/again ] || "
			     "{ : >$REGATTA_RUN_DIR/again; exit 1; }\"]}");
	cancel_it(h);
	rig_until(h->r, kept_here(h, "s-abcd", "on_finish.json"));
	rig_until(h->r, !exports_waiting(h->r->m.exports));
	assert_true(is_in_index(h, "s-abcd", "on_finish.log", &text));
}

/* Rule: a master that is killed while a tag changes results makes their index again. */
static void an_index_is_not_removed_before_the_note_that_it_is_there(void **state)
{
	struct handed *h = *state;
	CLEANUP(freep)
	char *index = xasprintf("%s/" LAYOUT_RUNS "/s-abcd/" RESULTS_INDEX, h->r->home);

	keep_results_here(h, "");
	cancel_it(h);
	rig_until(h->r,
		  kept_here(h, "s-abcd", LAYOUT_RESULTS) && !exports_waiting(h->r->m.exports));
	/* The index cannot be removed, as if the master were killed before it is. */
	assert_int_equal(unlink(index), 0);
	assert_int_equal(mkdir(index, 0700), 0);
	assert_int_equal(
		rig_http(h->r, "POST", "/api/v1/runs/s-abcd/tags", "{\"add\":[\"a-new-tag\"]}"),
		200);
	assert_false(kept_here(h, "s-abcd", LAYOUT_RESULTS));
	rig_crash(h->r);
	assert_int_equal(rmdir(index), 0);
}

/* Rule: whoever made the machine asks for each run whether it was copied, also of many that were not. */
static void every_copy_that_was_given_up_is_told(void **state)
{
	enum { RUNS = 18 };
	struct handed *h = *state;
	bool given_up;

	h->s3.refuse = "PUT /b-1/runs/";
	h->s3.refuse_status = 403;
	h->s3.refuse_body = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>";
	h->s3.refusals = 1000;
	be_there(h);
	for (int i = 1; i <= RUNS; i++) {
		CLEANUP(freep)
		char *body = xasprintf(
			"{\"request_id\":\"request-0123456789-%d\",\"job\":{\"name\":\"t\","
			"\"command\":[\"true\"],\"output\":{\"s3\":\"s3://b-1/runs\"}},\"base_dir\":"
			"\"/\",\"client_env\":{},\"credentials\":{\"store\":%s}}",
			i, h->s3.credentials);

		assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs", body), 201);
		rig_cancel(h->r, true);
		rig_until(h->r, !rig_run(h->r));
	}
	rig_until(h->r, !exports_waiting(h->r->m.exports));
	for (int64_t no = 1; no <= RUNS; no++)
		assert_non_null(exports_failure(h->r->m.exports, no, &given_up));
}

static void the_carrier_ends_after_its_suite_and_then_the_machine(void **state)
{
	struct handed *h = *state;
	CLEANUP(freep) char *left = xasprintf("%s/" LAYOUT_RUNS "/s-abcd/suite.json", h->r->home);
	CLEANUP(buf_release) struct buf text = {0};

	submit_suite_there(h);
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs/s-abcd/cancel", "{}"), 200);
	assert_int_equal(named(h, "s-abcd")->core->verdict, VERDICT_NONE);
	rig_until(h->r, !named(h, "s-abcd-1") && !named(h, "s-abcd-2"));
	rig_until(h->r, !named(h, "s-abcd"));
	assert_int_equal(rig_stored(h->r, "SELECT verdict FROM run WHERE id = 's-abcd'"),
			 VERDICT_CANCELLED);
	buf_init(&text, 1 << 20);
	assert_int_equal(file_read(left, &text, NULL), 0);
	assert_non_null(strstr(text.p, "\"state\":\"cancelled\""));
}

/* Rule: a machine that is about to end makes no others for its suite. */
static void a_suite_is_not_resumed_on_the_machine_of_its_carrier(void **state)
{
	struct handed *h = *state;

	submit_suite_there(h);
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs/s-abcd/cancel", "{}"), 200);
	rig_until(h->r, !named(h, "s-abcd"));
	assert_int_equal(resume_with(h, "s-abcd", "{}"), 409);
	assert_int_equal(rig_stored(h->r, "SELECT count(*) FROM run"), 3);
}

/* A crash between the end of the suite and that of its carrier. */
static void a_carrier_whose_suite_has_ended_is_ended_by_the_next_master(void **state)
{
	struct handed *h = *state;

	submit_suite_there(h);
	rig_crash(h->r);
	rig_damage(h->r, "UPDATE suite SET phase = 4, ended_ms = 1");
	rig_damage(h->r, "UPDATE suite_entry SET state = 4");
	assert_true(rig_start(h->r));
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs/s-abcd-1/cancel", "{}"), 200);
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs/s-abcd-2/cancel", "{}"), 200);
	rig_until(h->r, !named(h, "s-abcd"));
	assert_int_equal(rig_stored(h->r, "SELECT verdict FROM run WHERE id = 's-abcd'"),
			 VERDICT_FAILED);
}

/* The suite is in the store, but cannot be read. */
static void a_carrier_whose_suite_cannot_go_on_has_failed(void **state)
{
	struct handed *h = *state;

	submit_suite_there(h);
	rig_crash(h->r);
	rig_damage(h->r, "UPDATE suite SET doc = '{'");
	assert_true(rig_start(h->r));
	/* Not before its runs, whose nodes nobody else would end. */
	rig_until(h->r, named(h, "s-abcd")->core->phase == RUN_RUNNING);
	assert_true(named(h, "s-abcd-1") && named(h, "s-abcd-2"));
	assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs/s-abcd/cancel", "{}"), 200);
	rig_until(h->r, !named(h, "s-abcd-1") && !named(h, "s-abcd-2"));
	assert_true(named(h, "s-abcd"));
	rig_until(h->r, !named(h, "s-abcd"));
	assert_int_equal(rig_stored(h->r, "SELECT verdict FROM run WHERE id = 's-abcd'"),
			 VERDICT_FAILED);
}

/* The id of an entry may be the beginning of that of another, which was made before. */
static void a_run_of_a_suite_may_have_the_beginning_of_the_id_of_another(void **state)
{
	static const struct {
		const char *id;
		int status;
	} rows[] = {{"s-abcd-30", 201},
		    {"s-abcd-3", 201},
		    {"s-abcd-31", 201},
		    {"s-abcd-r2-3", 400},
		    {"s-abcd-31", 409}};
	struct handed *h = *state;

	submit_suite_there(h);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP(freep)
		char *body = xasprintf("{\"request_id\":\"entry-0123456789-%zu\",\"run\":\"%s\","
				       "\"job\":" JOB ",\"base_dir\":\"/\",\"client_env\":{},"
				       "\"credentials\":%s,\"facts\":{" FACTS ADOPTED "}}",
				       i, rows[i].id, h->s3.credentials);

		assert_int_equal(rig_http(h->r, "POST", "/api/v1/runs", body), rows[i].status);
	}
}

#define handed_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		handed_test(the_archive_goes_first_and_no_credentials_go_at_all),
		handed_test(credentials_for_stores_go_along),
		handed_test(the_tags_of_the_run_go_along),
		handed_test(what_is_made_is_recorded_with_its_kind_and_name),
		handed_test(an_archive_that_does_not_arrive_is_sent_again_before_the_run),
		handed_test(an_archive_that_is_refused_ends_the_run),
		handed_test(a_server_with_another_key_is_told_nothing),
		handed_test(an_offer_whose_answer_is_lost_is_made_again),
		handed_test(a_master_that_dies_with_an_offer_open_offers_again),
		handed_test(what_the_run_waits_for_there_is_shown_here),
		handed_test(credentials_that_expire_are_shown_and_the_run_goes_on),
		handed_test(a_cancel_is_passed_on),
		handed_test(results_that_the_other_master_has_given_up_are_the_cause),
		handed_test(a_store_that_refuses_this_master_does_not_keep_the_run),
		handed_test(what_a_lost_master_left_is_swept_until_it_is_gone),
		handed_test(the_machine_ends_itself_after_its_run_and_its_group),
		handed_test(a_machine_that_cannot_end_says_why),
		handed_test(results_that_cannot_be_copied_keep_the_machine_for_a_while),
		handed_test(a_suite_has_one_master_which_gets_all_of_it_but_no_credentials),
		handed_test(a_cancel_of_the_suite_reaches_the_master_that_has_it),
		handed_test(a_suite_whose_master_is_lost_comes_back_without_what_ran),
		handed_test(runs_that_cannot_be_taken_in_now_are_taken_in_later),
		handed_test(the_next_master_knows_that_the_suite_has_ended_there),
		handed_test(what_succeeded_at_a_lost_master_has_not_failed),
		handed_test(what_started_and_succeeded_at_a_lost_master_does_not_wait),
		handed_test(a_resumed_suite_gets_a_master_again_which_knows_what_succeeded),
		handed_test(a_suite_comes_back_from_its_second_master),
		handed_test(results_of_the_second_master_are_taken_in_later),
		handed_test(a_suite_whose_submission_is_lost_comes_back),
		handed_test(who_resumes_a_suite_gives_it_credentials),
		handed_test(a_resume_whose_carrier_is_refused_changes_nothing),
		handed_test(a_carrier_that_could_not_be_made_is_not_taken_for_the_next),
		handed_test(a_removed_run_of_a_suite_is_not_another_one),
		handed_test(the_runs_of_a_suite_are_found_where_their_master_is_now),
		handed_test(a_suite_that_the_other_master_refuses_has_ended_in_the_store_too),
		handed_test(an_entry_that_cannot_be_meant_is_passed_over),
		handed_test(variants_that_need_different_things_have_masters_of_their_own),
		handed_test(a_suite_of_pods_has_one_master_which_is_told_how_many_runs_it_gets),
		handed_test(variants_of_two_clusters_have_masters_of_their_own),
		handed_test(a_suite_whose_names_are_too_long_has_a_master_for_each_run),
		handed_test(a_suite_of_very_many_runs_has_a_master_for_each),
		handed_test(a_carrier_is_collected_with_all_runs_of_its_suite),
		handed_test(runs_of_a_suite_that_were_not_copied_are_fetched_and_taken_in),
		handed_test(results_of_a_master_that_is_not_found_now_are_waited_for),
		handed_test(runs_of_a_suite_without_results_are_not_waited_for),
		handed_test(results_that_a_lost_master_had_of_a_suites_runs_are_missed),
		handed_test(a_master_that_has_lost_the_suite_has_lost_its_results),
		handed_test(the_suite_goes_on_there_as_it_stood),
		handed_test(entries_that_cannot_be_meant_are_refused),
		handed_test(the_runs_of_a_suite_share_the_machine_which_its_carrier_pays),
		handed_test(the_runs_of_a_suite_of_pods_have_what_their_carrier_has_for_them),
		handed_test(the_master_of_a_suite_of_pods_ends_itself),
		handed_test(results_of_one_run_keep_the_master_of_a_suite),
		handed_test(kept_results_are_what_their_index_says),
		handed_test(results_that_change_while_they_are_indexed_are_indexed_again),
		handed_test(results_are_kept_without_a_report_that_cannot_be_begun),
		handed_test(what_on_finish_prints_is_what_the_index_says),
		handed_test(an_index_is_not_removed_before_the_note_that_it_is_there),
		handed_test(every_copy_that_was_given_up_is_told),
		handed_test(the_carrier_ends_after_its_suite_and_then_the_machine),
		handed_test(a_suite_is_not_resumed_on_the_machine_of_its_carrier),
		handed_test(a_carrier_whose_suite_has_ended_is_ended_by_the_next_master),
		handed_test(a_carrier_whose_suite_cannot_go_on_has_failed),
		handed_test(a_run_of_a_suite_may_have_the_beginning_of_the_id_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
