#pragma once
/* kube_doctor - could a run of engine kubernetes start in this cluster and namespace, with these credentials? */
struct checkup;

void kube_doctor(struct checkup *c);
