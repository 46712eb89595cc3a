/* Checks for engines that use existing machines: what they cannot do. */
#include "base/arena.h"
#include "plan/internal.h"

static bool is_remote(const char *src)
{
	static const char *const schemes[] = {"s3://", "docker://", "git+", "http://", "https://"};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strncmp(src, schemes[i], strlen(schemes[i])) == 0)
			return true;
	return false;
}

static void check_inputs(const struct job *job, const char *engine, struct arena *a,
			 struct problems *ps)
{
	const struct data_spec *data = job->data.v;

	if (job->source && is_remote(job->source))
		problems_add(
			ps, a, job->source_pos,
			"engine %s takes a file or directory as source, not '%s': fetch it first and "
			"name the copy",
			engine, job->source);
	for (size_t i = 0; i < job->data.n; i++) {
		bool fetched = data_is_url(&data[i]) && !plan_shares_files(job); /* by the node */

		if (fetched && data[i].shard)
			problems_add(ps, a, data[i].pos,
				     "data: '%s' is one file and cannot be sharded", data[i].src);
		if (!fetched && is_remote(data[i].src))
			problems_add(
				ps, a, data[i].pos,
				"engine %s takes a file or directory as src of data, not '%s': fetch it "
				"first and name the copy",
				engine, data[i].src);
	}
}

static void check_images(const struct job *job, const char *engine, struct arena *a,
			 struct problems *ps)
{
	if (job->image)
		problems_add(
			ps, a, job->image_pos,
			"image: engine %s runs no containers: leave out image, or put docker run in "
			"the command",
			engine);
	for (size_t i = 0; i < job->roles.n; i++) {
		const struct role *r = job_role(job, i);

		if (r->image)
			problems_add(
				ps, a, r->pos,
				"roles.%s: engine %s runs no containers: leave out image, or put "
				"docker run in the command",
				r->name, engine);
	}
}

void plan_check_files(const struct job *job, const char *engine, struct arena *a,
		      struct problems *ps)
{
	check_inputs(job, engine, a, ps);
	if (job->output.s3)
		problems_add(
			ps, a, job->output.s3_pos,
			"engine %s writes nothing to S3: leave out output.s3; the files are in outputs/ of the run",
			engine);
	check_images(job, engine, a, ps);
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
	plan_check_files(job, engine, a, ps);
	return ps->n + ps->more == before;
}
