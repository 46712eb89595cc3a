/*
 * The login with which a node pulls its image, from whoever gives it out for an hour or a day.  It is asked for when
 * the node is about to pull, and kept nowhere here.
 */
#include "base/arena.h"
#include "driver/registry_login.h"
#include "fmt/jsonw.h"
#include "master/api/api.h"
#include "master/api/node_task.h"
#include "master/live_run.h"
#include "spec/job.h"

#define ANSWER_MAX (64u << 10)

static void work(struct node_task *t, const struct deadline *d)
{
	struct registry_login got;
	struct jsonw w;

	if (registry_login_ask(t->with, d, t->a, &got, &t->err) < 0)
		return;
	jsonw_init(&w, &t->answer);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "user", got.user);
	jsonw_kz(&w, "password", got.password);
	jsonw_close(&w);
	buf_addc(&t->answer, '\n');
}

static const char *image_of(const struct live_run *lr, struct str node)
{
	const struct crew *crew = &lr->plan.crew;

	for (int i = 0; i < crew->n; i++)
		if (str_is(node, crew->members[i].name))
			return job_image(lr->job, crew->roles[crew->members[i].role].spec);
	return NULL;
}

int api_node_registry(struct api_call *c, struct err *err)
{
	const struct live_run *lr = map_get(c->m->runs, c->params[0]);
	const char *image = lr ? image_of(lr, c->params[1]) : NULL;

	if (!image || !lr->job->registry.login)
		return err_set(err, ERR_NOT_FOUND, "this run has no login for a registry");
	struct node_task *t = node_task_new(ANSWER_MAX);
	struct registry_question *q = arena_new_of(t->a, struct registry_question);

	q->login = arena_strdup(t->a, lr->job->registry.login);
	q->image = arena_strdup(t->a, image);
	q->credentials = lr->credentials ? arena_strdup(t->a, lr->credentials) : NULL;
	t->with = q;
	t->work = work;
	node_task_start(c, t);
	return 0;
}
