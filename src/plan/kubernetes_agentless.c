/* kubernetes_agentless - what a job may not have if its pods run without the agent. */
#include <string.h>

#include "base/arena.h"
#include "plan/kubernetes.h"
#include "spec/secret.h"

static const char *secret_in(const struct job *job, const struct env_list *env)
{
	for (size_t i = 0; i < env->n; i++)
		if (secret_name(job, str_from(env->v[i].name)))
			return env->v[i].name;
	return NULL;
}

static const char *first_secret(const struct job *job)
{
	const char *name = secret_in(job, &job->env);

	for (size_t i = 0; i < job->roles.n && !name; i++)
		name = secret_in(job, &job_role(job, i)->env);
	return name;
}

/* Of a job without roles, or of a role. */
static const char *of_policy(const struct policy *p, bool job, struct arena *a)
{
	if (p->on_lost != LOST_FAIL)
		return "on_lost other than fail";
	if (p->min != p->max)
		return "min and max";
	/* An operator has its own retries. */
	return job && p->retries ? arena_printf(a, "retries = %d", (int)p->retries) : NULL;
}

const char *kube_needs_agent(const struct job *job, const struct kube_table *t, struct arena *a)
{
	bool as_job = t->as == KUBE_JOB;
	const char *secret = first_secret(job);
	const char *what = job->roles.n ? NULL : of_policy(&job->policy, as_job, a);

	if (job->data.n || job->source)
		return "source and [[data]]";
	if (job_sets_up(job))
		return "setup and packages";
	if (job->output.keep.n)
		return "output.keep";
	if (as_job && strcmp(job->strategy, "mpi") == 0)
		return "strategy mpi";
	if (t->as == KUBE_MPIJOB && job->roles.n == 0)
		return "strategy mpi without the roles launcher and worker";
	if (secret)
		return arena_printf(a, "the secret variable %s", secret);
	for (size_t i = 0; i < job->roles.n && !what; i++) {
		const struct role *r = job_role(job, i);

		what = r->after.n ? arena_printf(a, "roles.%s.after", r->name)
				  : of_policy(&r->policy, as_job, a);
	}
	return what;
}
