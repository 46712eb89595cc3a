#pragma once
/*
 * profile - the shared files of AWS' tools: ~/.aws/config and ~/.aws/credentials.
 *
 * Sections are named as in the config file: "profile NAME" (also "default"), "sso-session NAME",
 * "services NAME".  The credentials file wins for a key that both have.  A nested key is
 * "s3.addressing_style".
 */
#include <stdbool.h>
#include "base/env.h"

struct arena;
struct err;
struct profiles;

/* Files that are not there are empty.  ERR_INVALID with file and line if one cannot be read. */
int profiles_read(const struct env_lookup *env, struct arena *a, struct profiles **ret,
		  struct err *err);
/* NULL if there is none, or it is empty. */
const char *profile_get(const struct profiles *p, const char *profile, const char *key);
bool profile_exists(const struct profiles *p, const char *profile);
/* Of another section: profiles_get(p, "sso-session", name, key). */
const char *profiles_get(const struct profiles *p, const char *type, const char *name,
			 const char *key);
/* "~/x" with the home directory of the environment; else as it is. */
const char *profile_path(const struct env_lookup *env, struct arena *a, const char *path);
