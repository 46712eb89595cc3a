#include "cli/command/prices.h"

#include <math.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "base/str.h"
#include "fmt/doc.h"

#define MAX_FILE (4u << 20)
#define MICRO 1e6
#define MOST_USD                                                                                   \
	2000.0 /* an hour of a machine: core/cost.c counts with prices below 2^31 millionths */

struct columns {
	int type, price; /* -1: there is none */
};

static struct str field_at(struct str line, int at)
{
	struct str field = {0};

	for (int i = 0; i <= at && line.p; i++)
		field = str_cut(&line, ',');
	return str_trim(field);
}

static struct columns columns_of(struct str head)
{
	struct columns c = {-1, -1};

	for (int i = 0; head.p; i++) {
		struct str name = str_trim(str_cut(&head, ','));

		if (str_is(name, "type"))
			c.type = i;
		else if (str_is(name, "usd_per_hour"))
			c.price = i;
	}
	return c;
}

static int read_row(struct str line, const struct columns *c, struct arena *a, struct doc *prices,
		    struct err *err)
{
	struct str type = field_at(line, c->type), text = field_at(line, c->price);
	double usd;

	if (type.n == 0 || text.n == 0)
		return 0;
	if (!str_to_double(text, &usd) || usd < 0 || usd > MOST_USD)
		return err_set(err, ERR_INVALID, "'%.*s' is no price of an hour in US dollars",
			       (int)(text.n < 40 ? text.n : 40), text.p);
	doc_set(a, prices, arena_str(a, type), doc_new_int(a, llround(usd * MICRO)));
	return 0;
}

int prices_read(const char *path, struct arena *a, struct doc **ret, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *facts = doc_new(a, DOC_TABLE), *prices = doc_new(a, DOC_TABLE);

	buf_init(&text, MAX_FILE);
	if (file_read(path, &text, err) < 0)
		return -1;
	struct str rest = buf_str(&text);
	struct columns c = columns_of(str_cut(&rest, '\n'));

	if (c.type < 0 || c.price < 0)
		return err_set(
			err, ERR_INVALID,
			"%.100s:1: the first line must name the columns type and usd_per_hour",
			path);
	for (int number = 2; rest.n > 0; number++)
		if (read_row(str_cut(&rest, '\n'), &c, a, prices, err) < 0)
			return err_wrap(err, "%.100s:%d", path, number);
	doc_set(a, facts, STR("prices"), prices);
	doc_set(a, facts, STR("prices_as_of"), doc_new_str(a, str_from(path_base(path))));
	*ret = facts;
	return 0;
}
