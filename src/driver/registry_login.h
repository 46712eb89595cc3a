#pragma once
/*
 * registry_login - user and password for a registry of images, from whoever gives them out for a while.
 *
 * The logins are a table (registry_login.c).  Calls block until their deadline; errors are those of object_store.h.
 */

struct arena;
struct deadline;
struct doc;
struct err;

struct registry_question {
	const char *login; /* of the job: "ecr" */
	const char *image;
	const char
		*credentials; /* JSON, as in driver_row; NULL: what this process finds for itself */
};
struct registry_login {
	const char *user, *password; /* in the arena */
};
int registry_login_ask(const struct registry_question *q, const struct deadline *d, struct arena *a,
		       struct registry_login *ret, struct err *err);
/* What a master needs to ask for the caller, found on this machine. */
int registry_login_credentials(const char *login, struct arena *a, struct doc **ret,
			       struct err *err);

/* ---- for the files that know one ---- */

struct registry_source {
	const char *login;
	int (*ask)(const struct registry_question *q, const struct deadline *d, struct arena *a,
		   struct registry_login *ret, struct err *err);
	int (*credentials)(struct arena *a, struct doc **ret, struct err *err);
};

extern const struct registry_source ecr_registry;
