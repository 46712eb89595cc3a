/* The files of the dashboard.  They are part of the binary and served to everybody; the data
 * that they show needs a token. */
#include "master/api/api.h"
#include "web/page.h"

static bool is_known(struct str if_none_match, const char *etag)
{
	while (if_none_match.p && if_none_match.n) {
		struct str one = str_trim(str_cut(&if_none_match, ','));

		if (str_starts(one, STR("W/")))
			one = (struct str){one.p + 2, one.n - 2};
		if (str_is(one, etag))
			return true;
	}
	return false;
}

int api_page(struct api_call *c, struct err *err)
{
	const struct page_asset *a = page_find(c->req->path);

	if (!a)
		return err_set(err, ERR_NOT_FOUND, "no such path");
	http_add_header(c->x, "ETag", a->etag);
	if (is_known(http_header(c->x, "if-none-match"), a->etag)) {
		http_reply(c->x, 304, NULL, STR(""));
		return 0;
	}
	http_add_header(c->x, "Content-Encoding", "gzip");
	http_reply(c->x, 200, a->type, (struct str){(const char *)a->gzip, a->n});
	return 0;
}
