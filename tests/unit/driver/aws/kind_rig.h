#pragma once
/* Rows of drivers whose cloud is a script: for each call the answers that it gets, in order. */
#include "unit.h"

#include <pthread.h>
#include <string.h>

#include "base/deadline.h"
#include "driver/aws/aws_session.h"
#include "driver/driver.h"
#include "fake_http.h"

#define KIND_STEPS 64
#define OK(text) 200, (text)
#define NO(code, message)                                                                          \
	400, "<Response><Errors><Error><Code>" code "</Code><Message>" message                     \
	     "</Message></Error></Errors><RequestID>r-1</RequestID></Response>"
#define TAGS(install, run)                                                                         \
	"<tagSet><item><key>regatta:install</key><value>" install                                  \
	"</value></item><item><key>regatta:run</key><value>" run "</value></item></tagSet>"
#define OURS TAGS("i1", "r1")
#define HEADERS "Content-Type: text/xml\r\nx-amz-request-id: r-1\r\n"
#define DONE_XML "<XResponse><return>true</return></XResponse>"

struct kind_step {
	const char *call; /* "CreateSubnet", "GetParameter", or of S3 "PUT /bucket" */
	int status;	  /* 0: the connection is cut */
	const char *body;
	bool used;
};

struct kind_rig {
	struct fake_http fake;
	struct kind_step steps[KIND_STEPS];
	int n;
	const char *account;
	char *credentials;
	struct deadline d;
	struct driver_row row;
	struct driver_need needs[8];
};

/* The value of a parameter in the body of a request; "" if it has none. */
static inline const char *kind_param(const struct fake_asked *a, const char *name)
{
	static char out[4096];
	char *key = xasprintf("&%s=", name);
	const char *at = strstr(a->body ? a->body : "", key);

	out[0] = '\0';
	if (at)
		snprintf(out, sizeof(out), "%.*s", (int)strcspn(at + strlen(key), "&"),
			 at + strlen(key));
	free(key);
	return out;
}

static inline bool kind_is(const struct fake_asked *a, const char *call)
{
	size_t n = strlen(call);
	const char *target = a->head ? fake_header(a, "X-Amz-Target") : NULL;

	if (target)
		return strstr(target, call) != NULL;
	if (strchr(call, ' '))
		return fake_is(a, call);
	return a->body && strncmp(a->body, "Action=", 7) == 0 &&
	       strncmp(a->body + 7, call, n) == 0 && a->body[7 + n] == '&';
}

/* The answer to a HEAD has the length of a body, and no body. */
static inline void kind_say(int fd, const struct kind_step *s, bool head)
{
	char text[256];

	if (!head) {
		fake_say(fd, s->status, HEADERS, s->body);
		return;
	}
	snprintf(text, sizeof(text), "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\n\r\n", s->status,
		 HEADERS, strlen(s->body));
	fake_raw(fd, text);
}

static inline bool kind_answer(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	struct kind_rig *r = f->ctx;
	char identity[256];

	(void)nth;
	if (kind_is(asked, "GetCallerIdentity")) {
		snprintf(identity, sizeof(identity),
			 "<XResponse><GetCallerIdentityResult><Account>%s</Account>"
			 "</GetCallerIdentityResult></XResponse>",
			 r->account);
		fake_say(fd, 200, HEADERS, identity);
		return true;
	}
	for (int i = 0; i < r->n; i++) {
		struct kind_step *s = &r->steps[i];

		if (s->used || !kind_is(asked, s->call))
			continue;
		s->used = true;
		if (s->status)
			kind_say(fd, s, fake_is(asked, "HEAD "));
		return s->status != 0;
	}
	fake_say(fd, 400, HEADERS,
		 "<Response><Errors><Error><Code>NotInTheScript</Code><Message>m</Message></Error>"
		 "</Errors></Response>");
	return true;
}

static inline void kind_expect(struct kind_rig *r, const char *call, int status, const char *body)
{
	assert_true(r->n < KIND_STEPS);
	r->steps[r->n++] = (struct kind_step){.call = call, .status = status, .body = body};
}

/* Everything that was expected has been asked, and nothing else. */
static inline void kind_done(struct kind_rig *r)
{
	int calls = 0;

	for (int i = 0; i < r->n; i++)
		if (!r->steps[i].used)
			fail_msg("%s was not called", r->steps[i].call);
	for (int i = 0; i < r->fake.n; i++)
		calls += !kind_is(&r->fake.asked[i], "GetCallerIdentity");
	assert_int_equal(calls, r->n);
}

/* The nth request of that call, from 0. */
static inline const struct fake_asked *kind_asked(struct kind_rig *r, const char *call, int nth)
{
	for (int i = 0; i < r->fake.n; i++)
		if (kind_is(&r->fake.asked[i], call) && nth-- == 0)
			return &r->fake.asked[i];
	fail_msg("%s was not asked so often", call);
	return NULL;
}

static inline int kind_setup(void **state)
{
	struct kind_rig *r = xcalloc(1, sizeof(*r));

	r->account = "123456789012";
	r->fake.answer = kind_answer;
	r->fake.ctx = r;
	fake_start(&r->fake);
	r->credentials = xasprintf("{\"access_key\":\"AKIDTEST\",\"secret_key\":\"s\",\"env\":"
				   "{\"AWS_ENDPOINT_URL\":\"%s\"}}",
				   r->fake.url);
	r->d = deadline_in(20000, NULL);
	r->row = (struct driver_row){
		.deadline = &r->d,
		.kind = "ec2.x",
		.name = "x",
		.install = "i1",
		.run = "r1",
		.role = "",
		.attempt = 1,
		.batch = 1,
		.expires_ms = 1800000000000,
		.credentials = r->credentials,
		.needs = r->needs,
	};
	*state = r;
	return 0;
}

static inline int kind_teardown(void **state)
{
	struct kind_rig *r = *state;

	aws_sessions_drop();
	fake_stop(&r->fake);
	free(r->credentials);
	free(r);
	return 0;
}

#define kind_test(fn) cmocka_unit_test_setup_teardown(fn, kind_setup, kind_teardown)
