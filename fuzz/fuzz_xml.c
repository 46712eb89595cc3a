/* Any bytes parse or are refused with a reason; a tree is sound: every child knows its parent. */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fmt/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t walk(const struct xml *x, const struct xml *parent, int depth)
{
	size_t n = 0;

	for (; x; x = x->next) {
		if (x->parent != parent || !x->name || !x->text || depth > XML_MAX_DEPTH ||
		    (x->child && *x->text))
			abort();
		n += 1 + walk(x->child, x, depth + 1);
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct xml *root = NULL;
	struct err err = {0};

	if (xml_parse((struct str){(const char *)data, size}, a, &root, &err) < 0) {
		if (err.kind != ERR_PROTOCOL || !*err.msg || root)
			abort();
		return 0;
	}
	if (root->next || walk(root, NULL, 1) > XML_MAX_NODES)
		abort();
	xml_text(root, "Errors/Error/Code");
	xml_count(root, "reservationSet/item");
	return 0;
}
