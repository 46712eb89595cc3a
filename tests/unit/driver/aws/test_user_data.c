/* The script of an instance's first boot: small enough, the timer first, and nothing secret of AWS. */
#include "kind_rig.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "driver/aws/user_data.h"
#include "fmt/doc.h"

#define SUM "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SPEC                                                                                       \
	"{\"account\":\"123456789012\",\"region\":\"eu-west-1\",\"bucket\":\"regatta-b\",\"key\":" \
	"\"bin/" SUM "\",\"sha256\":\"" SUM "\",\"lease_ms\":600000}"
#define SPEC_MASTER                                                                                \
	"{\"account\":\"123456789012\",\"region\":\"eu-west-1\",\"bucket\":\"regatta-b\",\"key\":" \
	"\"bin/" SUM "\",\"sha256\":\"" SUM "\",\"port\":5436}"
#define MASTER "https://10.1.2.3:5436"
#define LIMIT 4096 /* as the issue has it; EC2 takes four times as much */

static const struct driver_services services = {.url = MASTER, .pin = "sha256:abcd"};

static void make(struct kind_rig *r, struct buf *out)
{
	r->row.kind = "ec2.instance";
	r->row.role = "trainer";
	r->row.run = "quickstart-abcd";
	r->row.spec = SPEC;
	r->row.services = &services;
	r->row.enrol =
		"7.3.1800000000.0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	buf_init(out, USER_DATA_MAX);
	user_data_node(&r->row, 1, out);
	assert_false(out->overflow);
}

static void make_master(struct kind_rig *r, struct buf *out)
{
	r->row.kind = "ec2.master";
	r->row.role = "";
	r->row.install = "00112233445566aa";
	r->row.spec = SPEC_MASTER;
	r->row.services = &services;
	r->row.secret = SUM;
	buf_init(out, USER_DATA_MAX);
	user_data_master(&r->row, out);
	assert_false(out->overflow);
}

static const char *after(const struct buf *text, const char *word)
{
	const char *at = strstr(text->p, word);

	if (!at)
		fail_msg("there is no '%s' in\n%s", word, text->p);
	return at;
}

static void the_timer_comes_first_and_then_the_agent(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	static const char *const order[] = {
		"#!/bin/sh\nat=$(cat /var/lib/regatta/expires 2>/dev/null || echo 1800000000)\nleft=$(( (at - ",
		"shutdown -h +",
		"enrol.json",
		"  new\" | sha256sum -c",
		"node-agent --enrol enrol.json",
	};

	make(*state, &out);
	assert_true(out.n <= LIMIT);
	assert_memory_equal(out.p, order[0], strlen(order[0]));
	for (size_t i = 1; i + 1 < COUNT(order); i++)
		assert_true(after(&out, order[i]) < after(&out, order[i + 1]));
	kind_done(*state); /* nothing was asked */
}

/* What cannot work, and what has no purpose any more, does not cost until the timer. */
static void a_machine_without_a_purpose_is_switched_off(void **state)
{
	CLEANUP(buf_release) struct buf node = {0}, master = {0};

	make(*state, &node);
	after(&node, "[ $tries -lt 20 ] || off 'the program cannot be had'\n");
	assert_true(after(&node, "node-agent --enrol") <
		    after(&node, "\toff \"the agent has left with $code\"\n"));
	after(&node, "\tshutdown -h now\n");
	make_master(*state, &master);
	after(&master, "[ $tries -lt 20 ] || off 'the program cannot be had'\n");
	assert_true(after(&master, "regatta master --listen") <
		    after(&master, "\toff 'the master has left'\n"));
	after(&master, "\tshutdown -h now\n");
}

static void the_enrolment_is_what_the_agent_reads(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out = {0};
	struct doc *d;

	make(*state, &out);
	const char *from = after(&out, "<<'END'\n") + 8, *to = strstr(from, "\nEND\n");

	assert_int_equal(json_parse((struct str){from, (size_t)(to - from)}, a, &d, NULL), 0);
	assert_string_equal(doc_str(d, "run", STR("")).p, "quickstart-abcd");
	assert_string_equal(doc_str(d, "role", STR("")).p, "trainer");
	assert_string_equal(doc_str(d, "pin", STR("")).p, "sha256:abcd");
	assert_string_equal(doc_array(d, "urls")->array.v[0]->s.p, MASTER);
	assert_string_equal(doc_str(doc_table(d, "identity"), "from", STR("")).p, "imds");
	assert_string_equal(doc_str(d, "expires_file", STR("")).p, "/var/lib/regatta/expires");
	assert_int_equal(doc_int(d, "limit_ms", 0), 600000);
	assert_memory_equal(doc_str(d, "token", STR("")).p, "7.3.1800000000.", 15);
}

static void the_bucket_is_asked_before_the_master(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct kind_rig *r = *state;

	make(r, &out);
	const char *bucket = after(&out, "/regatta-b/bin/" SUM "?");

	assert_true(bucket < after(&out, "'" MASTER "/bin/" SUM "'"));
	after(&out, "X-Amz-Signature=");
	assert_null(strstr(out.p, "secret"));
}

/* On the instance of a master there are no keys at hand, and a URL with a long token has no room. */
static void without_keys_at_hand_the_master_gives_the_program(void **state)
{
	struct kind_rig *r = *state;
	CLEANUP(freep) char *token = xcalloc(1, 2001), *keys = NULL;

	memset(token, 't', 2000);
	keys = xasprintf("{\"access_key\":\"A\",\"secret_key\":\"s\",\"session_token\":\"%s\"}",
			 token);
	for (int i = 0; i < 2; i++) {
		CLEANUP(buf_release) struct buf out = {0};

		r->row.credentials = i ? keys : NULL;
		make(r, &out);
		assert_null(strstr(out.p, "X-Amz-Signature="));
		after(&out, "for url in '" MASTER "/bin/" SUM "'; do");
		assert_true(out.n <= LIMIT);
	}
}

static void a_master_gets_its_key_and_the_services_of_the_caller(void **state)
{
	static const char *const words[] = {
		"#!/bin/sh\nat=$(cat /var/lib/regatta/expires 2>/dev/null || echo 1800000000)\nleft=$(( (at - ",
		"shutdown -h +",
		"export REGATTA_HOME='",
		"export REGATTA_INSTALL='00112233445566aa'\n",
		">home/token\n",
		">home/tls.key <<'END'\n-----BEGIN ",
		"-----END PRIVATE KEY-----\nEND\n",
		"export AWS_REGION='eu-west-1'\n",
		"export AWS_ENDPOINT_URL='http://127.0.0.1:",
		"/regatta-b/bin/0123456789abcdef",
		"regatta master --listen 0.0.0.0:5436",
	};
	CLEANUP(buf_release) struct buf out = {0};

	make_master(*state, &out);
	assert_true(out.n <= LIMIT);
	for (size_t i = 0; i + 1 < COUNT(words); i++)
		assert_true(after(&out, words[i]) < after(&out, words[i + 1]));
	/* It has a role of its own, and does not ask a master that nobody may reach. */
	assert_null(strstr(out.p, "AWS_ACCESS_KEY_ID"));
	assert_null(strstr(out.p, MASTER));
	kind_done(*state);
}

static void what_a_variable_holds_is_no_command(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct kind_rig *r = *state;

	r->row.credentials = "{\"access_key\":\"A\",\"secret_key\":\"s\",\"env\":{\"no_proxy\":"
			     "\"a';reboot;'b\"}}";
	make_master(r, &out);
	after(&out, "export no_proxy='a'\\'';reboot;'\\''b'\n");
}

static int run_shell(const char *const *argv)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		execv("/bin/sh", (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_shell_reads_it(void **state)
{
	for (int i = 0; i < 2; i++) {
		CLEANUP(buf_release) struct buf out = {0};
		char path[] = "user_data_XXXXXX";
		int fd = mkstemp(path);

		(i ? make_master : make)(*state, &out);
		assert_int_equal(write(fd, out.p, out.n), (ssize_t)out.n);
		close(fd);
		assert_int_equal(run_shell((const char *const[]){"sh", "-n", path, NULL}), 0);
		unlink(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kind_test(the_timer_comes_first_and_then_the_agent),
		kind_test(a_machine_without_a_purpose_is_switched_off),
		kind_test(the_enrolment_is_what_the_agent_reads),
		kind_test(the_bucket_is_asked_before_the_master),
		kind_test(without_keys_at_hand_the_master_gives_the_program),
		kind_test(a_master_gets_its_key_and_the_services_of_the_caller),
		kind_test(what_a_variable_holds_is_no_command),
		kind_test(a_shell_reads_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
