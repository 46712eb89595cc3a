/*
 * horovod - one process for each rank, and Horovod's own rendezvous for its gloo controller.
 *
 * The rendezvous is a service, role "rdzv": a store of keys over HTTP, as Horovod's launcher would start it.  Ranks,
 * sizes and its address are in the HOROVOD_ names, which a program without horovodrun reads.
 */
#include "strategy/internal.h"

#include "base/arena.h"

#define RDZV "rdzv"
#define HOROVOD_PORT 29410

static const char *const brings[] = {RDZV, NULL};

/* PUT and GET of a path, and DELETE when a rank is done with its scope. */
static const char *store_script(int port, struct arena *a)
{
	return arena_printf(
		a,
		"import http.server, os\n"
		"store = {}\n"
		"class Store(http.server.BaseHTTPRequestHandler):\n"
		"    def answer(self, code, body=b''):\n"
		"        self.send_response(code)\n"
		"        self.send_header('Content-Length', str(len(body)))\n"
		"        self.end_headers()\n"
		"        self.wfile.write(body)\n"
		"    def do_PUT(self):\n"
		"        store[self.path] = self.rfile.read(int(self.headers['Content-Length']))\n"
		"        self.answer(200)\n"
		"    def do_GET(self):\n"
		"        body = store.get(self.path)\n"
		"        self.answer(404 if body is None else 200, body or b'')\n"
		"    def do_DELETE(self):\n"
		"        self.answer(200)\n"
		"    def log_message(self, *args):\n"
		"        pass\n"
		"http.server.ThreadingHTTPServer((os.environ['REGATTA_ADDRESS'], %d), Store).serve_forever()\n",
		port);
}

static void complete(struct job *job, struct arena *a)
{
	added_workers(job, a);
	struct role *rdzv = added_role(job, a, RDZV);

	rdzv->service = rdzv->service_set = true;
	if (!rdzv->port)
		rdzv->port = HOROVOD_PORT;
	if (!added_has_command(job, rdzv))
		added_run_script(rdzv, a, added_python(job), store_script((int)rdzv->port, a));
}

static bool crew(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps)
{
	if (!crew_free(job, a, ret, ps))
		return false;
	crew_gate(ret, RDZV, a);
	return true;
}

static void env(const struct env_input *in, int role, struct arena *a, struct env_list *out)
{
	static const struct env_pair own[] = {
		{"HOROVOD_CONTROLLER", "gloo"},
		{"HOROVOD_CPU_OPERATIONS", "gloo"},
		{"HOROVOD_GLOO_IFACE", "{interface}"},
		{"HOROVOD_HOSTNAME", "{address}"},
		{"HOROVOD_CROSS_RANK", "{rank}"},
		{"HOROVOD_GLOO_RENDEZVOUS_ADDR", "{list:" RDZV "|,|{address}}"},
	};
	const struct strategy_role *r = &in->crew->roles[role];

	if (!r->counted)
		return;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		env_put(out, a, own[i].name, own[i].value);
	env_put(out, a, "HOROVOD_GLOO_RENDEZVOUS_PORT",
		arena_printf(a, "{list:" RDZV "|,|{port:%d}}", HOROVOD_PORT));
	env_put(out, a, "HOROVOD_RANK", env_rank(in));
	env_put_int(out, a, "HOROVOD_SIZE", strategy_world(in->crew));
	env_put(out, a, "HOROVOD_LOCAL_RANK", env_local(in, role));
	env_put_int(out, a, "HOROVOD_LOCAL_SIZE", r->ranks);
	env_put_int(out, a, "HOROVOD_CROSS_SIZE", in->crew->ncounted);
}

const struct strategy strategy_horovod = {
	.name = "horovod",
	.help = "Horovod with gloo: every rank started by Regatta, and a rendezvous that it adds",
	.ends_together = true,
	.complete = complete,
	.brings = brings,
	.crew = crew,
	.env = env,
};
