#include "net/http1.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hex.h"
#include "base/vec.h"
#include "fmt/http_url.h"

#define MAX_METHOD 32
#define MAX_LENGTH_DIGITS 18 /* fits in 63 bits */
#define MAX_CHUNK_DIGITS 15
#define MAX_CHUNK_LINE 1024 /* size and extensions */
#define MAX_TRAILER 8192

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{100, "Continue"},
	{200, "OK"},
	{201, "Created"},
	{202, "Accepted"},
	{204, "No Content"},
	{206, "Partial Content"},
	{301, "Moved Permanently"},
	{302, "Found"},
	{303, "See Other"},
	{304, "Not Modified"},
	{400, "Bad Request"},
	{401, "Unauthorized"},
	{403, "Forbidden"},
	{404, "Not Found"},
	{405, "Method Not Allowed"},
	{406, "Not Acceptable"},
	{408, "Request Timeout"},
	{409, "Conflict"},
	{410, "Gone"},
	{411, "Length Required"},
	{412, "Precondition Failed"},
	{413, "Content Too Large"},
	{414, "URI Too Long"},
	{415, "Unsupported Media Type"},
	{416, "Range Not Satisfiable"},
	{417, "Expectation Failed"},
	{421, "Misdirected Request"},
	{422, "Unprocessable Content"},
	{426, "Upgrade Required"},
	{429, "Too Many Requests"},
	{431, "Request Header Fields Too Large"},
	{500, "Internal Server Error"},
	{501, "Not Implemented"},
	{502, "Bad Gateway"},
	{503, "Service Unavailable"},
	{504, "Gateway Timeout"},
	{505, "HTTP Version Not Supported"},
	{507, "Insufficient Storage"},
};

const char *http1_reason(int status)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "";
}

/* Not <ctype.h>, which depends on the locale. */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

bool http1_is_token(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_alnum(s.p[i]) && !is_one_of(s.p[i], "!#$%&'*+-.^_`|~"))
			return false;
	return s.n > 0;
}

bool http1_is_value(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (is_control(s.p[i]) && s.p[i] != '\t')
			return false;
	return true;
}

static bool is_case(struct str s, const char *z)
{
	return s.n == strlen(z) && strncasecmp(s.p, z, s.n) == 0;
}

static struct str trim_ows(struct str s)
{
	while (s.n > 0 && is_one_of(s.p[0], " \t")) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && is_one_of(s.p[s.n - 1], " \t"))
		s.n--;
	return s;
}

void http1_init(struct http1 *h, enum http1_kind kind, size_t max_bytes, size_t max_headers)
{
	*h = (struct http1){.kind = kind, .max_headers = max_headers};
	buf_init(&h->text, max_bytes < UINT32_MAX ? max_bytes : UINT32_MAX);
}

void http1_reset(struct http1 *h)
{
	enum http1_kind kind = h->kind;
	size_t max_bytes = h->text.max, max_headers = h->max_headers;

	buf_release(&h->text);
	free(h->fields);
	http1_init(h, kind, max_bytes, max_headers);
}

static enum http1_result bad(struct http1 *h, int status, const char *why)
{
	h->bad_status = status;
	h->bad_why = why;
	return HTTP1_BAD;
}

/* "HTTP/1.1" or "HTTP/1.0". */
static enum http1_result take_version(struct http1 *h, struct str v)
{
	if (v.n != 8 || memcmp(v.p, "HTTP/", 5) != 0 || !is_digit(v.p[5]) || v.p[6] != '.' ||
	    !is_digit(v.p[7]))
		return bad(h, 400, "malformed HTTP version");
	if (v.p[5] != '1' || v.p[7] > '1')
		return bad(h, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
	h->minor = v.p[7] - '0';
	return HTTP1_MORE;
}

static enum http1_result take_request_line(struct http1 *h, struct str line)
{
	const char *first = memchr(line.p, ' ', line.n), *last = memrchr(line.p, ' ', line.n);

	if (!first || first == last)
		return bad(h, 400, "malformed request line");
	struct str method = {line.p, (size_t)(first - line.p)};
	struct str target = {first + 1, (size_t)(last - first - 1)};
	struct str version = {last + 1, (size_t)(line.p + line.n - last - 1)};

	if (method.n > MAX_METHOD || !http1_is_token(method))
		return bad(h, 400, "malformed method");
	if (!http_url_is_target(target))
		return bad(h, 400, "the request target must be a path without bad characters");
	h->method_n = (uint32_t)method.n;
	h->target = (uint32_t)(target.p - h->text.p);
	h->target_n = (uint32_t)target.n;
	return take_version(h, version);
}

static enum http1_result take_status_line(struct http1 *h, struct str line)
{
	if (line.n < 12 || line.p[8] != ' ' || (line.n > 12 && line.p[12] != ' '))
		return bad(h, 400, "malformed status line");
	for (size_t i = 9; i < 12; i++) {
		if (!is_digit(line.p[i]))
			return bad(h, 400, "malformed status");
		h->status = h->status * 10 + (line.p[i] - '0');
	}
	if (h->status < 100)
		return bad(h, 400, "malformed status");
	return take_version(h, (struct str){line.p, 8});
}

/* Headers that the parser itself uses: framing, host, connection. */

static enum http1_result see_length(struct http1 *h, struct str v)
{
	if (h->has_length)
		return bad(h, 400, "two Content-Length headers");
	for (size_t i = 0; i < v.n; i++)
		if (!is_digit(v.p[i]))
			return bad(h, 400, "Content-Length is not a number");
	if (v.n > MAX_LENGTH_DIGITS || !str_to_u64(v, &h->length))
		return bad(h, 400, "Content-Length is not a number");
	h->has_length = true;
	return HTTP1_MORE;
}

static enum http1_result see_coding(struct http1 *h, struct str v)
{
	if (h->chunked)
		return bad(h, 400, "two Transfer-Encoding headers");
	if (h->minor == 0)
		return bad(h, 400, "Transfer-Encoding in HTTP/1.0");
	if (!is_case(v, "chunked"))
		return bad(h, 501, "unknown Transfer-Encoding");
	h->chunked = true;
	return HTTP1_MORE;
}

static enum http1_result see_connection(struct http1 *h, struct str v)
{
	while (v.p) {
		struct str option = trim_ows(str_cut(&v, ','));

		if (is_case(option, "close"))
			h->wants_close = true;
	}
	return HTTP1_MORE;
}

static enum http1_result see_host(struct http1 *h, struct str v)
{
	if (h->has_host)
		return bad(h, 400, "two Host headers");
	for (size_t i = 0; i < v.n; i++)
		if (!is_alnum(v.p[i]) && !is_one_of(v.p[i], ".-_:[]%"))
			return bad(h, 400, "malformed Host");
	h->has_host = true;
	return HTTP1_MORE;
}

static enum http1_result see_expect(struct http1 *h, struct str v)
{
	if (!is_case(v, "100-continue"))
		return bad(h, 417, "unknown Expect");
	h->expects_continue = true;
	return HTTP1_MORE;
}

static const struct {
	const char *name;
	bool in_responses;
	enum http1_result (*see)(struct http1 *h, struct str value);
} seen[] = {
	{"Content-Length", true, see_length}, {"Transfer-Encoding", true, see_coding},
	{"Connection", true, see_connection}, {"Host", false, see_host},
	{"Expect", false, see_expect},
};

static enum http1_result take_header(struct http1 *h, struct str line)
{
	const char *colon = memchr(line.p, ':', line.n);

	if (is_one_of(line.p[0], " \t"))
		return bad(h, 400, "folded header line");
	if (!colon)
		return bad(h, 400, "header line without a colon");
	struct str name = {line.p, (size_t)(colon - line.p)};
	struct str value = trim_ows((struct str){colon + 1, (size_t)(line.p + line.n - colon - 1)});

	if (!http1_is_token(name))
		return bad(h, 400, "malformed header name");
	if (h->nfields == h->max_headers)
		return bad(h, 431, "too many headers");
	if (h->nfields == h->fields_cap)
		h->fields =
			vec_grow_(h->fields, &h->fields_cap, h->nfields + 1, sizeof(*h->fields));
	h->fields[h->nfields++] = (struct http1_field){
		.name = (uint32_t)(name.p - h->text.p),
		.name_n = (uint32_t)name.n,
		.value = (uint32_t)(value.p - h->text.p),
		.value_n = (uint32_t)value.n,
	};
	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
		if (is_case(name, seen[i].name) &&
		    (h->kind == HTTP1_REQUEST || seen[i].in_responses))
			return seen[i].see(h, value);
	return HTTP1_MORE;
}

static enum http1_result end_of_head(struct http1 *h)
{
	if (h->has_length && h->chunked)
		return bad(h, 400, "both Content-Length and Transfer-Encoding");
	if (h->kind == HTTP1_REQUEST && h->minor == 1 && !h->has_host)
		return bad(h, 400, "no Host header");
	return HTTP1_DONE;
}

/* A line is complete in text, with its LF. */
static enum http1_result take_line(struct http1 *h)
{
	struct str line = {h->text.p + h->line, h->text.n - h->line - 1};
	bool first = h->line == 0;

	if (line.n == 0 || line.p[line.n - 1] != '\r')
		return bad(h, 400, "line ends without CR");
	line.n--;
	if (memchr(line.p, '\r', line.n))
		return bad(h, 400, "CR inside a line");
	h->line = h->text.n;
	if (!first)
		return line.n == 0 ? end_of_head(h) : take_header(h, line);
	return h->kind == HTTP1_REQUEST ? take_request_line(h, line) : take_status_line(h, line);
}

/* Checked on arrival, so that a peer with another protocol is refused at once. */
static bool has_bad_byte(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (is_control(s.p[i]) && !is_one_of(s.p[i], "\t\r\n"))
			return true;
	return false;
}

enum http1_result http1_feed(struct http1 *h, struct str in, size_t *ret_used)
{
	size_t used = 0;
	enum http1_result r = HTTP1_MORE;

	while (r == HTTP1_MORE && used < in.n) {
		struct str rest = {in.p + used, in.n - used};
		const char *lf = memchr(rest.p, '\n', rest.n);
		struct str part = {rest.p, lf ? (size_t)(lf - rest.p) + 1 : rest.n};

		used += part.n;
		buf_addstr(&h->text, part);
		if (has_bad_byte(part))
			r = bad(h, 400, "control character in the head");
		else if (h->text.overflow && h->line == 0 && h->kind == HTTP1_REQUEST)
			r = bad(h, 414, "request line too long");
		else if (h->text.overflow)
			r = bad(h, 431, "headers too long");
		else if (lf)
			r = take_line(h);
	}
	*ret_used = used;
	return r;
}

struct str http1_method(const struct http1 *h)
{
	return (struct str){h->text.p, h->method_n};
}

struct str http1_target(const struct http1 *h)
{
	return (struct str){h->text.p + h->target, h->target_n};
}

struct str http1_header(const struct http1 *h, const char *name)
{
	for (size_t i = 0; i < h->nfields; i++) {
		const struct http1_field *f = &h->fields[i];

		if (is_case((struct str){h->text.p + f->name, f->name_n}, name))
			return (struct str){h->text.p + f->value, f->value_n};
	}
	return (struct str){NULL, 0};
}

static void body_init(struct http1_body *b, enum http1_body_mode mode, uint64_t length)
{
	*b = (struct http1_body){.mode = mode, .left = length};
	b->done = mode == HTTP1_NO_BODY || (mode == HTTP1_LENGTH && length == 0);
}

void http1_body_of_request(struct http1_body *b, const struct http1 *h)
{
	if (h->chunked)
		body_init(b, HTTP1_CHUNKED, 0);
	else
		body_init(b, h->has_length ? HTTP1_LENGTH : HTTP1_NO_BODY, h->length);
}

void http1_body_of_response(struct http1_body *b, const struct http1 *h, bool was_head_request)
{
	if (was_head_request || h->status < 200 || h->status == 204 || h->status == 304)
		body_init(b, HTTP1_NO_BODY, 0);
	else if (h->chunked)
		body_init(b, HTTP1_CHUNKED, 0);
	else if (h->has_length)
		body_init(b, HTTP1_LENGTH, h->length);
	else
		body_init(b, HTTP1_UNTIL_CLOSE, 0);
}

/* The chunk decoder: size [;extensions] CRLF bytes CRLF ... 0 CRLF [trailers] CRLF */
enum chunk_state {
	CHUNK_SIZE,	 /* a first digit must come */
	CHUNK_SIZE_MORE, /* further digits, extensions or CR */
	CHUNK_EXTENSION,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_TRAILER, /* at the beginning of a line */
	CHUNK_TRAILER_MORE,
	CHUNK_TRAILER_LF,
	CHUNK_LAST_LF,
};

static int chunk_size_step(struct http1_body *b, char c)
{
	int digit = hex_digit(c);

	if (digit < 0)
		return c == ';' ? CHUNK_EXTENSION : c == '\r' ? CHUNK_SIZE_LF : -1;
	if (++b->line_n > MAX_CHUNK_DIGITS)
		return -1;
	b->left = b->left * 16 + (unsigned)digit;
	return CHUNK_SIZE_MORE;
}

/* A byte of an extension or trailer, which is ignored. */
static int skip_step(struct http1_body *b, char c, size_t max, int state)
{
	return ++b->line_n <= max && (!is_control(c) || c == '\t') ? state : -1;
}

/* The next state for one byte outside of the data, or -1. */
static int chunk_step(struct http1_body *b, char c)
{
	switch ((enum chunk_state)b->state) {
	case CHUNK_SIZE:
		return hex_digit(c) < 0 ? -1 : chunk_size_step(b, c);
	case CHUNK_SIZE_MORE:
		return chunk_size_step(b, c);
	case CHUNK_EXTENSION:
		return c == '\r' ? CHUNK_SIZE_LF : skip_step(b, c, MAX_CHUNK_LINE, CHUNK_EXTENSION);
	case CHUNK_SIZE_LF:
		b->line_n = 0;
		return c != '\n' ? -1 : b->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
	case CHUNK_DATA:
		break; /* handled by take_run */
	case CHUNK_DATA_CR:
		return c == '\r' ? CHUNK_DATA_LF : -1;
	case CHUNK_DATA_LF:
		return c == '\n' ? CHUNK_SIZE : -1;
	case CHUNK_TRAILER:
		return c == '\r' ? CHUNK_LAST_LF : skip_step(b, c, MAX_TRAILER, CHUNK_TRAILER_MORE);
	case CHUNK_TRAILER_MORE:
		return c == '\r' ? CHUNK_TRAILER_LF
				 : skip_step(b, c, MAX_TRAILER, CHUNK_TRAILER_MORE);
	case CHUNK_TRAILER_LF:
		return c == '\n' ? CHUNK_TRAILER : -1;
	case CHUNK_LAST_LF:
		b->done = c == '\n';
		return b->done ? CHUNK_LAST_LF : -1;
	}
	return -1;
}

static struct str take_run(struct http1_body *b, struct str in)
{
	size_t n = in.n < b->left ? in.n : (size_t)b->left;

	b->left -= n;
	return (struct str){in.p, n};
}

static enum http1_result chunked_feed(struct http1_body *b, struct str in, struct str *ret_data,
				      size_t *ret_used)
{
	size_t used = 0;

	while (used < in.n && !b->done) {
		if (b->state == CHUNK_DATA) {
			*ret_data = take_run(b, (struct str){in.p + used, in.n - used});
			used += ret_data->n;
			if (b->left == 0)
				b->state = CHUNK_DATA_CR;
			break;
		}
		int next = chunk_step(b, in.p[used]);

		if (next < 0)
			return HTTP1_BAD;
		b->state = next;
		used++;
	}
	*ret_used = used;
	return b->done ? HTTP1_DONE : HTTP1_MORE;
}

enum http1_result http1_body_feed(struct http1_body *b, struct str in, struct str *ret_data,
				  size_t *ret_used)
{
	*ret_data = (struct str){in.p, 0};
	*ret_used = 0;
	if (b->done)
		return HTTP1_DONE;
	switch (b->mode) {
	case HTTP1_NO_BODY:
		return HTTP1_DONE;
	case HTTP1_LENGTH:
		*ret_data = take_run(b, in);
		*ret_used = ret_data->n;
		b->done = b->left == 0;
		return b->done ? HTTP1_DONE : HTTP1_MORE;
	case HTTP1_UNTIL_CLOSE:
		*ret_data = in;
		*ret_used = in.n;
		return HTTP1_MORE;
	case HTTP1_CHUNKED:
		return chunked_feed(b, in, ret_data, ret_used);
	}
	return HTTP1_BAD;
}
