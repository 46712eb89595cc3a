/* The command line of a container, for each program that runs them, and why an image cannot be had. */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/container.h"
#include "agent/environ.h"
#include "agent/image.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "link/layout.h"
#include "link/message.h"

static const char *joined(const char *const *v, struct arena *a)
{
	const char *text = v[0];

	for (size_t i = 1; v[i]; i++)
		text = arena_printf(a, "%s %s", text, v[i]);
	return text;
}

static const char *const env[] = {"A=1", "PATH=/job", "TWO=x\ny", "LD_PRELOAD=x.so", NULL};
static const char *const argv[] = {"python3", "train.py", "--lr=1", NULL};

static struct container_record record_of(enum container_kind kind, bool gpus)
{
	struct container_record r = {.tool = {.kind = kind, .gpus = gpus}, .label = "r/w-0/1/m"};

	snprintf(r.tool.program, sizeof(r.tool.program), "/bin/tool");
	return r;
}

static struct container_job job_of(const struct container_record *r)
{
	return (struct container_job){
		.record = r,
		.name = "regatta-r-w-0-1-1-m",
		.image = "repo/x:1",
		.workdir = "/n/work",
		.mounts = {"/n", "/out"},
		.env = env,
		.argv = argv,
		.uid = 1000,
		.gid = 100,
	};
}

#define HEAD                                                                                       \
	" --name regatta-r-w-0-1-1-m --label regatta.node=r/w-0/1/m --pull never --network host "  \
	"--ipc host --log-driver none --security-opt label=disable"
#define TAIL                                                                                       \
	" --volume /n:/n --volume /out:/out --workdir /n/work --env A --env PATH=/job --env TWO "  \
	"--env LD_PRELOAD=x.so repo/x:1 python3 train.py --lr=1"

static void docker_gets_the_user_of_the_agent(void **state)
{
	struct arena *a = arena_new();
	struct container_record r = record_of(CONTAINER_DOCKER, false);
	struct container_job j = job_of(&r);

	(void)state;
	assert_string_equal(joined(container_argv(&j, a), a),
			    "/bin/tool run --rm" HEAD " --user 1000:100" TAIL);
	arena_free(a);
}

static void each_program_gives_gpus_in_its_own_way(void **state)
{
	static const struct {
		enum container_kind kind;
		const char *want;
	} cases[] = {
		{CONTAINER_DOCKER, "/bin/tool run --rm" HEAD " --user 1000:100 --gpus all" TAIL},
		{CONTAINER_NVIDIA_DOCKER, "/bin/tool run --rm" HEAD " --user 1000:100" TAIL},
		{CONTAINER_PODMAN,
		 "/bin/tool run --rm" HEAD " --user 0:0 --device nvidia.com/gpu=all" TAIL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct arena *a = arena_new();
		struct container_record r = record_of(cases[i].kind, true);
		struct container_job j = job_of(&r);

		assert_string_equal(joined(container_argv(&j, a), a), cases[i].want);
		arena_free(a);
	}
}

static void docker_limits_the_cpus(void **state)
{
	static const enum container_kind kinds[] = {CONTAINER_DOCKER, CONTAINER_NVIDIA_DOCKER,
						    CONTAINER_PODMAN};

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct arena *a = arena_new();
		struct container_record r = record_of(kinds[i], false);
		struct container_job j = job_of(&r);

		j.cpus = "0-3,8";
		const char *at = strstr(joined(container_argv(&j, a), a), " --cpuset-cpus 0-3,8 ");

		assert_int_equal(at != NULL, kinds[i] != CONTAINER_PODMAN);
		arena_free(a);
	}
}

static void a_container_with_a_limit_stays_until_it_was_asked(void **state)
{
	struct arena *a = arena_new();
	struct container_record r = record_of(CONTAINER_PODMAN, false);
	struct container_job j = job_of(&r);

	(void)state;
	j.memory = 1 << 20;
	j.pty = true;
	j.workdir = NULL;
	j.mounts[1] = NULL;
	const char *text = joined(container_argv(&j, a), a);

	assert_non_null(strstr(text, "/bin/tool run --memory 1048576 --name"));
	assert_null(strstr(text, "--rm"));
	assert_null(strstr(text, "--workdir"));
	assert_non_null(strstr(text, " --user 0:0 --interactive --tty --volume /n:/n --env A"));
	arena_free(a);
}

static void a_command_in_the_container_has_its_environment(void **state)
{
	struct arena *a = arena_new();
	struct container_record r = record_of(CONTAINER_DOCKER, false);

	(void)state;
	assert_string_equal(joined(container_exec_argv(&r.tool, "name", NULL, argv, a), a),
			    "/bin/tool exec --interactive name python3 train.py --lr=1");
	assert_string_equal(joined(container_exec_argv(&r.tool, "name", "vt100", argv, a), a),
			    "/bin/tool exec --interactive --tty --env TERM=vt100 name python3 "
			    "train.py --lr=1");
	arena_free(a);
}

static void the_program_keeps_the_variables_that_it_reads_itself(void **state)
{
	static const char *const own[] = {"PATH=/own", "A=own", "HOME=/me", NULL};
	struct arena *a = arena_new();
	struct container_record r = record_of(CONTAINER_DOCKER, false);
	struct container_job j = job_of(&r);

	(void)state;
	assert_string_equal(joined(container_env(&j, own, a), a),
			    "A=1 TWO=x\ny PATH=/own HOME=/me");
	arena_free(a);
}

static void in_a_container_path_and_home_are_those_of_the_image(void **state)
{
	struct message_start m = {0};
	const char **inside = environ_make(&m, "", "/fifo", ENVIRON_IMAGE);

	(void)state;
	assert_string_equal(environ_get(inside, "PATH"), "");
	assert_string_equal(environ_get(inside, "HOME"), "");
	assert_string_equal(environ_get(inside, "PYTHONUNBUFFERED"), "1");
	environ_freep(&inside);
}

static void why_an_image_cannot_be_had_is_said_in_plain_words(void **state)
{
	static const struct {
		const char *printed;
		enum err_kind kind;
		const char *want;
	} cases[] = {
		{"Error response from daemon: manifest for x:9 not found: manifest unknown",
		 ERR_NOT_FOUND, "image 'x:9': the registry has no such image or tag"},
		{"Error response from daemon: pull access denied for x, repository does not exist or may require "
		 "'docker login': denied",
		 ERR_DENIED,
		 "image 'x:9': the registry denies it: it needs a login (registry), or does not exist"},
		{"Error: writing blob: no space left on device", ERR_CAPACITY,
		 "image 'x:9': there is no space left on this machine's disk"},
		{"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
		 ERR_UNAVAILABLE, "image 'x:9': docker is installed, but its daemon does not run"},
		{"a\nError: something else\n", ERR_UNAVAILABLE,
		 "image 'x:9': Error: something else"},
		{"", ERR_UNAVAILABLE, "image 'x:9': "},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = {0};

		image_explain("x:9", cases[i].printed, &err);
		assert_int_equal(err.kind, cases[i].kind);
		assert_string_equal(err.msg, cases[i].want);
	}
}

static void tool(void **state, const char *name, const char *script)
{
	char *text = xasprintf("#!/bin/sh\ncd '%s'\n%s\n", (const char *)*state, script);

	assert_int_equal(file_write(unit_path(state, name), str_from(text), 0700, NULL), 0);
	free(text);
}

/* Rule: on a machine that was made for the run, docker is installed and started if nothing runs containers. */
static void docker_is_installed_where_the_machine_was_made_for_the_run(void **state)
{
	const struct agent_config cfg = {.run = "r", .node = "w-0", .mark = "m", .incarnation = 1};
	struct message_inputs in = {.image = "x:1"};
	char *path = xstrdup(getenv("PATH"));
	CLEANUP(buf_release) struct buf said = {0};
	struct container_record r;
	struct err err = {0};

	setenv("PATH", *state, 1);
	tool(state, "apt-get",
	     "echo \"$@\" >>said; case \"$*\" in *install*) echo E: no such package; exit 100; esac");
	assert_int_equal(image_prepare(&in, &cfg, *state, &err), -1);
	assert_string_equal(err.msg,
			    "image: neither docker nor podman is installed on this machine");
	assert_false(file_exists(unit_path(state, "said")));
	in.new_machine = true;
	assert_int_equal(image_prepare(&in, &cfg, *state, &err), -1);
	assert_string_equal(err.msg, "install docker: E: no such package");
	tool(state, "apt-get",
	     "echo \"$@\" >>said; case \"$*\" in *install*) printf '#!/bin/sh\\n' >docker; /bin/chmod 700 docker; esac");
	tool(state, "systemctl", "echo \"$@\" >>said; [ -x docker ]");
	err = (struct err){0};
	if (image_prepare(&in, &cfg, *state, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(
		container_record_read(AT_FDCWD, unit_path(state, LAYOUT_CONTAINER), &r, NULL), 0);
	assert_string_equal(r.tool.program, unit_path(state, "docker"));
	assert_int_equal(access(unit_path(state, LAYOUT_INSIDE), X_OK), 0);
	buf_init(&said, 4096);
	assert_int_equal(file_read(unit_path(state, "said"), &said, NULL), 0);
	buf_addc(&said, '\0');
	assert_non_null(strstr(said.p, "install -- docker.io\nstart docker\n"));
	setenv("PATH", path, 1);
	free(path);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(docker_gets_the_user_of_the_agent),
		cmocka_unit_test(each_program_gives_gpus_in_its_own_way),
		cmocka_unit_test(docker_limits_the_cpus),
		cmocka_unit_test(a_container_with_a_limit_stays_until_it_was_asked),
		cmocka_unit_test(a_command_in_the_container_has_its_environment),
		cmocka_unit_test(the_program_keeps_the_variables_that_it_reads_itself),
		cmocka_unit_test(in_a_container_path_and_home_are_those_of_the_image),
		cmocka_unit_test(why_an_image_cannot_be_had_is_said_in_plain_words),
		cmocka_unit_test_setup_teardown(
			docker_is_installed_where_the_machine_was_made_for_the_run, unit_make_dir,
			unit_remove_dir),
	};

	return cmocka_run_group_tests_name("agent: container", tests, NULL, NULL);
}
