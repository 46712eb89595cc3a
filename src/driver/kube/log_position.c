#include "driver/kube/log_position.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"

void log_reader_begin(struct log_reader *r)
{
	r->skip = r->newer_only ? 0 : r->at.before + r->at.within;
	r->skip_part = r->newer_only ? 0 : r->at.part;
	if (r->newer_only)
		r->at.part = r->at.before = r->at.within = 0;
	r->in_line = r->found = false;
	r->ntime = 0;
	r->said[0] = '\0';
}

void log_reader_since(const struct log_reader *r, char out[static 32])
{
	out[0] = '\0';
	if (r->at.second)
		clock_format((r->at.second - 1) * 1000, out);
}

static void count_line(struct log_position *p, int64_t second)
{
	if (second == p->second)
		p->within++;
	else if (second == p->second - 1)
		p->before++;
}

static void move_on(struct log_position *p, int64_t second)
{
	if (second <= p->second)
		return;
	p->before = second == p->second + 1 ? p->within : 0;
	p->within = 0;
	p->second = second;
}

/* The time of a line is complete.  False: the place is lost. */
static bool begin_line(struct log_reader *r)
{
	int64_t ms = 0;

	r->time[r->ntime] = '\0';
	r->in_line = true;
	r->foreign = !clock_parse(str_from(r->time), &ms);
	r->skips = false;
	r->says = r->foreign && !r->said[0];
	if (r->says)
		snprintf(r->said, sizeof(r->said), "%s", r->time);
	if (r->foreign)
		return true;
	r->line_second = ms / 1000;
	if (r->newer_only) {
		int order = strcmp(r->time, r->at.last);

		r->skips = order <= 0;
		r->found |= order == 0;
		r->gap |= order > 0 && !r->found;
	} else if (r->skip > 0) {
		r->skips = true;
	} else if (r->skip_part > 0) {
		if (strcmp(r->time, r->at.last) != 0) {
			r->newer_only = true;
			return false;
		}
		return true;
	}
	if (r->skips)
		return true;
	move_on(&r->at, r->line_second);
	r->at.part = 0;
	return true;
}

/* False: the last of the lines to skip is not the last that was taken. */
static bool end_line(struct log_reader *r)
{
	r->in_line = false;
	r->ntime = 0;
	if (r->foreign)
		return true;
	if (!r->skips) {
		r->newer_only = false; /* from here on lines are counted again */
		count_line(&r->at, r->line_second);
		r->at.part = 0;
		return true;
	}
	if (r->skip == 0 || --r->skip > 0 || r->at.part > 0 || strcmp(r->time, r->at.last) == 0)
		return true;
	r->newer_only = true;
	return false;
}

static void take_text(struct log_reader *r, struct str text, struct buf *out)
{
	size_t known = r->skip_part < text.n ? (size_t)r->skip_part : text.n;
	size_t has = strlen(r->said);

	if (r->says && has > 0)
		snprintf(r->said + has, sizeof(r->said) - has, " %.*s", STR_ARG(str_trim(text)));
	if (r->foreign || r->skips)
		return;
	r->skip_part -= known;
	/* Of a line that the next answer has. */
	if (r->line_second >= r->at.second - 1)
		memcpy(r->at.last, r->time, sizeof(r->at.last));
	r->at.part += text.n - known;
	buf_add(out, text.p + known, text.n - known);
}

bool log_reader_take(struct log_reader *r, struct str bytes, struct buf *out)
{
	while (bytes.n > 0) {
		if (!r->in_line) {
			char c = *bytes.p;

			if (c == ' ' || c == '\n' || r->ntime + 1 == sizeof(r->time)) {
				if (!begin_line(r))
					return false;
				if (c == '\n' && r->foreign) { /* a line without a time */
					r->in_line = false;
					r->ntime = 0;
				}
			} else {
				r->time[r->ntime++] = c;
			}
			bytes.p++;
			bytes.n--;
			continue;
		}
		const char *nl = memchr(bytes.p, '\n', bytes.n);
		size_t n = nl ? (size_t)(nl - bytes.p) + 1 : bytes.n;

		take_text(r, (struct str){bytes.p, n}, out);
		if (nl && !end_line(r))
			return false;
		bytes.p += n;
		bytes.n -= n;
	}
	return true;
}

void log_position_put(const struct log_position *p, char *out, size_t size)
{
	snprintf(out, size, "%" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s", p->second,
		 p->before, p->within, p->part, p->last[0] ? p->last : "-");
}

bool log_position_get(const char *text, struct log_position *ret)
{
	struct log_position p = {0};

	if (sscanf(text, "%" SCNd64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %39s", &p.second,
		   &p.before, &p.within, &p.part, p.last) != 5)
		return false;
	*ret = p;
	return true;
}
