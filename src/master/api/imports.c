/* Takes in the results of a run that ended elsewhere; the answer comes when it is here. */
#include "master/api/api.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "master/upkeep/imports.h"

struct import_call {
	struct http_exchange *x;
	char *run;
};

static void import_done(void *ctx, const struct err *err)
{
	struct import_call *ic = ctx;
	struct api_call c = {.x = ic->x};
	struct buf text;
	struct jsonw w;

	if (err->kind != ERR_NONE) {
		api_reply_error(ic->x, err);
	} else {
		api_answer_begin(&w, &text);
		jsonw_kz(&w, "id", ic->run);
		api_answer_end(&c, 200, &w);
	}
	free(ic->run);
	free(ic);
}

int api_import(struct api_call *c, struct err *err)
{
	struct doc *body;

	if (api_read_body(c, &body, err) < 0)
		return -1;
	struct str run = doc_str(body, "run", STR("")), url = doc_str(body, "url", STR(""));
	const struct doc *credentials = doc_table(body, "credentials");

	/* The caller's: the master's own would show what the caller may not see. */
	if (!run.n || !url.n || !credentials)
		return err_set(err, ERR_INVALID, "'run', 'url' and 'credentials' are needed");
	struct import_call *ic = xcalloc(1, sizeof(*ic));

	*ic = (struct import_call){.x = c->x, .run = xstrndup(run.p, run.n)};
	import_start(c->m,
		     &(struct import_source){
			     .run = ic->run,
			     .url = arena_str(c->arena, url).p,
			     .credentials = doc_json_text(c->arena, credentials),
		     },
		     import_done, ic);
	return 0;
}
