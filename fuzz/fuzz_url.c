/* What decodes can be encoded and decoded again to the same; a small buffer stays small. */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "fmt/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct str text, bool plus)
{
	struct buf out, coded, back;

	buf_init(&out, text.n);
	buf_init(&coded, 3 * text.n);
	buf_init(&back, text.n);
	if (url_decode(&out, text, plus)) {
		if (memchr(buf_str(&out).p, '\0', out.n))
			abort();
		url_encode(&coded, buf_str(&out));
		if (coded.overflow || !url_decode(&back, buf_str(&coded), !plus) ||
		    !str_eq(buf_str(&out), buf_str(&back)))
			abort();
	}
	buf_release(&out);
	buf_release(&coded);
	buf_release(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	struct buf small;

	check(text, false);
	check(text, true);
	buf_init(&small, size / 2);
	url_decode(&small, text, true);
	if (small.n > size / 2)
		abort();
	buf_release(&small);
	return 0;
}
