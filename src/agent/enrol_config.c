#include "agent/enrol_config.h"

#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/config.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/env.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/rand.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "link/message.h"
#include "net/imds.h"
#include "sys/cgroup.h"
#include "sys/proctree.h"

#define FILE_MAX (64 * 1024)
#define MARK_BYTES 16
/* A machine that gives up is lost, and a boot may take ten minutes. */
#define METADATA_MS 300000
#define METADATA_PAUSE_MS 500
#define LIMIT_MS (30 * 60 * 1000)
#define OTHER_BOOT "lost" /* instead of a boot id: what was here before, if anything, is lost */

static int want(const struct doc *d, const char *key, const char **ret, struct err *err)
{
	struct str s = doc_str(d, key, STR(""));

	if (s.n == 0 || memchr(s.p, '\0', s.n))
		return err_set(err, ERR_INVALID, "key '%s' is missing", key);
	*ret = s.p;
	return 0;
}

/* ---- who this machine is ---- */

static int from_file(const struct doc *d, struct arena *a, struct enrol_config *c, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	const char *path;

	buf_init(&text, 4096);
	if (want(d, "path", &path, err) < 0 || file_read(path, &text, err) < 0)
		return -1;
	c->identity = arena_str(a, str_trim(buf_str(&text))).p;
	return 0;
}

static int from_hostname(const struct doc *d, struct arena *a, struct enrol_config *c,
			 struct err *err)
{
	char name[HOST_NAME_MAX + 1] = "";

	(void)d;
	if (gethostname(name, sizeof(name) - 1) < 0)
		return err_set(err, ERR_UNAVAILABLE, "this machine has no host name");
	c->identity = arena_strdup(a, name);
	return 0;
}

static int ask_metadata(const char *path, const struct deadline *d, struct arena *a,
			const char **ret, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	const struct env_lookup env = {0};
	struct err why = {0};

	buf_init(&text, 4096);
	while (imds_get(&env, path, d, &text, &why) < 0) {
		if (why.kind == ERR_NOT_FOUND || deadline_left_ms(d) == 0)
			return err_set(err, why.kind, "%s", why.msg);
		poll(NULL, 0, METADATA_PAUSE_MS);
	}
	*ret = arena_str(a, str_trim(buf_str(&text))).p;
	return 0;
}

/* An instance of EC2: its id, its launch index, and the address that others in its network use. */
static int from_imds(const struct doc *d, struct arena *a, struct enrol_config *c, struct err *err)
{
	struct deadline limit = deadline_in(METADATA_MS, NULL);
	const char *index;
	int64_t place;

	(void)d;
	c->notices = "imds";
	if (ask_metadata("instance-id", &limit, a, &c->identity, err) < 0 ||
	    ask_metadata("ami-launch-index", &limit, a, &index, err) < 0 ||
	    ask_metadata("local-ipv4", &limit, a, &c->address, err) < 0)
		return -1;
	if (str_to_i64(str_from(index), &place) && place >= 0 && place <= MESSAGE_MAX_MEMBERS)
		c->place = (int)place;
	return 0;
}

/* A pod of an indexed Job: variables that its template has set. */
static int from_pod(const struct doc *d, struct arena *a, struct enrol_config *c, struct err *err)
{
	const char *uid = getenv("REGATTA_POD_UID"), *address = getenv("REGATTA_POD_IP");
	const char *index = getenv("JOB_COMPLETION_INDEX");
	int64_t place;

	(void)d;
	if (!uid || !address)
		return err_set(err, ERR_NOT_FOUND, "REGATTA_POD_UID or REGATTA_POD_IP is not set");
	c->identity = arena_strdup(a, uid);
	c->address = arena_strdup(a, address);
	if (index && str_to_i64(str_from(index), &place) && place >= 0 &&
	    place <= MESSAGE_MAX_MEMBERS)
		c->place = (int)place;
	return 0;
}

/* Each fills in the identity, and place and address if it knows them.  A provider's own way is a row here. */
static const struct {
	const char *from;
	int (*read)(const struct doc *d, struct arena *a, struct enrol_config *c, struct err *err);
} sources[] = {
	{"file", from_file},
	{"hostname", from_hostname},
	{"imds", from_imds},
	{"pod", from_pod},
};

static int read_source(const struct doc *d, struct arena *a, struct enrol_config *c,
		       struct err *err)
{
	const char *from;

	if (want(d, "from", &from, err) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (!strcmp(sources[i].from, from))
			return sources[i].read(d, a, c, err);
	return err_set(err, ERR_INVALID, "an identity cannot be had from '%.40s'", from);
}

static int read_identity(const struct doc *d, struct arena *a, struct enrol_config *c,
			 struct err *err)
{
	const struct doc *source = doc_table(d, "identity");
	int64_t place = doc_int(d, "place", -1);

	if (place < -1 || place > MESSAGE_MAX_MEMBERS)
		return err_set(err, ERR_INVALID, "key 'place' is out of its range");
	c->place = (int)place;
	if (source ? read_source(source, a, c, err) < 0
		   : want(d, "identity", &c->identity, err) < 0)
		return source ? err_wrap(err, "key 'identity'") : -1;
	if (!message_identity_ok(c->identity))
		return err_set(
			err, ERR_INVALID,
			"'%.70s' is not the identity of a machine: at most %d letters, digits "
			"and '._:/@-'",
			c->identity, MESSAGE_IDENTITY_MAX - 1);
	return 0;
}

/* ---- the file ---- */

static int read_urls(const struct doc *d, struct arena *a, struct enrol_config *c, struct err *err)
{
	const struct doc *urls = doc_array(d, "urls");

	if (!urls)
		return want(d, "link_dir", &c->link_dir, err) < 0 ||
				       want(d, "link_name", &c->link_name, err) < 0
			       ? err_set(err, ERR_INVALID, "key 'urls' is missing")
			       : 0;
	if (urls->array.n == 0)
		return err_set(err, ERR_INVALID, "key 'urls' is empty");
	c->urls = arena_array(a, struct enrol_url, urls->array.n);
	for (size_t i = 0; i < urls->array.n; i++) {
		const struct doc *one = urls->array.v[i];
		struct enrol_url *u = &c->urls[c->nurls++];

		if (one->type != DOC_STRING)
			return err_set(err, ERR_INVALID, "key 'urls' must be a list of texts");
		u->text = one->s.p;
		if (config_master_url(u->text, a, &u->host, &u->port, err) < 0)
			return err_wrap(err, "key 'urls'");
	}
	return want(d, "pin", &c->pin, err);
}

static int read_keys(const struct doc *d, const char *file, struct arena *a, struct enrol_config *c,
		     struct err *err)
{
	struct str dir = doc_str(d, "dir", STR("")), cache = doc_str(d, "cache", STR("")),
		   expires = doc_str(d, "expires_file", STR(""));

	if (want(d, "run", &c->run, err) < 0 || want(d, "role", &c->role, err) < 0 ||
	    want(d, "token", &c->token, err) < 0 || read_urls(d, a, c, err) < 0 ||
	    read_identity(d, a, c, err) < 0)
		return -1;
	int beside = (int)(path_base(file) - file);

	c->dir = dir.n > 0 ? dir.p : arena_printf(a, "%.*snode", beside, file);
	c->cache = cache.n > 0 ? cache.p : NULL;
	c->expires_file = expires.n > 0 ? expires.p : NULL;
	c->own_env = doc_bool(d, "own_env", false);
	c->limit_ms = doc_int(d, "limit_ms", LIMIT_MS);
	return 0;
}

int enrol_config_load(const char *file, struct arena *a, struct enrol_config *ret, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *d = NULL;

	*ret = (struct enrol_config){0};
	buf_init(&text, FILE_MAX);
	if (file_read(file, &text, err) < 0)
		return -1;
	if (json_parse(arena_str(a, buf_str(&text)), a, &d, err) < 0 ||
	    read_keys(d, file, a, ret, err) < 0) {
		err->kind = ERR_INVALID;
		return err_wrap(err, "'%s'", file);
	}
	return 0;
}

/* ---- the answer ---- */

static void put_groups(const struct enrol_config *c, const struct message_enrolled *m,
		       struct jsonw *w)
{
	uint8_t bytes[MARK_BYTES];
	char mark[2 * MARK_BYTES + 1], name[256];
	struct cgroup cg;

	rand_bytes(bytes, sizeof(bytes));
	hex_encode(bytes, sizeof(bytes), mark);
	snprintf(name, sizeof(name), "regatta.%.80s.%.80s.%.8s", c->run, m->node, mark);
	cgroup_place(name, &cg);
	jsonw_kz(w, "mark", mark);
	jsonw_kz(w, "cgroup", cg.unified);
	jsonw_kz(w, "cgroup_memory", cg.memory);
}

static void put_config(const struct enrol_config *c, size_t url, const struct message_enrolled *m,
		       struct buf *out)
{
	char boot[PROC_BOOT_ID] = OTHER_BOOT;
	struct jsonw w;

	/* Whoever asks again may have lost its answer, or everything that it had: a job that may have run here
	 * is not started again. */
	if (!m->again)
		proc_boot_id(boot);
	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "run", c->run);
	jsonw_kz(&w, "node", m->node);
	jsonw_kz(&w, "token", m->token);
	jsonw_kint(&w, "incarnation", m->incarnation);
	if (c->nurls > 0) {
		jsonw_kz(&w, "master", c->urls[url].text);
		jsonw_kz(&w, "pin", c->pin);
	} else {
		jsonw_kz(&w, "link_dir", c->link_dir);
		jsonw_kz(&w, "link_name", c->link_name);
	}
	jsonw_kz(&w, "boot", boot);
	put_groups(c, m, &w);
	if (c->cache)
		jsonw_kz(&w, "cache", c->cache);
	if (c->address)
		jsonw_kz(&w, "address", c->address);
	if (c->notices)
		jsonw_kz(&w, "notices", c->notices);
	if (c->expires_file)
		jsonw_kz(&w, "expires_file", c->expires_file);
	if (c->own_env)
		jsonw_kbool(&w, "own_env", true);
	jsonw_kint(&w, "proto", LINK_PROTO);
	jsonw_close(&w);
	buf_addc(out, '\n');
}

int enrol_config_keep(const struct enrol_config *c, size_t url, const struct message_enrolled *m,
		      struct err *err)
{
	CLEANUP(freep) char *path = path_join(c->dir, LAYOUT_AGENT_CONFIG);
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, FILE_MAX);
	put_config(c, url, m, &text);
	if (text.overflow)
		return err_set(err, ERR_INVALID, "what the node is to keep is too long");
	if (file_mkdir_p(c->dir, 0700, err) < 0)
		return -1;
	return file_write_atomic(path, buf_str(&text), 0600, true, err);
}
