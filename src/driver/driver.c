/* driver - the tables of drivers and of resolvers. */
#include "driver/driver.h"

#include <stddef.h>
#include <string.h>

static const struct driver *const drivers[] = {
	&local_bridge_driver,	    &local_node_driver,	  &hosts_node_driver,
	&ec2_security_group_driver, &ec2_subnet_driver,	  &ec2_placement_group_driver,
	&ec2_instance_driver,	    &ec2_master_driver,	  &iam_role_driver,
	&iam_profile_driver,	    &s3_bucket_driver,	  &s3_object_driver,
	&kube_root_driver,	    &kube_service_driver, &kube_job_driver,
	&kube_account_driver,	    &kube_role_driver,	  &kube_binding_driver,
	&kube_claim_driver,	    &kube_program_driver, &kube_master_driver,
	&kube_operator_driver,
};

const struct driver *driver_for(const char *kind)
{
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (strcmp(drivers[i]->kind, kind) == 0)
			return drivers[i];
	return NULL;
}

static const struct resolver *const resolvers[] = {
	&local_resolver,
	&hosts_resolver,
	&aws_ec2_resolver,
	&kube_resolver,
};

const struct resolver *resolver_for(const char *engine)
{
	for (size_t i = 0; i < sizeof(resolvers) / sizeof(resolvers[0]); i++)
		if (strcmp(resolvers[i]->engine, engine) == 0)
			return resolvers[i];
	return NULL;
}

int driver_resolve(const char *engine, const struct resolve_input *in, struct arena *a,
		   struct doc **ret_facts, struct err *err)
{
	const struct resolver *r = resolver_for(engine);

	if (r)
		return r->resolve(in, a, ret_facts, err);
	return err_set(err, ERR_NOT_FOUND, "engine '%s' has no driver in this version", engine);
}

size_t driver_sweep(const struct sweep_input *in, struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < sizeof(resolvers) / sizeof(resolvers[0]); i++)
		if (resolvers[i]->sweep)
			n += resolvers[i]->sweep(in, err);
	return n;
}
