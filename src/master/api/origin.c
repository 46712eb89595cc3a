#include "master/api/origin.h"

#include <string.h>
#include <strings.h>

struct str address_without_port(struct str peer)
{
	const char *colon = peer.n ? memrchr(peer.p, ':', peer.n) : NULL;

	return colon ? (struct str){peer.p, (size_t)(colon - peer.p)} : peer;
}

bool address_is_loopback(struct str address)
{
	return str_starts(address, STR("127.")) || str_is(address, "[::1]");
}

static bool same_name(struct str a, struct str b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

bool host_is_own(struct str host, struct str own, bool tls)
{
	static const char *const loopback[] = {"127.0.0.1", "localhost", "[::1]"};
	struct str address = address_without_port(own), name = host;
	struct str port = {own.p + address.n, own.n - address.n}; /* with its colon */

	if (!own.n || !host.n)
		return false;
	if (str_ends(host, port))
		name.n -= port.n;
	else if (!str_is(port, tls ? ":443" : ":80")) /* browsers leave out the default port */
		return false;
	if (same_name(name, address))
		return true;
	for (size_t i = 0;
	     address_is_loopback(address) && i < sizeof(loopback) / sizeof(loopback[0]); i++)
		if (same_name(name, str_from(loopback[i])))
			return true;
	return false;
}

bool host_is_given(struct str host, const char *url)
{
	struct str scheme = STR("https://");

	if (!url || !host.n || !str_starts(str_from(url), scheme))
		return false;
	return same_name(host, str_from(url + scheme.n));
}

bool origin_is_own(struct str origin, struct str host, bool tls)
{
	struct str scheme = tls ? STR("https://") : STR("http://");

	if (!str_starts(origin, scheme) || !host.n)
		return false;
	return same_name((struct str){origin.p + scheme.n, origin.n - scheme.n}, host);
}

bool cookie_is_meant(struct str method, struct str request, struct str site, struct str mode)
{
	bool changes = !str_is(method, "GET") && !str_is(method, "HEAD");

	if (changes && !str_is(request, "1"))
		return false;
	return !site.p || str_is(site, "same-origin") || str_is(site, "none") ||
	       str_is(mode, "navigate");
}

struct str cookie_get(struct str header, const char *name)
{
	while (header.p && header.n) {
		struct str pair = str_trim(str_cut(&header, ';'));
		struct str value = pair, key = str_cut(&value, '=');

		if (value.p && str_is(key, name))
			return value;
	}
	return STR("");
}
