#include "fmt/object_list.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

void object_entry_put(const struct object_entry *e, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "name", e->name);
	if (e->size >= 0)
		jsonw_kint(&w, "size", e->size);
	if (e->etag)
		jsonw_kz(&w, "etag", e->etag);
	if (e->version)
		jsonw_kz(&w, "version", e->version);
	jsonw_close(&w);
	buf_addc(out, '\n');
}

int object_entry_get(struct str line, struct arena *a, struct object_entry *ret, struct err *err)
{
	struct doc *d;

	if (json_parse(line, a, &d, err) < 0)
		return err_wrap(err, "list of objects");
	const struct doc *name = doc_get(d, "name");

	if (!name || name->type != DOC_STRING)
		return err_set(err, ERR_INVALID, "list of objects: an entry without a name");
	if (name->s.n > 0 && !path_is_below(name->s))
		return err_set(
			err, ERR_INVALID,
			"the object '%.120s' cannot be a file: its name leaves the directory",
			name->s.p);
	*ret = (struct object_entry){
		.name = name->s.p,
		.size = doc_int(d, "size", -1),
		.etag = doc_str(d, "etag", (struct str){0}).p,
		.version = doc_str(d, "version", (struct str){0}).p,
	};
	return 0;
}
