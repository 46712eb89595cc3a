#include "driver/master_way.h"

#include <stddef.h>

#include "base/deadline.h"
#include "base/err.h"
#include "base/str.h"
#include "driver/driver.h"
#include "net/http_client.h"
#include "fmt/http_url.h"

static const struct master_way *const ways[] = {&kube_way};

static const struct master_way *way_of(const char *url)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (str_starts(str_from(url), str_from(ways[i]->scheme)))
			return ways[i];
	return NULL;
}

bool master_way_is(const char *url)
{
	return way_of(url) != NULL;
}

int master_way_dial(const struct driver_master *at, const char *credentials,
		    const struct deadline *d, struct http_client **ret, struct err *err)
{
	const struct master_way *way = way_of(at->url);
	struct http_url u;

	if (way)
		return way->dial(at, credentials, d, ret, err);
	if (http_url_parse(&u, str_from(at->url), false, err) < 0)
		return -1;
	const struct http_target to = {
		.host = u.host,
		.port = u.port,
		.tls = {.mode = TLS_PIN, .pin = at->pin},
		.token = at->token,
		.stop = d->stop,
	};

	return http_client_open(&to, (int)deadline_left_ms(d), ret, err);
}
