#pragma once
/*
 * access - which cluster is spoken to, and as whom.
 *
 * kubeconfig_read() finds it as kubectl does: the files of KUBECONFIG, merged, or ~/.kube/config; without
 * either, in a pod, the pod's service account.  Programs of the configuration (exec) are run, token files
 * are read, so that what is found can be sent to a master: access_to_doc() and access_from_json().  Where that
 * is a process of the same user on the same machine, it runs the program again when what it printed expires.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/env.h"
#include "base/str.h"

struct arena;
struct deadline;
struct doc;
struct err;

/* The program that has made token or certificate, if they expire. */
struct kube_renewal {
	const struct doc
		*exec; /* as in the kubeconfig, its command absolute; NULL: they do not expire */
	const char *machine; /* and user who may run it, as a digest */
	int64_t expires_ms;
};

struct kube_access {
	const char *server; /* "https://192.0.2.1:6443", perhaps with a path */
	const char *namespace;
	const char *context; /* its name; "" in a pod */
	/* PEM; n == 0: those of the system */
	struct str ca;
	const char *server_name; /* of the certificate, instead of the host; NULL: the host */
	bool insecure;		 /* the kubeconfig says that any server is trusted */
	struct str cert, key;	 /* PEM; n == 0: none */
	const char *token;	 /* NULL: none */
	/* In place of `token`: read before each call, because it is renewed; NULL: none */
	const char *token_file;
	const char *proxy, *no_proxy; /* NULL: none */
	struct kube_renewal renewal;
};

struct kubeconfig_input {
	struct env_lookup env;
	const char *context, *namespace; /* NULL: those of the configuration */
	const struct deadline *deadline;
};

/* In the arena.  ERR_INVALID: the configuration is missing or wrong; ERR_DENIED: its program gives no
 * credentials. */
int kubeconfig_read(const struct kubeconfig_input *in, struct arena *a, struct kube_access *ret,
		    struct err *err);
/* Is there a configuration on this machine, or is this a pod? */
bool kubeconfig_exists(const struct env_lookup *env);
/* The service account of the pod that this process is in; ERR_NOT_FOUND: it is in none. */
int access_in_cluster(const struct env_lookup *env, struct arena *a, struct kube_access *ret,
		      struct err *err);

struct doc *access_to_doc(const struct kube_access *access, struct arena *a);
/* ERR_DENIED: what was given has expired, and its program gives nothing new. */
int access_from_json(const char *json, const struct deadline *d, struct arena *a,
		     struct kube_access *ret, struct err *err);
