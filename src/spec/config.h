#pragma once
/* config - the user's own settings, ~/.config/regatta/config.toml: what commands do when nobody says otherwise. */
#include <stdbool.h>
#include <stdint.h>
#include "fmt/schema.h"

/* Which ended runs `regatta prune` removes. */
struct retention {
	int64_t older_than_ms; /* 0: whatever their age */
	bool keep_tagged;
	uint64_t max_size; /* bytes of all that stay; 0: no limit */
};

struct user_config {
	struct retention retention;
};

extern const struct schema config_schema;
