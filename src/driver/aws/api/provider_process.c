/* credential_process: a program of the user's that prints credentials as JSON. */
#include "driver/aws/api/provider.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "driver/aws/api/internal.h"
#include "driver/aws/api/profile.h"
#include "fmt/argv.h"
#include "fmt/doc.h"
#include "fmt/schema.h"
#include "sys/child_run.h"

#define MAX_OUTPUT (256 * 1024)

/* What such a program may need. */
static const char *const passed[] = {
	"PATH",
	"HOME",
	"USER",
	"LOGNAME",
	"LANG",
	"TMPDIR",
	"AWS_PROFILE",
	"AWS_CONFIG_FILE",
	"AWS_REGION",
	"SSL_CERT_FILE",
	"https_proxy",
	"HTTPS_PROXY",
	"http_proxy",
	"HTTP_PROXY",
	"no_proxy",
	"NO_PROXY",
	"XDG_RUNTIME_DIR",
	"DBUS_SESSION_BUS_ADDRESS",
	"AWS_SHARED_CREDENTIALS_FILE",
};

static const char **environment_for(const struct aws_search *q)
{
	size_t n = sizeof(passed) / sizeof(passed[0]), at = 0;
	const char **env = arena_array(q->a, const char *, n + 1);

	for (size_t i = 0; i < n; i++) {
		const char *value = env_get(&q->s->places.env, passed[i]);

		if (value)
			env[at++] = arena_printf(q->a, "%s=%s", passed[i], value);
	}
	return env;
}

static int run(const struct aws_search *q, const char *command, struct buf *out, struct err *err)
{
	CLEANUP(freep) char *file = NULL;
	const char *path = env_get(&q->s->places.env, "PATH"), *why = NULL;
	struct strs words = {0};

	if (!argv_split(str_from(command), q->a, &words, &why) || words.n == 0)
		return err_set(err, ERR_INVALID, "credential_process: %s",
			       why ? why : "no command");
	const char **argv = arena_array(q->a, const char *, words.n + 1);

	for (size_t i = 0; i < words.n; i++)
		argv[i] = words.v[i];
	if (child_find_command(argv[0], path ? path : "/usr/local/bin:/usr/bin:/bin", "/", &file,
			       err) < 0)
		return -1;
	return child_run_helper(
		(struct child_spec){
			.file = file, .argv = argv, .env = environment_for(q), .in = -1},
		q->d, out, err);
}

int provider_process(const struct aws_search *q, struct aws_found *ret, struct err *err)
{
	CLEANUP(buf_release) struct buf out = {0};
	const char *command = profile_get(q->s->places.profiles, q->profile, "credential_process");
	const char *source =
		arena_printf(q->a, "credential_process of the profile '%s'", q->profile);
	struct doc *doc;

	if (!command)
		return 0;
	buf_init(&out, MAX_OUTPUT);
	if (run(q, command, &out, err) < 0)
		return err_wrap(err, "%s", source);
	if (json_parse(buf_str(&out), q->a, &doc, err) < 0 || doc_int(doc, "Version", 0) != 1)
		return err_set(err, ERR_DENIED, "%s: it prints no JSON with \"Version\": 1",
			       source);
	return provider_read(q, doc, source, ret, err) < 0 ? -1 : 1;
}
