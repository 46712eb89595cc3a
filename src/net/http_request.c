#include "net/http_request.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "net/http1.h"

/* Set by the client itself: headers of framing and routing. */
static const char *const own_fields[] = {"Host",       "Content-Length", "Transfer-Encoding",
					 "Connection", "Expect",	 "Upgrade",
					 "TE",	       "Trailer",	 "Proxy-Authorization"};
/* Headers that are sent to hosts other than the target. */
static const char *const harmless_fields[] = {
	"Accept",   "Accept-Encoding",	 "If-Match", "If-None-Match",
	"If-Range", "If-Modified-Since", "Range",    "User-Agent"};
#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

static bool is_listed(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(name, list[i]) == 0)
			return true;
	return false;
}

static int check_field(const struct http_outgoing *r, const struct http_field *f, bool has_token,
		       struct err *err)
{
	if (!f->name || !f->value || !http1_is_token(str_from(f->name)) ||
	    !http1_is_value(str_from(f->value)))
		return err_set(err, ERR_INVALID, "bad characters in the header '%.60s'",
			       f->name ? f->name : "");
	if (is_listed(f->name, own_fields, COUNT(own_fields)) ||
	    (has_token && strcasecmp(f->name, "Authorization") == 0) ||
	    (r->type && strcasecmp(f->name, "Content-Type") == 0))
		return err_set(err, ERR_INVALID, "the header '%s' is not the caller's to set",
			       f->name);
	return 0;
}

int http_request_check(const struct http_outgoing *r, bool has_token, struct err *err)
{
	if (!r->method || !r->path || !http1_is_token(str_from(r->method)) ||
	    !http_url_is_target(str_from(r->path)) ||
	    (r->type && !http1_is_value(str_from(r->type))))
		return err_set(err, ERR_INVALID, "bad characters in the request for '%.100s'",
			       r->path ? r->path : "");
	if (r->nfields > HTTP_MAX_FIELDS)
		return err_set(err, ERR_INVALID, "more than %d headers", HTTP_MAX_FIELDS);
	if (r->max_redirects < 0 || r->max_redirects > HTTP_MAX_REDIRECTS)
		return err_set(err, ERR_INVALID, "more than %d redirects", HTTP_MAX_REDIRECTS);
	for (size_t i = 0; i < r->nfields; i++)
		if (check_field(r, &r->fields[i], has_token, err) < 0)
			return -1;
	return 0;
}

uint64_t http_request_length(const struct http_outgoing *r)
{
	return r->from_fd ? r->size : r->body.n;
}

static void write_target(const struct http_request_head *h, struct buf *out)
{
	const struct http_origin *o = h->origin;

	buf_printf(out, "%s ", h->r->method);
	if (h->proxy) {
		buf_addz(out, "http://");
		http_url_authority(out, o->host, o->port, false, false);
	}
	buf_printf(out, "%s HTTP/1.1\r\nHost: ", h->path);
	if (*o->host)
		http_url_authority(out, o->host, o->port, o->tls, false);
	else
		buf_addz(out, "localhost");
	buf_addz(out, "\r\n");
	if (h->proxy)
		proxy_authorization(out, h->proxy);
}

static void write_fields(const struct http_request_head *h, struct buf *out)
{
	const struct http_outgoing *r = h->r;
	bool named = false;

	for (size_t i = 0; i < r->nfields; i++) {
		const struct http_field *f = &r->fields[i];

		if (h->abroad && !is_listed(f->name, harmless_fields, COUNT(harmless_fields)))
			continue;
		named |= strcasecmp(f->name, "User-Agent") == 0;
		buf_printf(out, "%s: %s\r\n", f->name, f->value);
	}
	if (!named && *h->origin->host)
		buf_addz(out, "User-Agent: regatta/" REGATTA_VERSION "\r\n");
}

int http_request_write(const struct http_request_head *h, struct buf *out, struct err *err)
{
	const struct http_outgoing *r = h->r;
	uint64_t length = http_request_length(r);
	bool reads = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;

	write_target(h, out);
	if (h->token && !h->abroad)
		buf_printf(out, "Authorization: Bearer %s\r\n", h->token);
	if (h->inner_token && !h->abroad)
		buf_printf(out, HTTP_INNER_TOKEN ": %s\r\n", h->inner_token);
	write_fields(h, out);
	if (r->type)
		buf_printf(out, "Content-Type: %s\r\n", r->type);
	if (length > 0 || !reads)
		buf_printf(out, "Content-Length: %" PRIu64 "\r\n", length);
	if (r->expect_continue && length > 0)
		buf_addz(out, "Expect: 100-continue\r\n");
	buf_addz(out, "\r\n");
	if (out->overflow)
		return err_set(err, ERR_INVALID, "the request for a path of %zu bytes is too long",
			       strlen(h->path));
	return 0;
}

bool http_origin_equal(const struct http_origin *a, const struct http_origin *b)
{
	return a->tls == b->tls && a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

static int to_url(const struct http_origin *from, struct str url, struct http_origin *ret_to,
		  struct buf *ret_path, struct err *err)
{
	struct http_url u;

	if (http_url_parse(&u, url, false, err) < 0)
		return -1;
	if (from->tls && !u.tls)
		return err_set(err, ERR_DENIED, "it leads from https to http");
	*ret_to = (struct http_origin){.port = u.port, .tls = u.tls};
	memcpy(ret_to->host, u.host, sizeof(u.host));
	buf_addstr(ret_path, u.path.n > 0 ? u.path : STR("/"));
	return 0;
}

/* The path up to its last slash, then `relative`. */
static void join_path(const char *path, struct str relative, struct buf *ret_path)
{
	size_t query = strcspn(path, "?");
	const char *slash = memrchr(path, '/', query);

	if (relative.n > 0 && relative.p[0] == '?')
		buf_add(ret_path, path, query);
	else if (relative.n == 0 || relative.p[0] != '/')
		buf_add(ret_path, path, slash ? (size_t)(slash - path) + 1 : 0);
	buf_addstr(ret_path, relative);
}

/* Does the URL have a scheme (a colon before any slash or question mark)? */
static bool has_scheme(struct str url)
{
	for (size_t i = 0; i < url.n && !strchr("/?", url.p[i]); i++)
		if (url.p[i] == ':')
			return true;
	return false;
}

int http_redirect(const struct http_origin *from, const char *path, struct str location,
		  struct http_origin *ret_to, struct buf *ret_path, struct err *err)
{
	struct str rest = location, relative = str_cut(&rest, '#');

	buf_reset(ret_path);
	if (location.n == 0)
		return err_set(err, ERR_PROTOCOL, "a redirect without a place");
	if (!*from->host)
		return err_set(err, ERR_PROTOCOL, "a redirect on a unix socket");
	if (str_starts(relative, STR("//"))) {
		CLEANUP(buf_release) struct buf url = {0};

		buf_init(&url, HTTP_URL_MAX);
		buf_printf(&url, "%s:", from->tls ? "https" : "http");
		buf_addstr(&url, relative);
		return to_url(from, buf_str(&url), ret_to, ret_path, err);
	}
	if (has_scheme(relative))
		return to_url(from, relative, ret_to, ret_path, err);
	*ret_to = *from;
	join_path(path, relative, ret_path);
	if (ret_path->overflow || !http_url_is_target(buf_str(ret_path)))
		return err_set(err, ERR_PROTOCOL, "a redirect to a malformed URL");
	return 0;
}
