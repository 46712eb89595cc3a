#pragma once
/* Rows of drivers whose cluster is a script: for each call the answers that it gets, in order. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/deadline.h"
#include "base/file.h"
#include "driver/driver.h"
#include "driver/kube/api/kube.h"
#include "fake_http.h"
#include "fmt/doc.h"

#define RIG_STEPS 96
#define RIG_CUT (-1)
#define JSON_HEADERS "Content-Type: application/json\r\n"
#define STATUS(text) "{\"kind\":\"Status\",\"message\":\"" text "\"}"

struct rig_step {
	const char *call; /* "GET /api/v1/..." */
	int status; /* 0: the connection is cut; RIG_CUT: after the body, of which more was to come */
	const char *body, *headers;
	bool used;
};

struct rig {
	struct fake_http fake;
	struct rig_step steps[RIG_STEPS];
	int n;
	struct arena *a;
	char *credentials;
	struct deadline d;
	struct driver_row row;
	struct driver_need needs[2];
	struct driver_member members[4];
	struct driver_services services;
	struct kube_access access;
	struct kube_client *k;
	struct err err;
	char *config; /* a kubeconfig, of rig_config_test() */
};

static inline bool rig_answer(struct fake_http *f, int fd, int nth, const struct fake_asked *asked)
{
	struct rig *r = f->ctx;

	(void)nth;
	for (int i = 0; i < r->n; i++) {
		struct rig_step *s = &r->steps[i];

		if (s->used || !fake_is(asked, s->call))
			continue;
		s->used = true;
		if (s->status == RIG_CUT) {
			fake_raw(fd, "HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n");
			fake_raw(fd, s->body);
			return false;
		}
		if (s->status)
			fake_say(fd, s->status, s->headers, s->body);
		return s->status != 0;
	}
	fake_say(fd, 400, JSON_HEADERS, STATUS("not in the script"));
	return true;
}

static inline void rig_expect(struct rig *r, const char *call, int status, const char *body)
{
	assert_true(r->n < RIG_STEPS);
	r->steps[r->n++] = (struct rig_step){
		.call = call, .status = status, .body = body, .headers = JSON_HEADERS};
}

/* A new script. */
static inline void rig_forget(struct rig *r)
{
	r->n = 0;
}

/* Everything that was expected has been asked, and nothing else. */
static inline void rig_done(struct rig *r)
{
	for (int i = 0; i < r->n; i++)
		if (!r->steps[i].used)
			fail_msg("%s was not asked", r->steps[i].call);
	assert_int_equal(r->fake.n, r->n);
}

static inline int rig_setup(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));

	r->a = arena_new();
	r->fake.answer = rig_answer;
	r->fake.ctx = r;
	fake_start(&r->fake);
	r->credentials =
		xasprintf("{\"server\":\"%s/prefix/\",\"namespace\":\"team\",\"token\":\"tok\"}",
			  r->fake.url);
	r->d = deadline_in(20000, NULL);
	r->services =
		(struct driver_services){.url = "https://10.0.0.1:5436", .pin = "sha256//pin"};
	r->needs[0] = (struct driver_need){"kube.root", "root", "uid-root"};
	r->row = (struct driver_row){
		.deadline = &r->d,
		.kind = "kube.x",
		.name = "x",
		.install = "i1",
		.run = "r1",
		.role = "",
		.attempt = 1,
		.batch = 1,
		.credentials = r->credentials,
		.needs = r->needs,
		.nneeds = 1,
		.members = r->members,
		.services = &r->services,
		.enrol = "1.2.3.mac",
	};
	assert_int_equal(access_from_json(r->credentials, NULL, r->a, &r->access, &r->err), 0);
	assert_int_equal(kube_open(&r->access, &r->k, &r->err), 0);
	*state = r;
	return 0;
}

static inline int rig_teardown(void **state)
{
	struct rig *r = *state;

	kube_free(r->k);
	fake_stop(&r->fake);
	arena_free(r->a);
	free(r->credentials);
	free(r);
	return 0;
}

#define rig_test(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

/* With a kubeconfig whose only context is the script, namespace team. */
static inline int rig_config_setup(void **state)
{
	struct rig *r;
	void *dir = NULL;

	if (rig_setup(state) < 0 || unit_make_dir(&dir) < 0)
		return -1;
	r = *state;
	r->config = xasprintf("%s/config", (char *)dir);
	char *text = xasprintf(
		"current-context: a\nclusters:\n- name: c\n  cluster: {server: \"%s\"}\n"
		"users:\n- name: u\n  user: {token: tok}\n"
		"contexts:\n- name: a\n  context: {cluster: c, user: u, namespace: team}\n",
		r->access.server);

	assert_int_equal(file_write(r->config, str_from(text), 0600, NULL), 0);
	setenv("KUBECONFIG", r->config, 1);
	free(text);
	free(dir);
	return 0;
}

static inline int rig_config_teardown(void **state)
{
	struct rig *r = *state;
	void *dir = xstrndup(r->config, strlen(r->config) - strlen("/config"));

	unsetenv("KUBECONFIG");
	free(r->config);
	return unit_remove_dir(&dir) < 0 ? -1 : rig_teardown(state);
}

#define rig_config_test(fn)                                                                        \
	cmocka_unit_test_setup_teardown(fn, rig_config_setup, rig_config_teardown)
