#include "metrics/grep.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"

struct grep {
	pcre2_code *code;
	pcre2_match_data *match;
};

struct grep *grep_new(const char *text, struct err *err)
{
	PCRE2_SIZE at = 0;
	int error = 0;
	pcre2_code *code =
		pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, 0, &error, &at, NULL);

	if (!code) {
		char why[120];

		pcre2_get_error_message(error, (PCRE2_UCHAR *)why, sizeof(why));
		err_set(err, ERR_INVALID, "not a regular expression: '%.80s': %s at offset %zu",
			text, why, at);
		return NULL;
	}
	struct grep *g = xcalloc(1, sizeof(*g));

	/* The interpreter: the stack of compiled code would be too small for some long lines. */
	g->code = code;
	g->match = pcre2_match_data_create(1, NULL);
	if (!g->match)
		abort(); /* out of memory */
	return g;
}

struct grep *grep_free(struct grep *g)
{
	if (g) {
		pcre2_match_data_free(g->match);
		pcre2_code_free(g->code);
		free(g);
	}
	return NULL;
}

int grep_line(struct grep *g, struct str line, struct err *err)
{
	int rc = pcre2_match(g->code, (PCRE2_SPTR)(line.p ? line.p : ""), line.n, 0, 0, g->match,
			     NULL);

	if (rc >= 0)
		return 1;
	if (rc == PCRE2_ERROR_NOMATCH)
		return 0;
	return err_set(err, ERR_CAPACITY, "the regular expression takes too many steps on a line");
}
