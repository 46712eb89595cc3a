#include "fmt/quote.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/escape.h"

const char *str_quote(struct str s, char out[static QUOTE_MAX])
{
	CLEANUP(buf_release) struct buf b = {0};
	bool cut = s.n > QUOTE_TEXT;

	buf_init(&b, QUOTE_MAX - 1);
	if (cut) {
		s.n = QUOTE_TEXT;
		/* Do not cut in the middle of a UTF-8 character. */
		for (int i = 0; i < 3 && s.n > 0 && ((unsigned char)s.p[s.n] & 0xC0) == 0x80; i++)
			s.n--;
	}
	escape_terminal(&b, s);
	if (cut)
		buf_addz(&b, "...");
	struct str text = buf_str(&b);
	memcpy(out, text.p, text.n);
	out[text.n] = '\0';
	return out;
}
