/* Wherever a server leads us: a host and a path that can be sent, never from https to http; and every
 * URL that is taken has a host without bad bytes and a port. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "net/http1.h"
#include "net/http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_host(const char *host, int port)
{
	size_t n = strlen(host);

	if (n == 0 || n >= HTTP_HOST_MAX || strpbrk(host, "/@ \r\n\t?#[]") || port < 1 ||
	    port > 65535)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str location = {(const char *)data, size};
	const struct http_origin from = {.host = "a.test", .port = 443, .tls = true};
	CLEANUP(buf_release) struct buf path = {0};
	struct http_origin to;
	struct http_url u;

	buf_init(&path, HTTP_URL_MAX);
	if (http_redirect(&from, "/dir/name?q=/x", location, &to, &path, NULL) == 0) {
		check_host(to.host, to.port);
		if (!to.tls || !http_url_is_target(buf_str(&path)))
			abort();
	}
	if (http_url_parse(&u, location, true, NULL) == 0)
		check_host(u.host, u.port);
	return 0;
}
