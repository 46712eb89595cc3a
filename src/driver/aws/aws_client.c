/* The address under which the cloud sees the caller: the only one that reaches the master's port. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/aws/aws_resolve.h"
#include "net/address.h"
#include "fmt/http_url.h"

#define CHECK_URL "https://checkip.amazonaws.com/"
#define CHECK_PORT 80

static bool is_private(const struct address *a)
{
	uint32_t ip = ntohl(a->in4.sin_addr.s_addr);

	return a->sa.sa_family == AF_INET &&
	       (ip >> 24 == 127 || ip >> 24 == 10 || ip >> 20 == 0xac1 || ip >> 16 == 0xc0a8);
}

/* The address of this machine on the way to another.  Nothing is sent. */
static bool own_address(const struct address *to, char out[static ADDRESS_TEXT])
{
	CLEANUP(close_fdp) int fd = socket(to->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct address own = {.len = sizeof(own.in6)};

	if (fd < 0 || connect(fd, &to->sa, to->len) < 0 || getsockname(fd, &own.sa, &own.len) < 0)
		return false;
	address_text(&own, out);
	return true;
}

const char *inquiry_endpoint(const struct aws_inquiry *q)
{
	const char *url = inquiry_option(q, "endpoint_url");

	if (!url)
		url = getenv("AWS_ENDPOINT_URL_EC2");
	return url ? url : getenv("AWS_ENDPOINT_URL");
}

/* A cloud on a private network sees the address that this machine has there. */
static bool seen_privately(const struct aws_inquiry *q, char out[static ADDRESS_TEXT])
{
	const char *url = inquiry_endpoint(q);
	struct http_url u;
	struct address to;

	return url && http_url_parse(&u, str_from(url), false, NULL) == 0 &&
	       address_ip(&to, u.host, CHECK_PORT) && is_private(&to) && own_address(&to, out);
}

static int ask_public(struct aws_inquiry *q, char out[static ADDRESS_TEXT], struct err *err)
{
	const char *given = getenv("REGATTA_CHECKIP_URL");
	const char *url = given && *given ? given : CHECK_URL;
	CLEANUP(buf_release) struct buf body = {0};
	struct address a;

	buf_init(&body, 4096);
	if (aws_get_url(q->s, url, &q->d, &body, err) < 0)
		return err_wrap(
			err, "the public address of this machine is not known: set `client_cidr` "
			     "in [aws]");
	struct str text = str_trim(buf_str(&body));

	snprintf(out, ADDRESS_TEXT, "%.*s", text.n < ADDRESS_TEXT ? (int)text.n : 0, text.p);
	if (!address_ip(&a, out, CHECK_PORT) || a.sa.sa_family != AF_INET)
		return err_set(
			err, ERR_PROTOCOL,
			"%s does not say the public address of this machine: set `client_cidr` "
			"in [aws]",
			url);
	return 0;
}

int inquiry_client(struct aws_inquiry *q, struct err *err)
{
	const char *given = inquiry_option(q, "client_cidr");
	char address[ADDRESS_TEXT];

	if (!inquiry_master_is_apart(q))
		return 0;
	if (given) {
		inquiry_set(q, q->facts, "client", given);
		return 0;
	}
	if (!seen_privately(q, address) && ask_public(q, address, err) < 0)
		return -1;
	inquiry_set(q, q->facts, "client", arena_printf(q->a, "%s/32", address));
	return 0;
}
