#pragma once
/* A session whose every service is a fake server, and whose environment is the test's. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/aws/api/aws.h"
#include "fake_http.h"

#define RIG_VARS 24

struct rig {
	struct fake_http fake;
	struct aws *s;
	struct err err;
	struct deadline d;
	char *names[RIG_VARS], *values[RIG_VARS];
	char *dir; /* HOME, empty */
};

static inline const char *rig_env(void *ctx, const char *name)
{
	struct rig *r = ctx;

	for (size_t i = 0; i < RIG_VARS; i++)
		if (r->names[i] && strcmp(r->names[i], name) == 0)
			return r->values[i];
	return NULL;
}

/* NULL unsets it. */
static inline void rig_set(struct rig *r, const char *name, const char *value)
{
	size_t free_at = RIG_VARS;

	for (size_t i = 0; i < RIG_VARS; i++) {
		if (r->names[i] && strcmp(r->names[i], name) == 0) {
			free(r->names[i]);
			free(r->values[i]);
			r->names[i] = r->values[i] = NULL;
		}
		if (!r->names[i] && free_at == RIG_VARS)
			free_at = i;
	}
	if (!value)
		return;
	assert_true(free_at < RIG_VARS);
	r->names[free_at] = xstrdup(name);
	r->values[free_at] = xstrdup(value);
}

static inline void rig_write(struct rig *r, const char *name, const char *text)
{
	char *path = xasprintf("%s/%s", r->dir, name), *slash = strrchr(path, '/');

	*slash = '\0';
	assert_int_equal(file_mkdir_p(path, 0700, &r->err), 0);
	*slash = '/';
	assert_int_equal(file_write(path, str_from(text), 0600, &r->err), 0);
	free(path);
}

static inline int rig_setup(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	void *dir = NULL;

	if (unit_make_dir(&dir) < 0)
		return -1;
	r->dir = dir;
	r->d = deadline_in(20000, NULL);
	fake_start(&r->fake);
	rig_set(r, "HOME", r->dir);
	rig_set(r, "AWS_ENDPOINT_URL", r->fake.url);
	rig_set(r, "AWS_EC2_METADATA_SERVICE_ENDPOINT", r->fake.url);
	rig_set(r, "AWS_REGION", "eu-west-1");
	rig_set(r, "AWS_ACCESS_KEY_ID", "AKIDTEST");
	rig_set(r, "AWS_SECRET_ACCESS_KEY", "secret");
	*state = r;
	return 0;
}

static inline int rig_teardown(void **state)
{
	struct rig *r = *state;
	void *dir = r->dir;

	r->s = aws_free(r->s);
	fake_stop(&r->fake);
	for (size_t i = 0; i < RIG_VARS; i++) {
		free(r->names[i]);
		free(r->values[i]);
	}
	free(r);
	return unit_remove_dir(&dir);
}

static inline int rig_try_open(struct rig *r, struct aws_config c)
{
	c.env = (struct env_lookup){rig_env, r};
	r->s = aws_free(r->s);
	return aws_open(&c, &r->d, &r->s, &r->err);
}

static inline void rig_open(struct rig *r)
{
	if (rig_try_open(r, (struct aws_config){0}) < 0)
		fail_msg("%s", r->err.msg);
}

/* One call without parameters. */
static inline int rig_ask(struct rig *r, const char *service, const char *action,
			  struct aws_answer *ret)
{
	struct aws_request q;

	aws_request_init(&q, service, action);
	int rc = aws_query(r->s, &q, &r->d, ret, &r->err);

	aws_request_release(&q);
	return rc;
}

#define rig_test(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)
