/* await - wait for the end of a run without showing anything. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/client/api.h"
#include "cli/client/watch.h"
#include "cli/show/render.h"
#include "fmt/doc.h"
#include "net/http_client.h"

#define READ_MS 1000
#define NO_CONTACT_MS 60000
#define RETRY_MS 20
#define REMOTE_RETRY_MS 250
#define CHUNK (16 * 1024)

/* The object of a run that has ended. */
static int read_last(struct api *api, const char *id, struct buf *text, struct err *err)
{
	CLEANUP(freep) char *path = api_run_path(id, "/watch?last=1");

	if (api_stream(api, path, err) < 0)
		return -1;
	for (;;) {
		char *p = buf_reserve(text, CHUNK);
		size_t n;
		if (!p)
			return err_set(err, ERR_CAPACITY, "run %s: its object is too large", id);
		if (http_stream_read(api->http, p, CHUNK, READ_MS, api->stop, &n, err) < 0) {
			if (err->kind == ERR_TIMEOUT)
				continue;
			api_drop(api);
			return -1;
		}
		if (n == 0)
			return 0;
		buf_commit(text, n);
	}
}

int api_await_run(struct api *api, const char *id, struct arena *a, struct str *ret_json,
		  struct doc **ret_run, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	int64_t lost_at = 0;

	buf_init(&text, API_MAX_ANSWER);
	for (;;) {
		struct doc *run;
		buf_reset(&text);
		int rc = read_last(api, id, &text, err);
		struct str json = arena_str(a, str_trim(buf_str(&text)));
		if (rc == 0 && json.n && reply_parse(json, a, &run, err) == 0 &&
		    run_is_whole(run)) {
			*ret_json = json;
			*ret_run = run;
			return 0;
		}
		if (api->stop && *api->stop)
			return err_set(err, ERR_CANCELLED, "left");
		if (rc < 0 && !api_lost(err))
			return -1;
		if (text.n || !lost_at)
			lost_at = clock_boot_ms();
		if (clock_boot_ms() - lost_at > NO_CONTACT_MS)
			return err_set(err, ERR_UNAVAILABLE,
				       "run %s goes on, but its master is out of reach", id);
		poll(NULL, 0, api_remote(api) ? REMOTE_RETRY_MS : RETRY_MS);
	}
}
