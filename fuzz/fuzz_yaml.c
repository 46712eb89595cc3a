/* Any text parses or is refused with a position; what parses is written as JSON and read back. */
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "fuzz_doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct doc *d =
		fuzz_parse(yaml_parse_documents, (struct str){(const char *)data, size}, a);

	if (d)
		fuzz_round_trip(json_parse, doc_to_json, d, a);
	return 0;
}
