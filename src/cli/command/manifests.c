/* regatta manifests - a job as objects of Kubernetes, for kubectl apply and for repositories. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/command/commands.h"
#include "cli/command/job_input.h"
#include "fmt/doc.h"
#include "plan/plan.h"

int command_manifests(const struct cli_call *c)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct job_input in;
	int code = job_input_read_for(c, plan_manifests_engine(), &in);

	if (code != 0)
		return code;
	struct err err = {0};
	const struct doc *all = plan_manifests(&in.plan, in.a, &err);

	buf_init(&text, CLI_MAX_TEXT);
	for (size_t i = 0; all && i < all->array.n; i++) {
		buf_addz(&text, i ? "---\n" : "");
		doc_to_yaml(all->array.v[i], &text);
	}
	code = all ? cli_print(&text) : cli_fail(&err);
	job_input_release(&in);
	return code;
}
