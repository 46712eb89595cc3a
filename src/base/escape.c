#include "base/escape.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/utf8.h"

/*
 * Code points that a terminal obeys rather than shows, or that make a line
 * read otherwise than it is written.  Sorted.
 */
static const struct {
	uint32_t first, last;
} unsafe[] = {
	{0x00, 0x08},	    {0x0a, 0x1f},     {0x7f, 0x9f}, /* C0 but tab, DEL, C1 */
	{0x61c, 0x61c},	    {0x200e, 0x200f},		    /* bidi marks */
	{0x2028, 0x202e},				    /* separators, bidi embeddings */
	{0x2060, 0x206f},				    /* invisible, bidi isolates */
	{0xfdd0, 0xfdef},   {0xfeff, 0xfeff},		    /* noncharacters, BOM */
	{0xfff9, 0xfffb},   {0xfffe, 0xffff},		    /* interlinear, noncharacters */
	{0xe0000, 0xe0fff},				    /* tags: invisible text */
};

static bool is_unsafe(uint32_t cp)
{
	size_t low = 0, high = sizeof(unsafe) / sizeof(unsafe[0]);

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (cp < unsafe[middle].first)
			high = middle;
		else if (cp > unsafe[middle].last)
			low = middle + 1;
		else
			return true;
	}
	/* U+1FFFE, U+1FFFF, ... U+10FFFF are noncharacters in every plane. */
	return (cp & 0xfffe) == 0xfffe;
}

void escape_terminal(struct buf *out, struct str bytes)
{
	size_t clean = 0, i = 0;

	/* Bytes that need no change are copied in runs, from `clean` up to i. */
	while (i < bytes.n) {
		unsigned char c = (unsigned char)bytes.p[i];
		uint32_t cp;

		if ((c >= 0x20 && c < 0x7f) || c == '\t') {
			i++;
			continue;
		}
		size_t len = utf8_decode(bytes.p + i, bytes.n - i, &cp);
		if (len && !is_unsafe(cp)) {
			i += len;
			continue;
		}
		if (i > clean)
			buf_add(out, bytes.p + clean, i - clean);
		if (len > 1)
			buf_printf(out, "\\u{%04x}", cp);
		else
			buf_printf(out, "\\x%02x", c);
		i += len ? len : 1;
		clean = i;
	}
	if (i > clean)
		buf_add(out, bytes.p + clean, i - clean);
}
