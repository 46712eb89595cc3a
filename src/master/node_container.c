#include "master/node_container.h"

#include "base/arena.h"
#include "fmt/doc.h"
#include "link/message.h"
#include "master/live_run.h"
#include "plan/plan.h"
#include "spec/job.h"
#include "spec/variable.h"
#include "strategy/strategy.h"

bool client_variable_hidden(const struct live_run *lr, const char *image, struct str name)
{
	static const char *const inside[] = {"LANG", "LC_", "TZ", "TERM", "CUDA_", "NVIDIA_"};
	const char *password = lr->job->registry.password_env;

	if (password && str_is(name, password))
		return true;
	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
		struct str known = str_from(inside[i]);
		bool prefix = known.p[known.n - 1] == '_';

		if (prefix ? str_starts(name, known) : str_eq(name, known))
			return false;
	}
	return image != NULL && !variable_matches(&lr->job->pass, name);
}

static const char *password(const struct live_run *lr, struct arena *a)
{
	struct doc *env = NULL;

	if (!lr->job->registry.password_env ||
	    json_parse(str_from(lr->client_env), a, &env, NULL) < 0)
		return NULL;
	return doc_str(env, lr->job->registry.password_env, (struct str){0}).p;
}

void node_container_put(const struct live_run *lr, int rank, struct arena *a,
			struct message_inputs *m)
{
	const struct crew *crew = &lr->plan.crew;

	if (plan_contains(lr->job))
		return;
	m->image = job_image(lr->job, crew->roles[crew->members[rank].role].spec);
	if (!m->image)
		return;
	m->image_source = lr->job->source ? input_in_image(lr->job->source) : NULL;
	m->new_machine = plan_makes_machines(lr->job);
	m->registry_user = lr->job->registry.user;
	m->registry_password = password(lr, a);
	m->registry_login = lr->job->registry.login != NULL;
}
