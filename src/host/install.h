#pragma once
/*
 * install - run a host's daemon as a systemd unit: a system unit for root, else a user unit.
 *
 * The unit runs the same command.  The token is in a file of the host's directory that only the user
 * can read, so that process lists do not show it.
 */
#include <stdbool.h>

struct buf;
struct err;
struct host_options;

/* Paths of systemd; tests use their own. */
struct install_places {
	const char *running;   /* exists where systemd runs: "/run/systemd/system" */
	const char *unit_dir;  /* "/etc/systemd/system", or ~/.config/systemd/user */
	const char *systemctl; /* "systemctl" along PATH, or a path */
	const char *program;   /* absolute path of this regatta */
	bool user;	       /* systemctl --user */
};

/* "regatta-agent-HOST.service"; the caller frees it. */
char *install_unit_name(const char *host);
/* Pure: the text of the unit. */
void install_unit_text(const struct host_options *o, const struct install_places *p,
		       const char *token_file, struct buf *out);
/* Write token and unit, start the unit, and write to `told` what was done and how to undo it.
 * ERR_UNAVAILABLE: this machine does not run systemd; nothing was changed. */
int install_host(const struct host_options *o, const struct install_places *p, struct buf *told,
		 struct err *err);
