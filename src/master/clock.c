/*
 * The master's clock: boot time plus a base.
 *
 * The base is the wall clock minus boot time at the first start of a master in this boot.  It is
 * kept in a file of the home, because the wall clock may jump while no master runs, and would
 * move every deadline.  The file is valid until the next boot only, so it is not synced; if it
 * cannot be read (it could not be written on a full disk) the base is computed again.
 */
#include "master/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "master/internal.h"
#include "sys/proctree.h"

#define CLOCK_FILE "clock"
#define TEXT_MAX 128

int64_t master_now(const struct master *m)
{
	return m->clock_base + clock_boot_ms();
}

/* The file has "<boot id> <base>". */
static bool read_base(const char *path, const char *boot_id, int64_t *ret)
{
	CLEANUP(buf_release) struct buf text;
	size_t n = strlen(boot_id);

	buf_init(&text, TEXT_MAX);
	if (!n || file_read(path, &text, NULL) < 0)
		return false;
	struct str s = str_trim(buf_str(&text));
	if (s.n <= n + 1 || memcmp(s.p, boot_id, n) != 0 || s.p[n] != ' ')
		return false;
	return str_to_i64((struct str){s.p + n + 1, s.n - n - 1}, ret);
}

int64_t clock_base_for(const char *home, const char *boot_id, int64_t boot_ms, int64_t wall_ms,
		       int64_t last_ms)
{
	CLEANUP(freep) char *path = path_join(home, CLOCK_FILE);
	char text[TEXT_MAX];
	int64_t kept, base;
	bool have = read_base(path, boot_id, &kept);

	base = have ? kept : wall_ms - boot_ms;
	/* Never earlier than the latest time in the store. */
	if (base + boot_ms < last_ms)
		base = last_ms - boot_ms;
	if (*boot_id && !(have && base == kept)) {
		snprintf(text, sizeof(text), "%s %lld\n", boot_id, (long long)base);
		(void)file_write_atomic(path, str_from(text), 0600, false, NULL);
	}
	return base;
}

void master_clock_start(struct master *m)
{
	char boot_id[PROC_BOOT_ID];

	proc_boot_id(boot_id);
	m->clock_base = clock_base_for(m->home, boot_id, clock_boot_ms(), clock_wall_ms(),
				       store_last_ms(m->store));
}
