#include "agent/tail.h"

#include <unistd.h>

#include "agent/relay.h"
#include "link/message.h"

#define TAIL_BYTES 4096 /* of each stream */

void tail_begin(struct tail *t, bool wanted)
{
	t->wanted = wanted;
	buf_release(&t->text);
	buf_init(&t->text, 2 * (TAIL_BYTES + 1));
}

/* A text without bytes that JSON would have to escape at length. */
static void add_stream(struct buf *out, const struct relay_stream *s)
{
	char bytes[TAIL_BYTES];
	uint64_t from = s->size > sizeof(bytes) ? s->size - sizeof(bytes) : 0;
	ssize_t n = s->fd < 0 ? 0 : pread(s->fd, bytes, sizeof(bytes), (off_t)from);

	for (ssize_t i = 0; i < n; i++) {
		bool plain = (bytes[i] >= ' ' && bytes[i] <= '~') || bytes[i] == '\n';

		buf_addc(out, plain ? bytes[i] : '?');
	}
	buf_addc(out, '\n');
}

void tail_take(struct tail *t, struct relay *r, struct exit_report *e)
{
	if (!t->wanted || e->tail || (e->code == 0 && e->kind == ERR_NONE))
		return;
	relay_refresh(r);
	buf_reset(&t->text);
	add_stream(&t->text, &r->s[STREAM_ERR]);
	add_stream(&t->text, &r->s[STREAM_OUT]);
	e->tail = t->text.p;
}
