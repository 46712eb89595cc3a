/*
 * paddle - Paddle's scheme on Kubernetes: every node runs a parameter server and a trainer.
 *
 * The servers run the command of [roles.pserver], or that of the trainers: Paddle sees by TRAINING_ROLE what it is.
 * Each node runs a small Python program that starts its server, waits until all servers answer, runs the
 * trainer, and keeps the server until the last trainer has ended.  Logs are where the scheme has them:
 * output/node_<id>/server.log and train.log.  Trainers are numbered by their sorted addresses.
 *
 * A job with [roles.node] has a command that does all of that by itself, as the scheme's own images do: it runs as
 * it is, with the same names in its environment.
 */
#include "strategy/internal.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"

#define PSERVER "pserver"
#define TRAINER "trainer"
#define NODE "node"
#define SERVER_PORT 7164
#define PORTS_NUM 2
#define SPARSE_PORTS_NUM 2

static const char *const brings[] = {PSERVER, NULL};

/* argv: the number of words of the server's command, that command, the trainer's. */
static const char node_script[] =
	"import os, signal, socket, subprocess, sys, time\n"
	"words = int(sys.argv[1])\n"
	"server_command, trainer_command = sys.argv[2:2 + words], sys.argv[2 + words:]\n"
	"me, n = int(os.environ['PADDLE_TRAINER_ID']), int(os.environ['PADDLE_TRAINERS_NUM'])\n"
	"servers = [s.rsplit(':', 1) for s in os.environ['PADDLE_PSERVERS_IP_PORT_LIST'].split(',')]\n"
	"last = (servers[0][0], int(os.environ['CONF_PADDLE_PORT']) - 1)\n"
	"out = os.path.join(os.environ['JOB_PATH'], 'output', 'node_%d' % me)\n"
	"os.makedirs(out, exist_ok=True)\n"
	"finish = socket.create_server(last) if me == 0 else None\n"
	"server_log, train_log = (open(os.path.join(out, f), 'wb') for f in ('server.log', 'train.log'))\n"
	"def start(role, command, out, **more):\n"
	"    try:\n"
	"        return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT,\n"
	"                                env=dict(os.environ, TRAINING_ROLE=role, **more))\n"
	"    except OSError as e:\n"
	"        sys.exit('command \\'%s\\' cannot be run: %s' % (command[0], e.strerror))\n"
	"server = start('PSERVER', server_command, server_log)\n"
	"def answers(address):\n"
	"    try:\n"
	"        socket.create_connection(address, 5).close()\n"
	"        return True\n"
	"    except OSError:\n"
	"        return False\n"
	"def say_ended():\n"
	"    sys.exit('the server of this node has ended with code %d: see %s' % (server.returncode, server_log.name))\n"
	"deadline = time.monotonic() + float(os.environ['CONF_PADDLE_SERVE_SECONDS'])\n"
	"for host, port in servers:\n"
	"    while not answers((host, int(port))):\n"
	"        if server.poll() is not None:\n"
	"            say_ended()\n"
	"        if time.monotonic() > deadline:\n"
	"            server.kill()\n"
	"            sys.exit('the server at %s:%s does not answer' % (host, port))\n"
	"        time.sleep(0.05)\n"
	"if server.poll() is not None:\n"
	"    say_ended()\n"
	"shard = os.path.join(os.environ['JOB_PATH'], 'data', str(me))\n"
	"shards = {'PADDLE_SHARD': shard} if os.path.isdir(shard) else {}\n"
	"trainer = start('TRAINER', trainer_command, subprocess.PIPE, **shards)\n"
	"for line in trainer.stdout:\n"
	"    for to in (sys.stdout.buffer, train_log):\n"
	"        to.write(line)\n"
	"        to.flush()\n"
	"code = trainer.wait()\n"
	"if code == 0 and server.poll():\n"
	"    say_ended()\n"
	"if code == 0 and finish:\n"
	"    for peer in [finish.accept()[0] for _ in range(n - 1)]:\n"
	"        peer.close()\n"
	"elif code == 0:\n"
	"    socket.create_connection(last).recv(1)\n"
	"server.terminate()\n"
	"try:\n"
	"    server.wait(5)\n"
	"except subprocess.TimeoutExpired:\n"
	"    server.kill()\n"
	"if code < 0:\n"
	"    signal.signal(-code, signal.SIG_DFL)\n"
	"    os.kill(os.getpid(), -code)\n"
	"sys.exit(code)\n";

static void run_both(struct role *trainer, const struct strs *server, const char *python,
		     struct arena *a)
{
	const struct strs own = trainer->command;
	const char **v = arena_array(a, const char *, server->n + own.n + 4);
	size_t n = 0;

	v[n++] = python;
	v[n++] = "-c";
	v[n++] = node_script;
	v[n++] = arena_printf(a, "%zu", server->n);
	for (size_t i = 0; i < server->n; i++)
		v[n++] = server->v[i];
	for (size_t i = 0; i < own.n; i++)
		v[n++] = own.v[i];
	trainer->command = (struct strs){v, n};
}

static void drop_role(struct job *job, const struct role *r)
{
	size_t at = (size_t)(r - job_role(job, 0));

	for (size_t i = at; i + 1 < job->roles.n; i++)
		*job_role(job, i) = *job_role(job, i + 1);
	job->roles.n--;
}

/* What a [roles.pserver] says beside its command would have no effect: then it stays, and crew() says so. */
static bool is_only_a_command(const struct role *r)
{
	return r->policy.max == 1 && r->processes == 1 && r->env.n == 0 && !r->port &&
	       r->after.n == 0;
}

static void complete(struct job *job, struct arena *a)
{
	if (added_find(job, NODE))
		return;
	if (job->roles.n == 0) {
		added_workers(job, a);
		job_role(job, 0)->name = TRAINER;
	}
	struct role *trainer = added_find(job, TRAINER), *server = added_find(job, PSERVER);

	if (!trainer || (server && !is_only_a_command(server)))
		return;
	struct strs command =
		server && added_has_command(job, server) ? server->command : trainer->command;

	run_both(trainer, &command, added_python(job), a);
	if (server)
		drop_role(job, server);
}

static bool crew(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps)
{
	size_t before = ps->n + ps->more;
	const struct role *node = added_find(job, NODE), *server = added_find(job, PSERVER);
	const struct role *trainer = node ? node : added_find(job, TRAINER);

	if (node && job->roles.n > 1)
		problems_add(
			ps, a, node->pos,
			"roles.node of strategy 'paddle' is the only role: its command starts server "
			"and trainer");
	else if (server)
		problems_add(
			ps, a, server->pos,
			"roles.pserver of strategy 'paddle' has only a command: a server runs on every node of "
			"trainer. Servers on nodes of their own are strategy = \"pserver\"");
	if (!trainer)
		problems_add(
			ps, a, job->strategy_pos,
			"strategy 'paddle' needs a table [roles.trainer], [roles.node] for a "
			"command that starts server and trainer by itself, or no roles at all");
	else if (trainer->processes > 1)
		problems_add(
			ps, a, trainer->processes_pos,
			"strategy 'paddle' runs one server and one trainer on each node: leave out "
			"processes_per_node");
	return ps->n + ps->more == before && crew_free(job, a, ret, ps);
}

static void env(const struct env_input *in, int role, struct arena *a, struct env_list *out)
{
	const struct strategy_role *r = &in->crew->roles[role];
	int port = env_port(in, role, "CONF_PADDLE_PORT", SERVER_PORT);
	const struct paddle_servers servers = {
		.list = arena_printf(a, "{list:%s|,|{address}:{port:%d}}", r->name, port),
		.port = r->port ? r->port : port,
		.ports_num = PORTS_NUM,
		.sparse_ports_num = SPARSE_PORTS_NUM,
	};

	if (strcmp(r->name, TRAINER) != 0 && strcmp(r->name, NODE) != 0)
		return;
	env_paddle_servers(in, &servers, a, out);
	env_put(out, a, "TRAINER_INDEX", "{rank}");
	env_put(out, a, "PADDLE_INIT_TRAINER_ID", "{rank}");
	env_put(out, a, "PADDLE_INIT_PSERVERS", arena_printf(a, "{list:%s|,|{address}}", r->name));
	env_put_int(out, a, "PADDLE_INIT_PORT", servers.port);
	env_put_int(out, a, "PADDLE_INIT_PORTS_NUM", PORTS_NUM);
	env_put_int(out, a, "PADDLE_INIT_PORTS_NUM_FOR_SPARSE", SPARSE_PORTS_NUM);
	env_put_int(out, a, "PADDLE_INIT_NUM_GRADIENT_SERVERS", in->crew->ncounted);
	env_put_int(out, a, "CONF_PADDLE_SERVE_SECONDS", in->job->timeouts.serve_ms / 1000);
	env_put(out, a, "SERVER_ENDPOINT", arena_printf(a, "{address}:%d", servers.port));
	/* A Paddle server makes its endpoint of POD_IP and PADDLE_PORT. */
	env_put_int(out, a, "PADDLE_PORT", servers.port);
}

/* The server's port, and the one below it, where the nodes wait for the last trainer. */
static bool ports(const struct env_input *in, int rank, struct strategy_port *ret)
{
	int port = in->crew->roles[in->crew->members[rank].role].port;

	*ret = (struct strategy_port){(port ? port : SERVER_PORT) - 1, 2, false,
				      "roles." TRAINER ".port"};
	return true;
}

const struct strategy strategy_paddle = {
	.name = "paddle",
	.help = "Paddle: a parameter server and a trainer on every node, numbered by address",
	.ranks_by_address = true,
	.complete = complete,
	.brings = brings,
	.crew = crew,
	.env = env,
	.ports = ports,
};
