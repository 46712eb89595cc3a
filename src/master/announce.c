#include "master/announce.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "fmt/jsonw.h"
#include "master/api/auth.h"
#include "master/api/tokens.h"
#include "master/internal.h"
#include "net/tls.h"

static void put_or_null(struct jsonw *w, const char *key, const char *text)
{
	if (*text) {
		jsonw_kz(w, key, text);
		return;
	}
	jsonw_key(w, key);
	jsonw_null(w);
}

static void put_json(struct buf *out, const char *url, const char *pin, const char *token,
		     const char *join)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	put_or_null(&w, "url", url);
	put_or_null(&w, "pin", pin);
	put_or_null(&w, "token", token);
	put_or_null(&w, "join", join);
	jsonw_close(&w);
	buf_addc(out, '\n');
}

void announce_ready(struct master *m, enum announce how)
{
	CLEANUP(buf_release) struct buf out = {0};
	CLEANUP(buf_release) struct buf own = {0};
	CLEANUP(freep) char *path = path_join(m->home, "token");
	char pin[TLS_PIN_SIZE] = "", join[TOKENS_TEXT] = "", token[128];
	struct err err = {0};

	if (how == ANNOUNCE_NOTHING)
		return;
	buf_init(&out, 4096);
	buf_init(&own, sizeof(token));
	if (m->tls)
		tls_server_pin(m->tls, pin);
	/* A join token is of use with TLS only: agents of other machines dial the TLS port. */
	if ((m->tls && tokens_join(m->auth->tokens, join, &err) < 0) ||
	    file_read(path, &own, &err) < 0)
		log_warn("%s", err.msg);
	snprintf(token, sizeof(token), "%.*s", STR_ARG(str_trim(buf_str(&own))));
	if (how == ANNOUNCE_JSON)
		put_json(&out, m->public_url, pin, token, join);
	else if (m->tls)
		buf_printf(&out,
			   "on a host:    regatta agent --join %s --pin %s --token %s\n"
			   "as a client:  regatta context add NAME %s --pin %s --token %s\n",
			   m->public_url, pin, join, m->public_url, pin, token);
	if (fwrite(out.p, 1, out.n, stdout) != out.n || fflush(stdout) != 0)
		log_warn("cannot write to standard output");
}
