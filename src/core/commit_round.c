#include "core/commit_round.h"

int round_save_rows(struct core_run *r, const struct effects *fx, const struct round_rows *to,
		    void *run, struct err *err)
{
	for (size_t i = 0; i < fx->nodes.n; i++) {
		struct core_node *n = &r->nodes[fx->nodes.v[i]];
		if (to->save_node(run, fx->nodes.v[i], n, err) < 0)
			return -1;
		n->dirty = false;
	}
	for (size_t i = 0; i < fx->resources.n; i++) {
		struct core_resource *res = &r->resources[fx->resources.v[i]];
		if (to->save_resource(run, fx->resources.v[i], res, err) < 0)
			return -1;
		res->dirty = false;
	}
	if (r->dirty && to->save_run(run, r, err) < 0)
		return -1;
	r->dirty = false;
	return 0;
}

int round_commit(const struct round_order *order, void *shell, struct err *err)
{
	if (order->save(shell, err) < 0 || order->commit(shell, err) < 0)
		return -1;
	order->hand_out(shell);
	return 0;
}
