#pragma once
/* What the files of driver/kube/api/ share. */
#include "driver/kube/api/access.h"
#include "driver/kube/api/kube.h"

/* Runs the program of a user of the kubeconfig (its `exec`), and takes token or certificate from what it
 * prints. */
int exec_plugin_run(const struct kubeconfig_input *in, const struct doc *exec, const char *dir,
		    struct arena *a, struct kube_access *ret, struct err *err);
/* Runs it again if what it printed has expired and this is the machine and the user that it belongs to; elsewhere
 * the access stays as it is. */
int exec_plugin_renew(struct kube_access *access, const struct deadline *d, struct arena *a,
		      struct err *err);

/* Another status than 2xx as an error, with the words of the cluster.  `what`: "create jobs". */
int status_error(int status, struct str body, const char *what, struct err *err);
/* May the answer be the API's own?  The 404 of a proxy on the way says nothing about an object. */
bool status_is_of_api(int status, struct str body);
/* The pause that the cluster asks for; 0: none. */
int64_t status_retry_ms(struct str retry_after, struct str body);
