/* added - roles that a strategy brings itself, as if they stood in the file. */
#include "strategy/internal.h"

#include "base/arena.h"
#include "base/path.h"

struct role *added_find(const struct job *job, const char *name)
{
	for (size_t i = 0; i < job->roles.n; i++)
		if (strcmp(job_role(job, i)->name, name) == 0)
			return job_role(job, i);
	return NULL;
}

static struct role *append(struct job *job, struct arena *a, struct role r)
{
	struct role *v = arena_array(a, struct role, job->roles.n + 1);

	for (size_t i = 0; i < job->roles.n; i++)
		v[i] = *job_role(job, i);
	v[job->roles.n] = r;
	job->roles = (struct table_list){v, job->roles.n + 1};
	return &v[job->roles.n - 1];
}

void added_workers(struct job *job, struct arena *a)
{
	if (job->roles.n == 0)
		append(job, a, job_worker(job));
}

struct role *added_role(struct job *job, struct arena *a, const char *name)
{
	struct role *there = added_find(job, name);

	if (there)
		return there;
	return append(job, a,
		      (struct role){.name = name,
				    .count = 1,
				    .policy = {.min = 1, .max = 1},
				    .processes = 1,
				    .image = job->image,
				    .pos = job->strategy_pos});
}

bool added_has_command(const struct job *job, const struct role *r)
{
	return r->command.n > 0 && r->command.v != job->command.v;
}

void added_run_script(struct role *r, struct arena *a, const char *shell, const char *script)
{
	const char **v = arena_array(a, const char *, 3);

	v[0] = shell;
	v[1] = "-c";
	v[2] = script;
	r->command = (struct strs){v, 3};
}

const char *added_python(const struct job *job)
{
	for (size_t i = 0; i < job->roles.n; i++) {
		const struct role *r = job_role(job, i);

		if (!r->service && r->command.n > 0 &&
		    strncmp(path_base(r->command.v[0]), "python", strlen("python")) == 0)
			return r->command.v[0];
	}
	return "python3";
}
