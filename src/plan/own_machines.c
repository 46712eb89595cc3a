/* Checks for engines that use existing machines: what they cannot do. */
#include "base/arena.h"
#include "plan/internal.h"

/* A URL that nobody fetches. */
static bool is_other_url(const char *src)
{
	static const char *const schemes[] = {"docker://", "git+", "http://"};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strncmp(src, schemes[i], strlen(schemes[i])) == 0)
			return true;
	return false;
}

/* A source in the image needs one for each role. */
static void check_image_source(const struct job *job, struct arena *a, struct problems *ps)
{
	const char *path = input_in_image(job->source);
	bool all = job->roles.n > 0 || job->image;

	for (size_t i = 0; i < job->roles.n; i++)
		all = all && job_image(job, job_role(job, i));
	if (!all)
		problems_add(ps, a, job->source_pos,
			     "source '%s' is a path in an image: set image for every role",
			     job->source);
	else if (path[0] != '/')
		problems_add(ps, a, job->source_pos,
			     "source '%s': write docker:// and the absolute path in the image, "
			     "\"docker:///%s\"",
			     job->source, path);
}

static void check_inputs(const struct job *job, const char *engine, struct arena *a,
			 struct problems *ps)
{
	const struct data_spec *data = job->data.v;

	if (job->source && input_in_image(job->source))
		check_image_source(job, a, ps);
	else if (job->source && is_other_url(job->source) && !input_is_git(job->source))
		problems_add(
			ps, a, job->source_pos,
			"engine %s takes no source '%s': it takes a file, a directory, s3://, https://, "
			"git+https://...@REVISION and docker:///PATH",
			engine, job->source);
	for (size_t i = 0; i < job->data.n; i++) {
		const struct data_spec *d = &data[i];

		if (str_starts(str_from(d->src), STR("https://")) && d->shard)
			problems_add(ps, a, d->pos, "data: '%s' is one file and cannot be sharded",
				     d->src);
		if (is_other_url(d->src))
			problems_add(
				ps, a, d->pos,
				"engine %s takes no data from '%s': it takes a file, a directory, s3:// "
				"and https://",
				engine, d->src);
		if (d->path && d->path[0] == '/' && !plan_makes_machines(job))
			problems_add(
				ps, a, d->pos,
				"data: path '%s' must be a place below the work directory, because engine "
				"%s does not make machines for the run",
				d->path, engine);
	}
}

void plan_check_files(const struct job *job, const char *engine, struct arena *a,
		      struct problems *ps)
{
	check_inputs(job, engine, a, ps);
}

static void warn_of_packages(const struct job *job, const char *engine, struct arena *a,
			     struct problems *ps)
{
	struct doc_pos pos = job->packages_pos;
	bool any = job->packages.n > 0;

	for (size_t i = 0; i < job->roles.n && !any; i++) {
		any = job_role(job, i)->packages.n > 0;
		pos = job_role(job, i)->pos;
	}
	if (any)
		problems_warn(
			ps, a, pos,
			arena_printf(
				a,
				"packages are not installed here: engine %s uses machines as they are",
				engine));
}

void plan_warn_of_containers(const struct job *job, const char *engine, struct arena *a,
			     struct problems *ps)
{
	const struct volume_spec *volumes = job->volumes.v;

	if (plan_contains(job))
		return;
	if (job->volumes.n)
		problems_warn(ps, a, volumes[0].pos,
			      arena_printf(a, "volumes are not mounted by engine %s", engine));
}

void plan_warn_of_resources(const struct job *job, const char *engine, struct arena *a,
			    struct problems *ps)
{
	const struct resources_spec *needs = job->resources;

	for (size_t i = 0; i < job->roles.n && !needs; i++)
		needs = job_role(job, i)->resources;
	if (needs)
		problems_warn(
			ps, a, needs->pos,
			arena_printf(a, "resources keep nothing free with engine %s", engine));
}

bool plan_check_own_machines(const struct job *job, const char *engine, struct arena *a,
			     struct problems *ps)
{
	size_t before = ps->n + ps->more;

	if (job->max_cost > 0)
		problems_warn(
			ps, a, job->max_cost_pos,
			arena_printf(
				a,
				"max_cost stops nothing here: engine %s costs nothing; max_runtime limits the time",
				engine));
	warn_of_packages(job, engine, a, ps);
	plan_warn_of_containers(job, engine, a, ps);
	plan_check_files(job, engine, a, ps);
	return ps->n + ps->more == before;
}
