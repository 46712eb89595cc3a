#pragma once
/*
 * kube_gc - what carries our labels in a namespace is found, judged and removed, without a ledger.
 *
 * A look lists each kind.  What is in the scope is deleted by its uid; what has an owner that is deleted
 * goes with it.  What one look showed and the next does not is gone.  What 'regatta manifests' printed and
 * somebody applied has our labels too, belongs to no install, and is not looked at.
 */
#include "driver/engine_tools.h"

/* engine_tools.collect; a region is a namespace. */
int kube_gc(const struct collect_input *in, struct arena *a, struct collection *ret,
	    struct err *err);
