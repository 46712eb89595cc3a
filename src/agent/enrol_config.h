#pragma once
/* enrol_config - the file of a machine that enrols, and what is made of the answer: see agent/enrol.h. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct message_enrolled;

struct enrol_url {
	const char *text, *host;
	int port;
};

struct enrol_config {
	const char *dir; /* of the node */
	const char *run, *role, *token;
	const char *identity;
	int place;		/* -1: not known */
	struct enrol_url *urls; /* none: the unix socket */
	size_t nurls;
	const char *pin;
	const char *link_dir, *link_name;
	const char *cache;	  /* NULL: none is given */
	const char *address;	  /* of this machine; NULL: that of its connection */
	const char *notices;	  /* where to ask whether it will be taken; NULL: nowhere */
	const char *expires_file; /* NULL: none is given */
	bool own_env;		  /* the job gets the variables of the agent too */
	int64_t limit_ms;
};

/* Everything lives in the arena.  The error names the file and the key. */
int enrol_config_load(const char *file, struct arena *a, struct enrol_config *ret, struct err *err);
/* Writes agent.json: the answer came from urls[url]. */
int enrol_config_keep(const struct enrol_config *c, size_t url, const struct message_enrolled *m,
		      struct err *err);
