/* status - what an answer of the API server other than 2xx means. */
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "driver/kube/api/internal.h"
#include "fmt/doc.h"

#define MOST_PAUSE_MS 30000

static bool says(struct str text, const char *word)
{
	return text.n > 0 && memmem(text.p, text.n, word, strlen(word)) != NULL;
}

static enum err_kind kind_of(int status, struct str message)
{
	switch (status) {
	case 401:
		return ERR_DENIED;
	case 403:
		return says(message, "exceeded quota") ? ERR_QUOTA : ERR_DENIED;
	case 404:
	case 410:
		return ERR_NOT_FOUND;
	case 409:
		return ERR_CONFLICT;
	case 429:
		return ERR_THROTTLED;
	default:
		return status >= 500 ? ERR_UNAVAILABLE : ERR_INVALID;
	}
}

/* What stands after the words; .p is NULL without them. */
static struct str after(struct str text, const char *words)
{
	const char *at = text.n ? memmem(text.p, text.n, words, strlen(words)) : NULL;

	if (!at)
		return (struct str){0};
	at += strlen(words);
	return (struct str){at, text.n - (size_t)(at - text.p)};
}

/* Of 'jobs.batch "x" is forbidden: User "u" cannot get resource "jobs" ...' the end: `what` has the rest.  Of a Role
 * with more rights than its maker has what these are: before them stand all groups of the user. */
static struct str who_may_not(struct str message, const char **ret_before)
{
	struct str rest = after(message, " is forbidden: ");
	struct str rights = after(rest, "permissions not currently held:\n");

	*ret_before = rights.p ? "it would give rights that you do not have: " : "";
	if (rights.p)
		return rights;
	return rest.p && str_starts(rest, STR("User \"")) ? rest : message;
}

int status_error(int status, struct str body, const char *what, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d = NULL;

	if (json_parse(body, a, &d, NULL) < 0)
		d = NULL;
	struct str message = doc_str(d, "message", STR(""));
	enum err_kind kind = kind_of(status, message);

	if (status == 401)
		return err_set(
			err, kind,
			"%s: the cluster does not take these credentials: they have expired, or are "
			"of another cluster",
			what);
	if (message.n == 0)
		return err_set(err, kind, "%s: the cluster answers %d", what, status);
	const char *before = "";

	if (status == 403)
		message = who_may_not(message, &before);
	message = arena_line(a, message);
	return err_set(err, kind, "%s: %s%.*s", what, before, STR_ARG(message));
}

/* For a path that it does not know, such as one of a CRD that was removed, the API server has only this. */
#define NO_SUCH_PATH "404 page not found"

bool status_is_of_api(int status, struct str body)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d = NULL;

	return status != 404 || str_is(str_trim(body), NO_SUCH_PATH) ||
	       (json_parse(body, a, &d, NULL) == 0 &&
		str_is(doc_str(d, "kind", STR("")), "Status"));
}

int64_t status_retry_ms(struct str retry_after, struct str body)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d = NULL;
	int64_t s = 0;

	if (!retry_after.p || !str_to_i64(str_trim(retry_after), &s))
		s = json_parse(body, a, &d, NULL) == 0
			    ? doc_int(doc_table(d, "details"), "retryAfterSeconds", 0)
			    : 0;
	if (s <= 0)
		return 0;
	return s < MOST_PAUSE_MS / 1000 ? s * 1000 : MOST_PAUSE_MS;
}
