/*
 * local_sweep - links and mounts of this install that belong to no active run.
 *
 * The ledger has everything that the master makes; this finds what remains after a ledger was lost or
 * restored from a backup.  The alias of a link names its owner.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "base/vec.h"
#include "driver/driver.h"
#include "driver/local/internal.h"
#include "link/layout.h"
#include "sys/netns.h"

#define MOUNTS_MAX (16u << 20)
#define RUN_MAX 128

struct found_names {
	const struct sweep_input *in;
	VEC(char *) l;
};

static void names_release(struct found_names *f)
{
	for (size_t i = 0; i < f->l.n; i++)
		free(f->l.v[i]);
	vec_release(&f->l);
}

static bool is_active(const struct sweep_input *in, struct str run)
{
	char text[RUN_MAX];

	if (run.n == 0 || run.n >= sizeof(text))
		return true; /* not made by Regatta: leave it */
	memcpy(text, run.p, run.n);
	text[run.n] = '\0';
	return in->is_active(in->ctx, text);
}

/* Collect the link if its alias is "regatta INSTALL RUN [NODE]" of this install and an inactive run. */
static void take_link(void *ctx, const char *name, const char *alias)
{
	struct found_names *f = ctx;
	struct str rest = str_from(alias);

	if (str_is(str_cut(&rest, ' '), "regatta") && str_is(str_cut(&rest, ' '), f->in->install) &&
	    !is_active(f->in, str_cut(&rest, ' ')))
		*vec_push(&f->l) = xstrdup(name);
}

static size_t sweep_links(const struct sweep_input *in, struct err *err)
{
	CLEANUP(names_release) struct found_names f = {.in = in};
	CLEANUP(close_fdp) int nl = netlink_open(err);
	size_t n = 0;

	if (nl < 0 || netlink_each_link(nl, take_link, &f, err) < 0)
		return 0;
	for (size_t i = 0; i < f.l.n; i++)
		n += netlink_delete(nl, f.l.v[i], err) == 0;
	return n;
}

/* The mount point in a line of mountinfo, with "\040" decoded to a space; the caller frees it. */
static char *mount_point(struct str line)
{
	for (int i = 0; i < 4; i++)
		str_cut(&line, ' ');
	struct str word = str_cut(&line, ' ');
	char *out = xcalloc(word.n + 1, 1), *to = out;

	for (size_t i = 0; i < word.n; i++) {
		unsigned octal;

		if (word.p[i] == '\\' && i + 3 < word.n &&
		    sscanf(word.p + i + 1, "%3o", &octal) == 1) {
			*to++ = (char)octal;
			i += 3;
		} else {
			*to++ = word.p[i];
		}
	}
	return out;
}

/* Is the mount point in the directory of an inactive run's node, or in the trash? */
static bool is_left(const struct sweep_input *in, const char *home, const char *point)
{
	struct str rest = str_from(point);

	if (!str_starts(rest, str_from(home)) || !str_ends(rest, STR("/" LAYOUT_NETNS)))
		return false;
	rest = (struct str){rest.p + strlen(home), rest.n - strlen(home)};
	if (!str_cut(&rest, '/').p || !rest.p)
		return false;
	struct str folder = str_cut(&rest, '/');

	if (str_is(folder, LAYOUT_TRASH))
		return true;
	return str_is(folder, LAYOUT_RUNS) && !is_active(in, str_cut(&rest, '/'));
}

static size_t sweep_mounts(const struct sweep_input *in, struct err *err)
{
	CLEANUP(freep) char *home = realpath(in->home, NULL);
	struct buf text;
	size_t n = 0;

	buf_init(&text, MOUNTS_MAX);
	struct str rest = home && file_read("/proc/self/mountinfo", &text, err) == 0
				  ? buf_str(&text)
				  : (struct str){0};

	while (rest.p && rest.n > 0) {
		CLEANUP(freep) char *point = mount_point(str_cut(&rest, '\n'));

		if (is_left(in, home, point) && netns_is_at(point))
			n += netns_remove(point, err) == 0;
	}
	buf_release(&text);
	return n;
}

size_t local_sweep(const struct sweep_input *in, struct err *err)
{
	/* Without the privilege to make links, none can be left. */
	if (netns_check_allowed(NULL) < 0)
		return 0;
	return sweep_links(in, err) + sweep_mounts(in, err);
}
