#include "driver/aws/ec2_console.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/hex.h"
#include "driver/aws/aws_kind.h"

#define CONSOLE_MAX (64 * 1024) /* as much as EC2 keeps */
#define OURS "regatta: "
#define BETWEEN " | "
#define LINE_MAX_BYTES 1024

/* The last line before *end, without blanks around it, and *end moved to its beginning. */
static struct str line_before(struct str text, size_t *end)
{
	size_t from = *end;

	while (from > 0 && text.p[from - 1] != '\n')
		from--;
	struct str line = {text.p + from, *end - from};
	*end = from > 0 ? from - 1 : 0;
	return str_trim(line);
}

static struct str last_of_ours(struct str text)
{
	for (size_t end = text.n; end > 0;) {
		struct str line = line_before(text, &end);
		const char *at = memmem(line.p, line.n, OURS, strlen(OURS));

		if (at)
			return (struct str){at, (size_t)(line.p + line.n - at)};
	}
	return (struct str){0};
}

/* Puts the line before what is in out; false if there is no room for it. */
static bool put_before(struct str line, char out[static EC2_CONSOLE])
{
	CLEANUP(buf_release) struct buf b = {0};

	buf_init(&b, LINE_MAX_BYTES * 4);
	escape_terminal(&b,
			(struct str){line.p, line.n < LINE_MAX_BYTES ? line.n : LINE_MAX_BYTES});
	if (out[0]) {
		buf_addz(&b, BETWEEN);
		buf_addz(&b, out);
		if (b.n >= EC2_CONSOLE)
			return false;
	}
	size_t n = b.n < EC2_CONSOLE ? b.n : EC2_CONSOLE - 1;
	memcpy(out, buf_str(&b).p, n);
	out[n] = '\0';
	return true;
}

void ec2_console_tail(struct str console, char out[static EC2_CONSOLE])
{
	struct str ours = last_of_ours(console);

	memset(out, 0, EC2_CONSOLE);
	if (ours.n > 0) {
		put_before(ours, out);
		return;
	}
	for (size_t end = console.n; end > 0;) {
		struct str line = line_before(console, &end);

		if (line.n > 0 && !put_before(line, out))
			return;
	}
}

/* Machines of older types do not know `Latest`. */
static int ask(const struct aws_work *w, const char *id, bool latest, struct aws_answer *ans)
{
	struct aws_request r;
	struct err err;

	aws_request_init(&r, "ec2", "GetConsoleOutput");
	aws_param(&r, id, "InstanceId");
	aws_param(&r, latest ? "true" : NULL, "Latest");
	return aws_kind_call(w, &r, ans, &err);
}

void ec2_console(const struct aws_work *w, const char *id, char out[static EC2_CONSOLE])
{
	CLEANUP(buf_release) struct buf text = {0};
	struct aws_answer ans = {0};

	out[0] = '\0';
	buf_init(&text, CONSOLE_MAX);
	if (ask(w, id, true, &ans) == 0 || ask(w, id, false, &ans) == 0)
		b64_decode(&text, str_from(xml_text(ans.root, "output")));
	ec2_console_tail(buf_str(&text), out);
	aws_answer_release(&ans);
}
