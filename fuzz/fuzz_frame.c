/* Frames cut out of any bytes: every view stays inside the input, and decoding in two halves
 * agrees. */
#include <stdint.h>
#include <stdlib.h>

#include "link/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = {(const char *)data, size};
	struct frame f;
	size_t used;

	while (frame_decode(in, &f, &used) > 0) {
		uint8_t header[FRAME_HEADER];
		uint64_t offset;
		struct str bytes;
		struct frame g;
		size_t again;

		if (used > in.n || f.payload.p != in.p + FRAME_HEADER ||
		    f.payload.n != used - FRAME_HEADER || f.payload.n > FRAME_MAX_PAYLOAD ||
		    !frame_type_name(f.type))
			abort();
		/* The header is a function of the frame, and back. */
		frame_header(header, f.type, f.flags, f.channel, (uint32_t)f.payload.n);
		if (memcmp(header, in.p, sizeof(header)) != 0 || frame_size(header) != used)
			abort();
		/* One byte less is not enough. */
		if (frame_decode((struct str){in.p, used - 1}, &g, &again) != 0)
			abort();
		if (data_payload(f.payload, &offset, &bytes) != (f.payload.n >= 8))
			abort();
		if (f.payload.n >= 8) {
			uint8_t put[8];

			data_offset_put(put, offset);
			if (memcmp(put, f.payload.p, 8) != 0 ||
			    bytes.p + bytes.n != f.payload.p + f.payload.n)
				abort();
		}
		in.p += used;
		in.n -= used;
	}
	return 0;
}
