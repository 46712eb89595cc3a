/* The hosts that have joined. */
#include "base/arena.h"
#include "base/buf.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "master/api/api.h"
#include "master/hosts.h"

#define LIST_MAX (64u << 20)

int api_hosts_list(struct api_call *c, struct err *err)
{
	struct doc *d = doc_new(c->arena, DOC_TABLE);
	struct buf text;

	(void)err;
	doc_set(c->arena, d, STR("hosts"), hosts_list(c->m->hosts, c->arena));
	buf_init(&text, LIST_MAX);
	doc_to_json(d, &text);
	buf_addc(&text, '\n');
	api_reply_json(c, 200, &text);
	buf_release(&text);
	return 0;
}

int api_host_forget(struct api_call *c, struct err *err)
{
	struct jsonw w;
	struct buf text;

	if (hosts_forget(c->m->hosts, c->params[0], err) < 0)
		return -1;
	buf_init(&text, 4096);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_kbool(&w, "forgotten", true);
	jsonw_kstr(&w, "name", c->params[0]);
	jsonw_close(&w);
	buf_addc(&text, '\n');
	api_reply_json(c, 200, &text);
	buf_release(&text);
	return 0;
}
