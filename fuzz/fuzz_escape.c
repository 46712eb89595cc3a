/* Whatever goes in, nothing that a terminal obeys comes out, and a bounded buffer stays bounded. */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/escape.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct str out)
{
	for (size_t i = 0; i < out.n;) {
		uint32_t cp;
		size_t len = utf8_decode(out.p + i, out.n - i, &cp);

		if (!len || (cp < 0x20 && cp != '\t') || (cp >= 0x7f && cp < 0xa0) ||
		    (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069) ||
		    cp == 0x200e || cp == 0x200f || cp == 0x61c)
			abort();
		i += len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = {(const char *)data, size};
	struct buf out;

	buf_init(&out, 4 * size);
	escape_terminal(&out, in);
	/* Four bytes for one are always enough. */
	if (out.overflow)
		abort();
	check(buf_str(&out));
	buf_release(&out);

	buf_init(&out, size / 2);
	escape_terminal(&out, in);
	if (out.n > size / 2)
		abort();
	check(buf_str(&out));
	buf_release(&out);
	return 0;
}
