#include "cli/client/elsewhere.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "driver/results.h"
#include "fmt/jsonw.h"

#define FIND_MS 10000
#define IMPORT_MS (6 * 60 * 60 * 1000)
#define MAX_BODY (64 * 1024)

static int take_in(struct api *api, const struct results_found *found, struct err *err)
{
	CLEANUP(buf_release) struct buf body = {0};
	bool hushed = api->hushed;
	struct jsonw w;

	buf_init(&body, MAX_BODY);
	jsonw_init(&w, &body);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "run", found->run);
	jsonw_kz(&w, "url", found->url);
	jsonw_key(&w, "credentials");
	jsonw_raw(&w, str_from(found->credentials));
	jsonw_close(&w);
	api->hushed = true; /* a large run takes long, and the master is not stuck */
	int rc = api_call(api, "POST", "/api/v1/imports", buf_str(&body), IMPORT_MS, NULL, err);

	api->hushed = hushed;
	explicit_bzero(body.p, body.n);
	if (rc == 0)
		cli_say("%s: taken from %s%s/", found->run, found->url, found->run);
	return rc;
}

int run_take_in(struct api *api, const char *word, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct deadline d = deadline_in(FIND_MS, api->stop);
	struct results_found found;
	struct err here = *err, why = {0};

	if (results_find(word, &d, a, &found, &why) < 0)
		return err_set(err, ERR_NOT_FOUND, "%.60s; %.175s", here.msg, why.msg);
	if (!found.url)
		return -1;
	if (!found.run)
		return err_set(err, ERR_NOT_FOUND, "%.100s; it is not in %.100s either", here.msg,
			       found.url);
	if (take_in(api, &found, &why) < 0) {
		*err = why;
		return err_wrap(err, "run '%.60s' cannot be taken in", found.run);
	}
	return 0;
}
