#include "net/proxy.h"

#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/hex.h"
#include "fmt/url.h"
#include "net/address.h"

#define MAX_RULES 256 /* of no_proxy; further ones are ignored */
#define MAX_USER 1024

static const uint8_t *ip_bytes(const struct address *a, int *ret_bits)
{
	bool six = a->sa.sa_family == AF_INET6;

	*ret_bits = six ? 128 : 32;
	return six ? (const uint8_t *)&a->in6.sin6_addr : (const uint8_t *)&a->in4.sin_addr;
}

static bool same_prefix(const uint8_t *a, const uint8_t *b, int bits)
{
	int whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, (size_t)whole) != 0)
		return false;
	return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

/* "10.0.0.0/8", "10.1.2.3", "fd00::/8" */
static bool network_has(const char *rule, const struct address *ip)
{
	char text[ADDRESS_TEXT];
	struct str rest = str_from(rule), addr = str_cut(&rest, '/');
	struct address net;
	int bits, ip_bits;
	uint64_t wanted;

	if (addr.n >= sizeof(text))
		return false;
	memcpy(text, addr.p, addr.n);
	text[addr.n] = '\0';
	if (!address_ip(&net, text, 0))
		return false;
	const uint8_t *a = ip_bytes(&net, &bits), *b = ip_bytes(ip, &ip_bits);

	if (bits != ip_bits)
		return false;
	wanted = (uint64_t)bits;
	if (rest.p && (!str_to_u64(rest, &wanted) || wanted > (uint64_t)bits))
		return false;
	return same_prefix(a, b, (int)wanted);
}

static bool name_covers(struct str rule, struct str host)
{
	if (rule.n > 1 && rule.p[0] == '*' && rule.p[1] == '.')
		rule = (struct str){rule.p + 1, rule.n - 1};
	if (rule.n > 0 && rule.p[0] == '.')
		rule = (struct str){rule.p + 1, rule.n - 1};
	if (rule.n == 0 || host.n < rule.n ||
	    strncasecmp(host.p + host.n - rule.n, rule.p, rule.n) != 0)
		return false;
	return host.n == rule.n || host.p[host.n - rule.n - 1] == '.';
}

/* Cut ":port" off a rule; false if it is for another port.  "::1" has no port. */
static bool port_fits(struct str *rule, int port)
{
	const char *colon = memrchr(rule->p, ':', rule->n);
	uint64_t wanted;

	if (!colon || memchr(rule->p, ':', (size_t)(colon - rule->p)))
		return true;
	struct str digits = {colon + 1, (size_t)(rule->p + rule->n - colon - 1)};

	rule->n = (size_t)(colon - rule->p);
	return str_to_u64(digits, &wanted) && wanted == (uint64_t)port;
}

static bool rule_covers(struct str rule, const char *host, int port)
{
	char text[HTTP_HOST_MAX];
	struct address ip;

	if (rule.n == 0 || rule.n >= sizeof(text))
		return false;
	if (str_is(rule, "*"))
		return true;
	if (!port_fits(&rule, port))
		return false;
	if (!address_ip(&ip, host, 0))
		return name_covers(rule, str_from(host));
	memcpy(text, rule.p, rule.n);
	text[rule.n] = '\0';
	return network_has(text, &ip);
}

static bool is_this_host(const char *host)
{
	struct address ip;

	if (!address_ip(&ip, host, 0))
		return strcasecmp(host, "localhost") == 0;
	return network_has("127.0.0.0/8", &ip) || network_has("::1", &ip);
}

static bool is_exempt(const char *no_proxy, const char *host, int port)
{
	struct str rest = str_from(no_proxy);

	for (int i = 0; rest.p && i < MAX_RULES; i++)
		if (rule_covers(str_trim(str_cut(&rest, ',')), host, port))
			return true;
	return false;
}

int proxy_for(const struct proxy_settings *s, const char *host, int port, bool tls,
	      struct http_url *ret, bool *ret_used, struct err *err)
{
	const char *url = tls ? s->https_proxy : s->http_proxy;

	*ret_used = false;
	if (!url || !*url || is_this_host(host) || is_exempt(s->no_proxy, host, port))
		return 0;
	if (http_url_parse(ret, str_from(url), true, err) < 0)
		return err_wrap(err, "proxy");
	if (ret->tls)
		return err_set(err, ERR_INVALID,
			       "a proxy must be http://, not https:// (it only passes bytes on)");
	*ret_used = true;
	return 0;
}

void proxy_authorization(struct buf *out, const struct http_url *proxy)
{
	struct buf user;

	if (proxy->user.n == 0)
		return;
	buf_init(&user, MAX_USER);
	if (url_decode(&user, proxy->user, false)) {
		buf_addz(out, "Proxy-Authorization: Basic ");
		b64_encode(out, user.p, user.n);
		buf_addz(out, "\r\n");
	}
	buf_release(&user);
}
