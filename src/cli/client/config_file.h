#pragma once
/* config_file - reads the user's config.toml (spec/config.h). */
struct arena;
struct user_config;
struct err;

/* A missing file gives the defaults.  ERR_INVALID: the first problem, with its place. */
int config_read(struct arena *a, struct user_config *ret, struct err *err);
