/* What the pod of a master in the cluster needs, each of them one object: its account, what that may do, its disk. */
#include "driver/kube/kube_kind.h"

static enum outcome create(struct driver_row *row)
{
	return kube_kind_ask(row, KUBE_CREATE, kube_kind_create);
}

static enum outcome find(struct driver_row *row)
{
	return kube_kind_ask(row, KUBE_FIND, kube_kind_find);
}

static enum outcome observe(struct driver_row *row)
{
	return kube_kind_ask(row, KUBE_OBSERVE, kube_kind_observe);
}

static enum outcome destroy(struct driver_row *row)
{
	return kube_kind_ask(row, KUBE_DESTROY, kube_kind_destroy);
}

/* The API server may not see a Role yet that it has just made: that passes. */
static enum outcome create_binding(struct driver_row *row)
{
	enum outcome o = create(row);

	if (o == OUTCOME_REFUSED && row->err.kind == ERR_NOT_FOUND)
		row->err.kind = ERR_UNAVAILABLE;
	return o;
}

#define ONE_OBJECT(driver_, kind_, create_)                                                        \
	const struct driver driver_ = {                                                            \
		.kind = (kind_),                                                                   \
		.pool = "kube",                                                                    \
		.create = (create_),                                                               \
		.find = find,                                                                      \
		.observe = observe,                                                                \
		.destroy = destroy,                                                                \
	}

ONE_OBJECT(kube_account_driver, "kube.account", create); /* a ServiceAccount */
ONE_OBJECT(kube_role_driver, "kube.role", create);
ONE_OBJECT(kube_binding_driver, "kube.binding", create_binding); /* a RoleBinding */
ONE_OBJECT(kube_claim_driver, "kube.claim", create);		 /* a PersistentVolumeClaim */
