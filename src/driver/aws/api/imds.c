#include "driver/aws/api/imds.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "driver/aws/api/internal.h"
#include "driver/aws/api/profile.h"
#include "net/imds.h"

int imds_read(struct aws *s, const char *path, const struct deadline *d, struct buf *out,
	      struct err *err)
{
	return imds_get(&s->places.env, path, d, out, err);
}

int imds_region(struct aws *s, const struct deadline *d, char out[static 32], struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 4096);
	if (imds_read(s, "placement/region", d, &text, err) < 0)
		return -1;
	struct str region = str_trim(buf_str(&text));

	snprintf(out, 32, "%.*s", region.n < 31 ? (int)region.n : 31, region.p);
	if (!aws_region_is_proper(out))
		return err_set(err, ERR_PROTOCOL, "instance metadata: no region");
	return 0;
}
