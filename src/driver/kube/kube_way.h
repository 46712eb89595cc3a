#pragma once
/*
 * kube_way - the way to a master inside a cluster: through the API server, which passes requests on to its Service.
 *
 * "kube://NAMESPACE/SERVICE:PORT?context=NAME".  The API server is asked with the caller's credentials, which need the
 * permission services/proxy; it keeps the header Authorization for itself, so that the token of the master has one of
 * its own.  The API server does not know the key of the master: whoever it passes the request on to is whom the
 * cluster's administrator lets it be.
 */
#include <stddef.h>

/* Of every master, as plan/kubernetes_master.c makes it: the port of its Service, and the label regatta/role. */
#define KUBE_WAY_PORT 5436
#define KUBE_WAY_ROLE "regatta"

/* context "": that of the caller's kubeconfig is not known by a name. */
void kube_way_url(char *out, size_t size, const char *namespace, const char *service, int port,
		  const char *context);
