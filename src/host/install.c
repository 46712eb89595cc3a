#include "host/install.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/exit_text.h"
#include "base/file.h"
#include "base/path.h"
#include "fmt/schema.h"
#include "host/host.h"
#include "sys/child.h"

#define UNIT_MAX (32 * 1024)
#define TOKEN_FILE "token"
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

extern char **environ;

char *install_unit_name(const char *host)
{
	return xasprintf("regatta-agent-%s.service", host);
}

/* One word of ExecStart, quoted so that systemd expands nothing in it. */
static void put_word(struct buf *out, const char *word)
{
	buf_addz(out, " \"");
	for (; *word; word++) {
		if (*word == '"' || *word == '\\')
			buf_addc(out, '\\');
		if (*word == '%' || *word == '$')
			buf_addc(out, *word);
		buf_addc(out, *word);
	}
	buf_addc(out, '"');
}

static void put_option(struct buf *out, const char *name, const char *value)
{
	put_word(out, name);
	put_word(out, value);
}

void install_unit_text(const struct host_options *o, const struct install_places *p,
		       const char *token_file, struct buf *out)
{
	buf_printf(out,
		   "[Unit]\n"
		   "Description=Regatta host %s of %s\n"
		   "Wants=network-online.target\n"
		   "After=network-online.target\n\n"
		   "[Service]\n"
		   "ExecStart=",
		   o->name, o->url);
	buf_addz(out, "\"");
	buf_addz(out, p->program);
	buf_addz(out, "\"");
	put_word(out, "agent");
	put_option(out, "--join", o->url);
	put_option(out, "--pin", o->pin);
	put_option(out, "--token-file", token_file);
	put_option(out, "--name", o->name);
	put_option(out, "--dir", o->dir);
	for (size_t i = 0; i < o->nlabels; i++) {
		CLEANUP(freep)
		char *label = xasprintf("%s=%s", o->labels[i].name, o->labels[i].value);

		put_option(out, "--labels", label);
	}
	/* KillMode=process: stopping the unit must not kill the jobs. */
	buf_printf(out,
		   "\nRestart=always\n"
		   "RestartSec=5\n"
		   "KillMode=process\n"
		   "Delegate=yes\n\n"
		   "[Install]\n"
		   "WantedBy=%s\n",
		   p->user ? "default.target" : "multi-user.target");
}

static int systemctl(const struct install_places *p, const char *verb, const char *more,
		     const char *unit, struct err *err)
{
	const char *argv[6] = {"systemctl"};
	const char *path = getenv("PATH");
	CLEANUP(freep) char *file = NULL;
	size_t n = 1;
	int status;
	pid_t pid;

	if (p->user)
		argv[n++] = "--user";
	argv[n++] = verb;
	if (more)
		argv[n++] = more;
	argv[n] = unit;
	if (child_find_command(p->systemctl, path ? path : DEFAULT_PATH, "/", &file, err) < 0)
		return -1;
	struct child_spec spec = {.file = file,
				  .argv = argv,
				  .env = (const char *const *)environ,
				  .in = -1,
				  .out = -1,
				  .err = 2};

	if (child_spawn(&spec, &pid, err) < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_errno(err, errno, "wait for systemctl");
	if (status != 0)
		return err_set(err, ERR_UNAVAILABLE, "systemctl %s failed: see its message above",
			       verb);
	return 0;
}

static int write_files(const struct host_options *o, const struct install_places *p,
		       const char *token_file, const char *unit_file, struct err *err)
{
	CLEANUP(buf_release) struct buf unit = {0};

	buf_init(&unit, UNIT_MAX);
	install_unit_text(o, p, token_file, &unit);
	if (unit.overflow)
		return err_set(err, ERR_INVALID, "the command is too long for a unit");
	if (file_mkdir_p(o->dir, 0700, err) < 0 || file_mkdir_p(p->unit_dir, 0755, err) < 0 ||
	    file_write_atomic(token_file, str_from(o->token), 0600, true, err) < 0 ||
	    file_write_atomic(unit_file, buf_str(&unit), 0644, true, err) < 0)
		return err_wrap(err, "install the unit");
	return 0;
}

int install_host(const struct host_options *o, const struct install_places *p, struct buf *told,
		 struct err *err)
{
	CLEANUP(freep) char *token_file = path_join(o->dir, TOKEN_FILE);
	CLEANUP(freep) char *unit = install_unit_name(o->name);
	CLEANUP(freep) char *unit_file = path_join(p->unit_dir, unit);
	const char *user = p->user ? " --user" : "";

	if (!file_exists(p->running))
		return err_set(
			err, ERR_UNAVAILABLE,
			"--install needs systemd, which this machine does not run: have your own "
			"init system start the same command without --install");
	if (write_files(o, p, token_file, unit_file, err) < 0 ||
	    systemctl(p, "daemon-reload", NULL, NULL, err) < 0 ||
	    systemctl(p, "enable", "--now", unit, err) < 0)
		return -1;
	buf_printf(told,
		   "wrote    %s\n"
		   "token    %s (mode 0600)\n"
		   "started  %s; its log: journalctl%s -u %s\n"
		   "remove   systemctl%s disable --now %s && rm %s %s\n",
		   unit_file, token_file, unit, user, unit, user, unit, unit_file, token_file);
	if (p->user)
		buf_addz(told,
			 "note     it stops when you log out, unless: loginctl enable-linger\n");
	return 0;
}
