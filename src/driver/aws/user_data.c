#include "driver/aws/user_data.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "driver/aws/aws_kind.h"
#include "driver/boot_program.h"
#include "driver/driver.h"
#include "driver/master_identity.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

#define HOME USER_DATA_HOME
/* How long the URL of the program in the bucket is good: machines boot within minutes. */
#define URL_SECONDS 3600
/* A node does without a URL that has a long session token: its master has the program as well.  The
 * machine of a master has nobody else to ask. */
#define NODE_URL_MAX 2000
#define MASTER_URL_MAX 8192
#define JSON_MAX 4096
#define KEY_MAX 1024

/* The first lines arm the timer that switches the machine off, so that its costs end even if the rest
 * of the script fails.  A machine that boots again runs the script again. */
static void add_timer(const struct driver_row *row, struct buf *out)
{
	buf_printf(
		out,
		"#!/bin/sh\n"
		"at=$(cat " USER_DATA_EXPIRES " 2>/dev/null || echo %" PRId64 ")\n"
		"left=$(( (at - $(date +%%s)) / 60 ))\n"
		"shutdown -h +$(( left > 1 ? left : 1 ))\n"
		"again=/var/lib/cloud/scripts/per-boot/regatta\n"
		"[ -e $again ] || { mkdir -p ${again%%/*} && cp \"$0\" $again && chmod 700 $again; }\n"
		"mkdir -p -m 700 " HOME " && cd " HOME " || exit\n"
		"export HOME=${HOME:-/root}\n",
		row->expires_ms / 1000);
}

/* ---- the program ---- */

static void add_presigned(const struct aws_work *w, size_t max, struct buf *out)
{
	CLEANUP(buf_release) struct buf url = {0};

	buf_init(&url, max);
	if (aws_work_presign(w, aws_spec(w, "bucket"), aws_spec(w, "key"), URL_SECONDS, &url) == 0)
		buf_printf(out, "'%s' ", buf_str(&url).p);
}

static void add_urls(const struct aws_work *w, struct buf *out)
{
	const struct driver_services *s = w->row->services;
	bool node = w->row->role[0];

	add_presigned(w, node ? NODE_URL_MAX : MASTER_URL_MAX, out);
	if (node && s && s->url)
		buf_printf(out, "'%s/bin/%s'", s->url, aws_spec(w, "sha256"));
}

static void add_program(const struct aws_work *w, struct buf *out)
{
	CLEANUP(buf_release) struct buf urls = {0};

	buf_init(&urls, MASTER_URL_MAX + 512);
	add_urls(w, &urls);
	boot_program_put(buf_str(&urls).p, aws_spec(w, "sha256"), out);
	buf_addz(out, "off() {\n"
		      "	echo \"regatta: $1: this machine is switched off\"\n"
		      "	shutdown -h now\n"
		      "	exit\n"
		      "}\n"
		      "tries=0\n"
		      "until [ -x regatta ] || program; do\n"
		      "	tries=$((tries + 1))\n"
		      "	[ $tries -lt 20 ] || off 'the program cannot be had'\n"
		      "	sleep 3\n"
		      "done\n");
}

/* ---- the agent ---- */

static void add_enrolment(const struct aws_work *w, struct buf *out)
{
	const struct driver_row *row = w->row;
	const struct driver_services *s = row->services;
	CLEANUP(buf_release) struct buf json = {0};
	struct jsonw j;

	buf_init(&json, JSON_MAX);
	jsonw_init(&j, &json);
	jsonw_open(&j, '{');
	jsonw_kz(&j, "run", row->run);
	jsonw_kz(&j, "role", row->role);
	jsonw_kz(&j, "token", row->enrol);
	jsonw_key(&j, "urls");
	jsonw_open(&j, '[');
	jsonw_z(&j, s && s->url ? s->url : "");
	jsonw_close(&j);
	jsonw_kz(&j, "pin", s && s->pin ? s->pin : "");
	jsonw_key(&j, "identity");
	jsonw_open(&j, '{');
	jsonw_kz(&j, "from", "imds");
	jsonw_close(&j);
	jsonw_kz(&j, "expires_file", USER_DATA_EXPIRES);
	if (doc_int(w->spec, "lease_ms", 0) > 0)
		jsonw_kint(&j, "limit_ms", doc_int(w->spec, "lease_ms", 0));
	jsonw_close(&j);
	buf_printf(out, "(umask 077; cat >enrol.json <<'END'\n%s\nEND\n)\n", buf_str(&json).p);
}

/* An agent that was killed is started again, and finds its place.  One that leaves, because it was
 * released or refused or its lease is over, leaves a machine without a purpose. */
static void add_agent(struct buf *out)
{
	buf_addz(
		out,
		"{\n"
		"	while ./regatta node-agent --enrol enrol.json; code=$?; [ $code -gt 128 ]; do\n"
		"		sleep 1\n"
		"	done\n"
		"	off \"the agent has left with $code\"\n"
		"} </dev/null &\n");
}

void user_data_node(const struct driver_row *rows, size_t n, struct buf *out)
{
	struct aws_work w;

	(void)n;
	add_timer(&rows[0], out);
	if (aws_work_read(&rows[0], &w, NULL) < 0)
		return;
	add_enrolment(&w, out);
	add_program(&w, out);
	add_agent(out);
	aws_work_close(&w);
}

/* ---- the master ---- */

static void add_export(const char *name, struct str value, struct buf *out)
{
	buf_printf(out, "export %s='", name);
	for (size_t i = 0; i < value.n; i++)
		if (value.p[i] == '\'')
			buf_addz(out, "'\\''");
		else
			buf_addc(out, value.p[i]);
	buf_addz(out, "'\n");
}

/* The services that the caller uses, for the master and for nobody's keys: it has its own role. */
static void add_services(const struct aws_work *w, struct buf *out)
{
	const char *region = aws_spec(w, "region");
	struct doc *given = NULL;

	add_export("AWS_REGION", str_from(region ? region : ""), out);
	if (!w->row->credentials ||
	    json_parse(str_from(w->row->credentials), w->a, &given, NULL) < 0)
		return;
	const struct doc *env = doc_table(given, "env");
	struct str url = doc_str(given, "endpoint_url", (struct str){0});

	for (const char *const *name = aws_session_variables; *name; name++) {
		struct str value = doc_str(env, *name, (struct str){0});

		if (value.n > 0 && !(url.n > 0 && strncmp(*name, "AWS_ENDPOINT_URL", 16) == 0))
			add_export(*name, value, out);
	}
	if (url.n > 0)
		add_export("AWS_ENDPOINT_URL", url, out);
}

static int add_identity(const struct driver_row *row, struct buf *out)
{
	CLEANUP(buf_release) struct buf pem = {0};
	struct driver_master own;

	buf_init(&pem, KEY_MAX);
	if (master_identity(row, &own, &pem, NULL) < 0)
		return -1;
	add_export("REGATTA_HOME", STR(HOME "/home"), out);
	add_export("REGATTA_INSTALL", str_from(row->install), out);
	add_export("REGATTA_OWN_MACHINE", STR("1"), out);
	buf_printf(out,
		   "umask 077\n"
		   "mkdir -p home\n"
		   "echo %s >home/token\n"
		   "cat >home/tls.key <<'END'\n%sEND\n",
		   own.token, pem.p);
	return 0;
}

void user_data_master(const struct driver_row *row, struct buf *out)
{
	struct aws_work w;

	add_timer(row, out);
	if (aws_work_read(row, &w, NULL) < 0)
		return;
	if (add_identity(row, out) == 0) {
		add_services(&w, out);
		add_program(&w, out);
		buf_printf(out,
			   "{\n"
			   "	until ./regatta master --listen 0.0.0.0:%d; do sleep 1; done\n"
			   "	off 'the master has left'\n"
			   "} </dev/null &\n",
			   (int)doc_int(w.spec, "port", 0));
	}
	aws_work_close(&w);
}
