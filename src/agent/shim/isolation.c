#include "agent/shim/isolation.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/*
 * /sys shows the interfaces of the namespace in which it was mounted, and libraries read the speed of
 * eth0 from it.  /sys/fs/cgroup is moved to the new mount.  If mounting fails /sys stays as it was;
 * the network works without it.
 */
static void remount_sys(void)
{
	CLEANUP(close_fdp)
	int groups = (int)syscall(SYS_open_tree, AT_FDCWD, "/sys/fs/cgroup",
				  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0 &&
	    groups >= 0)
		syscall(SYS_move_mount, groups, "", AT_FDCWD, "/sys/fs/cgroup",
			MOVE_MOUNT_F_EMPTY_PATH);
}

int isolation_enter(const struct isolation *i)
{
	if (!i->netns)
		return 0;
	CLEANUP(close_fdp) int netns = open(i->netns, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (netns < 0 || setns(netns, CLONE_NEWNET) < 0 ||
	    unshare(CLONE_NEWNS | CLONE_NEWUTS) < 0 || sethostname(i->name, strlen(i->name)) < 0)
		return -1;
	/* Slave: mounts of the machine appear in this namespace, but not the other way round. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
	    mount(i->hosts, "/etc/hosts", NULL, MS_BIND, NULL) < 0)
		return -1;
	remount_sys();
	return 0;
}
