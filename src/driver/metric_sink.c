#include "driver/metric_sink.h"

#include <string.h>

#include "base/err.h"

static const struct metric_scheme *const schemes[] = {&cloudwatch_metrics};

int metric_sink_put(const struct metric_batch *b, const struct deadline *d, struct err *err)
{
	const char *place = strstr(b->url, "://");
	size_t n = place ? (size_t)(place - b->url) : 0;

	for (size_t i = 0; n && i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strlen(schemes[i]->name) == n && strncmp(schemes[i]->name, b->url, n) == 0)
			return schemes[i]->put(place + 3, b, d, err);
	return err_set(err, ERR_INVALID, "'%.100s' is no place for metrics", b->url);
}
