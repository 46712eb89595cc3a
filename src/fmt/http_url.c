#include "fmt/http_url.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/escape.h"

static int bad(struct err *err, struct str text, const char *why)
{
	CLEANUP(buf_release) struct buf shown = {0};
	const char *at = memrchr(text.p, '@', text.n);

	buf_init(&shown, 8 * HTTP_URL_MAX);
	if (at) { /* what is before it may be a password */
		buf_addz(&shown, "***");
		text = (struct str){at, (size_t)(text.p + text.n - at)};
	}
	escape_terminal(&shown, text);
	text = buf_str(&shown);
	return err_set(err, ERR_INVALID, "the URL '%.*s' %s", text.n < 100 ? (int)text.n : 100,
		       text.p, why);
}

/* Browsers send {|}^`\ raw in queries; "<># never. */
bool http_url_is_target(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= 0x20 || s.p[i] >= 0x7f || strchr("\"<>#", s.p[i]))
			return false;
	return s.n > 0 && s.p[0] == '/';
}

static bool take_scheme(struct str *rest, bool optional, bool *ret_tls)
{
	static const struct str http = {"http://", 7}, https = {"https://", 8};

	*ret_tls = rest->n >= https.n && strncasecmp(rest->p, https.p, https.n) == 0;
	if (*ret_tls) {
		*rest = (struct str){rest->p + https.n, rest->n - https.n};
		return true;
	}
	if (rest->n >= http.n && strncasecmp(rest->p, http.p, http.n) == 0) {
		*rest = (struct str){rest->p + http.n, rest->n - http.n};
		return true;
	}
	return optional && !memmem(rest->p, rest->n, "://", 3);
}

static bool take_port(struct str text, int *ret)
{
	uint64_t port;

	if (!str_to_u64(text, &port) || port == 0 || port > 65535)
		return false;
	*ret = (int)port;
	return true;
}

static bool is_host_byte(char c, bool v6)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr(v6 ? ":." : "-_.", c);
}

/* "host", "host:port", "[v6]:port" */
static bool take_authority(struct http_url *u, struct str text)
{
	bool v6 = text.n > 0 && text.p[0] == '[';
	const char *end = v6 ? memchr(text.p, ']', text.n) : memchr(text.p, ':', text.n);

	if (v6 && !end)
		return false;
	struct str host = {text.p + (v6 ? 1 : 0),
			   (size_t)((end ? end : text.p + text.n) - text.p) - (v6 ? 1 : 0)};
	const char *after = host.p + host.n + (v6 ? 1 : 0);
	struct str port = {after, (size_t)(text.p + text.n - after)};

	if (host.n == 0 || host.n >= sizeof(u->host))
		return false;
	for (size_t i = 0; i < host.n; i++)
		if (!host.p[i] || !is_host_byte(host.p[i], v6))
			return false;
	memcpy(u->host, host.p, host.n);
	u->host[host.n] = '\0';
	u->port = u->tls ? 443 : 80;
	if (port.n == 0)
		return true;
	return port.p[0] == ':' &&
	       (port.n == 1 || take_port((struct str){port.p + 1, port.n - 1}, &u->port));
}

int http_url_parse(struct http_url *ret, struct str text, bool scheme_optional, struct err *err)
{
	struct http_url u = {0};
	struct str rest = text;
	size_t n = 0;

	if (text.n > HTTP_URL_MAX)
		return err_set(err, ERR_INVALID, "a URL of %zu bytes is too long", text.n);
	if (!take_scheme(&rest, scheme_optional, &u.tls))
		return bad(err, text, "does not begin with http:// or https://");
	while (n < rest.n && !strchr("/?#", rest.p[n]))
		n++;
	struct str authority = {rest.p, n};
	const char *at = memrchr(authority.p, '@', authority.n);

	rest = (struct str){rest.p + n, rest.n - n};
	if (at) {
		u.user = (struct str){authority.p, (size_t)(at - authority.p)};
		authority = (struct str){at + 1, authority.n - u.user.n - 1};
	}
	if (!take_authority(&u, authority))
		return bad(err, text, "has no proper host and port");
	u.path = str_cut(&rest, '#');
	if (u.path.n > 0 && !http_url_is_target(u.path))
		return bad(err, text, "has a path with bad characters");
	*ret = u;
	return 0;
}

void http_url_authority(struct buf *out, const char *host, int port, bool tls, bool always_port)
{
	bool v6 = strchr(host, ':');

	buf_printf(out, "%s%s%s", v6 ? "[" : "", host, v6 ? "]" : "");
	if (always_port || port != (tls ? 443 : 80))
		buf_printf(out, ":%d", port);
}
