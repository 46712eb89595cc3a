#pragma once
/* A job with its crew and the environment of its nodes, as plan and agent make them. */
#include "../spec/golden.h"

#include "strategy/strategy.h"

struct fixture {
	struct job job;
	const struct strategy *strategy;
	struct crew crew;
	struct env_input in;
	struct expand_members members;
	struct expand_here here;
};

/* The job with what its strategy adds; it must be good. */
static inline struct job complete_job(struct arena *arena, const char *text)
{
	const struct job_rules rules = {.complete = strategy_complete,
					.brings_command = strategy_brings_command};

	return good_job_by(arena, text, &rules);
}

static inline struct fixture *fixture_make(struct arena *arena, const char *text)
{
	struct fixture *f = arena_new_of(arena, struct fixture);
	struct problems ps = {0};

	f->job = complete_job(arena, text);
	f->strategy = strategy_for(&f->job, arena, &ps);
	if (!f->strategy || !strategy_crew(f->strategy, &f->job, arena, &f->crew, &ps))
		fail_msg("%s", ps.v[0].text);
	const char **addresses = arena_array(arena, const char *, (size_t)f->crew.n);
	for (int i = 0; i < f->crew.n; i++)
		addresses[i] = arena_printf(arena, "127.1.%d.%d", i / 250, i % 250 + 1);
	f->in = (struct env_input){
		.job = &f->job,
		.crew = &f->crew,
		.run_id = "ctr-abcd",
		.master_endpoint = "127.0.0.1:5436",
	};
	strategy_members(&f->crew, addresses, arena, &f->members);
	f->here = (struct expand_here){
		.members = &f->members,
		.attempt = 1,
		.interface = "lo",
		.output = "/run/out",
		.work = "/run/work",
		.hostfile = "/run/hostfile",
		.machinefile = "/run/machinefile",
		.metrics = "/run/metrics",
		.rsh = "/run/regatta-rsh",
		.tee = "/run/regatta-tee",
	};
	return f;
}

static inline struct env_list fixture_env(struct fixture *f, struct arena *arena, int rank)
{
	struct env_list templates, env;

	f->here.rank = rank;
	strategy_env(f->strategy, &f->in, f->crew.members[rank].role, arena, &templates);
	strategy_env_expand(&templates, &f->here, "/run/long", arena, &env);
	return env;
}

static inline const char *env_get(struct env_list env, const char *name)
{
	for (size_t i = 0; i < env.n; i++)
		if (strcmp(env.v[i].name, name) == 0)
			return env.v[i].value;
	return NULL;
}

static inline void env_is(struct env_list env, const char *name, const char *value)
{
	const char *got = env_get(env, name);

	if (!got)
		fail_msg("%s is not set", name);
	assert_string_equal(got, value);
}

static inline void env_has_no(struct env_list env, const char *name)
{
	if (env_get(env, name))
		fail_msg("%s is set to %s", name, env_get(env, name));
}
