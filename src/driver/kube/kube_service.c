/* kube.service - the headless Service under which the pods of a run have names. */
#include "driver/kube/kube_kind.h"

KUBE_DRIVER(kube_service_driver, "kube.service", kube_kind_create, kube_kind_find,
	    kube_kind_observe, NULL, kube_kind_destroy);
