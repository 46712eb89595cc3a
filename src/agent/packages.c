#include "agent/packages.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "sys/child.h"

/* The names follow as "$@".  At boot a machine may be installing packages of its own: wait for that. */
static const struct {
	const char *program, *script;
} managers[] = {
	{"apt-get",
	 /* Lists that cannot be fetched may have old ones beside them that will do. */
	 "export DEBIAN_FRONTEND=noninteractive; apt() { apt-get -q -o DPkg::Lock::Timeout=300 \"$@\"; }; "
	 "apt -o APT::Update::Error-Mode=any update; lists=$?; "
	 "apt -o APT::Get::Assume-Yes=true -o APT::Install-Recommends=false install -- \"$@\"; code=$?; "
	 "[ $code = 0 ] || [ $lists = 0 ] || echo 'apt-get update could not fetch the lists of packages: "
	 "does this machine reach its mirror?' >&2; exit $code"},
	{"dnf", "dnf -y -q install -- \"$@\""},
	{"yum", "yum -y -q install -- \"$@\""},
	{"apk", "apk add --no-cache -- \"$@\""},
	{"zypper", "zypper --non-interactive install --no-recommends -- \"$@\""},
	{NULL,
	 "echo 'no package manager here: apt-get, dnf, yum, apk or zypper is needed' >&2; exit 1"},
};

static const char *script_for(const char *path)
{
	size_t i = 0;

	for (; managers[i].program; i++) {
		CLEANUP(freep) char *file = NULL;

		if (child_find_command(managers[i].program, path, "/", &file, NULL) == 0)
			break;
	}
	return managers[i].script;
}

const char *const *packages_command(const char *const *names, size_t n, const char *path,
				    struct arena *a)
{
	const char **argv = arena_array(a, const char *, n + 5);

	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = script_for(path);
	argv[3] = "packages";
	for (size_t i = 0; i < n; i++)
		argv[4 + i] = names[i];
	return argv;
}
