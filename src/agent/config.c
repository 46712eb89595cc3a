#include "agent/config.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "link/layout.h"
#include "fmt/http_url.h"

#define CONFIG_MAX (64 * 1024)
#define CACHE_BYTES (INT64_C(32) << 30)

static int want(const struct doc *d, const char *key, const char **ret, struct err *err)
{
	struct str s = doc_str(d, key, STR(""));

	if (s.n == 0 || memchr(s.p, '\0', s.n))
		return err_set(err, ERR_INVALID, "key '%s' is missing", key);
	*ret = s.p;
	return 0;
}

static void copy_path(char out[static CGROUP_PATH_MAX], struct str s)
{
	if (s.n < CGROUP_PATH_MAX)
		snprintf(out, CGROUP_PATH_MAX, "%.*s", STR_ARG(s));
}

static int64_t limit(const struct doc *d, const char *key, int64_t fallback)
{
	int64_t v = doc_int(d, key, fallback);

	return v >= 0 ? v : fallback;
}

int config_master_url(const char *url, struct arena *a, const char **ret_host, int *ret_port,
		      struct err *err)
{
	struct http_url u;

	if (http_url_parse(&u, str_from(url), false, err) < 0)
		return -1;
	if (!u.tls || u.user.n > 0 || (u.path.n > 0 && !str_is(u.path, "/")))
		return err_set(err, ERR_INVALID, "it must be https://HOST:PORT");
	*ret_host = arena_str(a, str_from(u.host)).p;
	*ret_port = u.port;
	return 0;
}

/* The master's address. */
static int read_master(const struct doc *d, struct arena *a, struct agent_config *c,
		       struct err *err)
{
	if (!doc_get(d, "master"))
		return want(d, "link_dir", &c->link_dir, err) < 0 ||
				       want(d, "link_name", &c->link_name, err) < 0
			       ? -1
			       : 0;
	if (want(d, "master", &c->url, err) < 0 || want(d, "pin", &c->pin, err) < 0)
		return -1;
	if (config_master_url(c->url, a, &c->host, &c->port, err) < 0)
		return err_wrap(err, "key 'master'");
	return 0;
}

static void read_isolation(const struct doc *d, const char *dir, struct arena *a,
			   struct agent_config *c)
{
	if (!doc_bool(d, "netns", false))
		return;
	c->netns = arena_printf(a, "%s/" LAYOUT_NETNS, dir);
	c->hosts = arena_printf(a, "%s/" LAYOUT_HOSTS_FILE, dir);
}

/* NULL if the key is missing. */
static const char *text_of(const struct doc *d, const char *key)
{
	struct str s = doc_str(d, key, STR(""));

	return s.n > 0 ? s.p : NULL;
}

static int read_keys(const struct doc *d, struct arena *a, struct agent_config *c, struct err *err)
{
	if (want(d, "run", &c->run, err) < 0 || want(d, "node", &c->node, err) < 0 ||
	    want(d, "token", &c->token, err) < 0 || read_master(d, a, c, err) < 0)
		return -1;
	if (doc_int(d, "proto", 0) != LINK_PROTO)
		return err_set(err, ERR_INVALID,
			       "protocol version %" PRId64 " is not supported, only %d",
			       doc_int(d, "proto", 0), LINK_PROTO);
	int64_t incarnation = doc_int(d, "incarnation", 0);

	if (incarnation < 0 || incarnation > INT_MAX)
		return err_set(err, ERR_INVALID, "key 'incarnation' is out of range");
	c->incarnation = (int)incarnation;
	c->home = doc_str(d, "home", STR("")).p;
	c->revive = doc_bool(d, "revive", false) && c->home[0] && !c->url;
	c->own_env = doc_bool(d, "own_env", false);
	c->mark = doc_str(d, "mark", STR("")).p;
	c->boot = doc_str(d, "boot", STR("")).p;
	c->base_dir = text_of(d, "base_dir");
	c->blobs = text_of(d, "blobs");
	c->output_dir = text_of(d, "output_dir");
	c->cache = text_of(d, "cache");
	c->address = text_of(d, "address");
	c->notices = text_of(d, "notices");
	c->expires_file = text_of(d, "expires_file");
	c->cache_bytes = (uint64_t)limit(d, "cache_bytes", CACHE_BYTES);
	copy_path(c->cg.unified, doc_str(d, "cgroup", STR("")));
	copy_path(c->cg.memory, doc_str(d, "cgroup_memory", STR("")));
	c->limits = (struct supervisor_limits){
		.settle_ms = limit(d, "settle_ms", SUPERVISOR_SETTLE_MS),
		.unkill_ms = limit(d, "unkill_ms", SUPERVISOR_UNKILL_MS),
		.full_ms = limit(d, "full_ms", SPOOL_FULL_MS),
		.spool_bytes = (uint64_t)limit(d, "spool_bytes", (int64_t)SUPERVISOR_SPOOL_BYTES),
	};
	return 0;
}

int config_load(const char *dir, struct arena *a, struct agent_config *ret, struct err *err)
{
	CLEANUP(freep) char *path = path_join(dir, LAYOUT_AGENT_CONFIG);
	struct doc *d = NULL;
	struct buf text;
	int rc;

	*ret = (struct agent_config){0};
	buf_init(&text, CONFIG_MAX);
	rc = file_read(path, &text, err);
	if (rc == 0) {
		struct str rest = buf_str(&text);

		rc = json_parse(str_cut(&rest, '\n'), a, &d, err);
		if (rc == 0)
			rc = read_keys(d, a, ret, err);
		if (rc == 0)
			read_isolation(d, dir, a, ret);
		ret->was_clean = rest.p && rest.n > 0;
		ret->length = (int64_t)(text.n - rest.n);
		if (rc < 0)
			err_wrap(err, "%s", path);
	}
	buf_release(&text);
	return rc;
}
