/* kube.root - a ConfigMap that owns every other object of its run: whoever deletes it deletes all. */
#include "driver/kube/kube_kind.h"

KUBE_DRIVER(kube_root_driver, "kube.root", kube_kind_create, kube_kind_find, kube_kind_observe,
	    NULL, kube_kind_destroy);
