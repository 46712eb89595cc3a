/* A host's daemon as a systemd unit, with a systemctl that the test plays. */
#include "unit.h"

#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "fmt/schema.h"
#include "host/host.h"
#include "host/install.h"

static const struct env_pair labels[] = {{"gpu", "a100"}, {"odd", "50% \"x\" $y"}};

static struct host_options options_of(void **state)
{
	return (struct host_options){.url = "https://10.0.0.5:5436",
				     .pin = "sha256//abc=",
				     .token = "very-secret",
				     .name = "node1",
				     .labels = labels,
				     .nlabels = 2,
				     .dir = unit_path(state, "host dir")};
}

static const char *read_text(const char *path)
{
	static char text[8192];
	struct buf b;

	buf_init(&b, sizeof(text) - 1);
	assert_int_equal(file_read(path, &b, NULL), 0);
	memcpy(text, b.p, b.n);
	text[b.n] = '\0';
	buf_release(&b);
	return text;
}

/* Writes down how it was called. */
static struct install_places places_of(void **state, int exit_code, bool user)
{
	char script[512];

	snprintf(script, sizeof(script), "#!/bin/sh\necho \"$@\" >> '%s'\nexit %d\n",
		 unit_path(state, "calls"), exit_code);
	assert_int_equal(file_write(unit_path(state, "systemctl"), str_from(script), 0700, NULL),
			 0);
	return (struct install_places){.running = (const char *)*state,
				       .unit_dir = unit_path(state, "units"),
				       .systemctl = unit_path(state, "systemctl"),
				       .program = "/usr/bin/regatta",
				       .user = user};
}

static void the_unit_runs_the_same_command_without_the_token(void **state)
{
	struct host_options o = options_of(state);
	struct install_places p = places_of(state, 0, false);
	struct buf unit;

	buf_init(&unit, 8192);
	install_unit_text(&o, &p, "/d/token", &unit);
	assert_non_null(strstr(unit.p, "ExecStart=\"/usr/bin/regatta\" \"agent\" \"--join\" "
				       "\"https://10.0.0.5:5436\" \"--pin\" \"sha256//abc=\" "
				       "\"--token-file\" \"/d/token\" \"--name\" \"node1\""));
	/* Nothing in it is expanded by systemd. */
	assert_non_null(strstr(unit.p, "\"--labels\" \"odd=50%% \\\"x\\\" $$y\""));
	assert_null(strstr(unit.p, "very-secret"));
	/* A restart of the unit harms no job. */
	assert_non_null(strstr(unit.p, "\nKillMode=process\n"));
	assert_non_null(strstr(unit.p, "\nWantedBy=multi-user.target\n"));
	buf_release(&unit);
}

static void it_is_written_started_and_can_be_undone(void **state)
{
	struct host_options o = options_of(state);
	struct install_places p = places_of(state, 0, true);
	struct err err = {0};
	struct stat st;
	struct buf told;

	buf_init(&told, 8192);
	assert_int_equal(install_host(&o, &p, &told, &err), 0);
	assert_string_equal(read_text(unit_path(state, "calls")),
			    "--user daemon-reload\n"
			    "--user enable --now regatta-agent-node1.service\n");
	assert_string_equal(read_text(unit_path(state, "host dir/token")), "very-secret");
	assert_int_equal(stat(unit_path(state, "host dir/token"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_non_null(strstr(read_text(unit_path(state, "units/regatta-agent-node1.service")),
			       "WantedBy=default.target"));
	assert_non_null(
		strstr(told.p, "systemctl --user disable --now regatta-agent-node1.service"));
	assert_non_null(strstr(told.p, "loginctl enable-linger"));
	assert_null(strstr(told.p, "very-secret"));
	buf_release(&told);
}

static void without_systemd_nothing_is_changed(void **state)
{
	struct host_options o = options_of(state);
	struct install_places p = places_of(state, 0, false);
	struct err err = {0};
	struct buf told;

	buf_init(&told, 8192);
	p.running = unit_path(state, "no-such-directory");
	assert_int_equal(install_host(&o, &p, &told, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "--install needs systemd"));
	assert_false(file_exists(o.dir));
	assert_false(file_exists(p.unit_dir));
	buf_release(&told);
}

static void a_systemctl_that_fails_is_told(void **state)
{
	struct host_options o = options_of(state);
	struct install_places p = places_of(state, 1, false);
	struct err err = {0};
	struct buf told;

	buf_init(&told, 8192);
	assert_int_equal(install_host(&o, &p, &told, &err), -1);
	assert_string_equal(err.msg, "systemctl daemon-reload failed: see its message above");
	assert_int_equal(told.n, 0);
	buf_release(&told);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, unit_make_dir, unit_remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_unit_runs_the_same_command_without_the_token),
		TEST(it_is_written_started_and_can_be_undone),
		TEST(without_systemd_nothing_is_changed),
		TEST(a_systemctl_that_fails_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
