/*
 * The HTTP parser over any bytes: fed whole or in pieces it says the same, its views
 * stay inside what it was given, and what it accepts is not ambiguous.
 *
 * The first byte chooses: bit 0 response, bit 1 answer to HEAD, the rest the size of pieces.
 */
#include <stdint.h>
#include <stdlib.h>

#include "fmt/http_url.h"
#include "net/http1.h"

#define MAX_HEAD 4096
#define MAX_FIELDS 16

struct outcome {
	enum http1_result head, body;
	int status;
	size_t head_used, used;
	struct buf text; /* the decoded body */
};

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void check_head(const struct http1 *h)
{
	check(h->text.n <= MAX_HEAD && h->nfields <= MAX_FIELDS);
	check(!(h->has_length && h->chunked));
	check(memmem(h->text.p, h->text.n, "\r\n\r\n", 4) == h->text.p + h->text.n - 4);
	for (size_t i = 0; i < h->nfields; i++) {
		const struct http1_field *f = &h->fields[i];

		check((size_t)f->name + f->name_n < f->value + (size_t)1);
		check((size_t)f->value + f->value_n <= h->text.n - 2);
		check(http1_is_token((struct str){h->text.p + f->name, f->name_n}));
		check(http1_is_value((struct str){h->text.p + f->value, f->value_n}));
	}
	if (h->kind == HTTP1_REQUEST) {
		check(http1_is_token(http1_method(h)) && http_url_is_target(http1_target(h)));
		check(h->minor == 0 || http1_header(h, "host").p);
	} else {
		check(h->status >= 100 && h->status <= 999);
	}
}

static void run(struct str in, enum http1_kind kind, bool was_head, size_t step, struct outcome *o)
{
	struct http1 h;
	struct http1_body b;

	*o = (struct outcome){0};
	buf_init(&o->text, in.n);
	http1_init(&h, kind, MAX_HEAD, MAX_FIELDS);
	while (o->head == HTTP1_MORE && o->used < in.n) {
		size_t n = in.n - o->used < step ? in.n - o->used : step, used;

		o->head = http1_feed(&h, (struct str){in.p + o->used, n}, &used);
		check(used <= n);
		o->used += used;
	}
	o->head_used = o->used;
	o->status = o->head == HTTP1_BAD ? h.bad_status : h.status;
	if (o->head == HTTP1_BAD)
		check(h.bad_why && h.bad_status >= 400);
	if (o->head == HTTP1_DONE) {
		check_head(&h);
		if (kind == HTTP1_REQUEST)
			http1_body_of_request(&b, &h);
		else
			http1_body_of_response(&b, &h, was_head);
		while (o->body == HTTP1_MORE && (o->used < in.n || b.done)) {
			size_t n = in.n - o->used < step ? in.n - o->used : step, used;
			struct str data;
			struct str part = {in.p + o->used, n};

			o->body = http1_body_feed(&b, part, &data, &used);
			if (o->body == HTTP1_BAD)
				break;
			check(used <= n && data.n <= used && data.p >= part.p &&
			      data.p + data.n <= part.p + n);
			buf_addstr(&o->text, data);
			o->used += used;
		}
		check(!o->text.overflow);
	}
	http1_reset(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole, cut;

	if (size == 0)
		return 0;
	struct str in = {(const char *)data + 1, size - 1};
	enum http1_kind kind = data[0] & 1 ? HTTP1_RESPONSE : HTTP1_REQUEST;
	bool was_head = data[0] & 2;

	run(in, kind, was_head, size, &whole);
	run(in, kind, was_head, 1 + (data[0] >> 2), &cut);
	check(whole.head == cut.head && whole.body == cut.body);
	/* How much of a bad message was looked at may differ with the pieces; nothing else may.
	 * A head that is both too long and wrong is refused for one or the other. */
	if (whole.head == HTTP1_DONE)
		check(whole.status == cut.status && whole.head_used == cut.head_used);
	if (whole.head == HTTP1_DONE && whole.body != HTTP1_BAD)
		check(whole.used == cut.used && str_eq(buf_str(&whole.text), buf_str(&cut.text)));
	buf_release(&whole.text);
	buf_release(&cut.text);
	return 0;
}
