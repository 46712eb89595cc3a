/* The roles, gates and commands that the strategies of frameworks bring. */
#include "fixture.h"

static struct arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = arena_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena = arena_free(arena);
	return 0;
}

static struct fixture *make(const char *text)
{
	return fixture_make(arena, text);
}

static const struct strategy_role *role_of(const struct fixture *f, const char *name)
{
	for (int i = 0; i < f->crew.nroles; i++)
		if (strcmp(f->crew.roles[i].name, name) == 0)
			return &f->crew.roles[i];
	fail_msg("no role %s", name);
	return NULL;
}

static bool waits_for(const struct fixture *f, const char *role, const char *other)
{
	const struct strategy_role *r = role_of(f, role);

	for (int i = 0; i < r->nafter; i++)
		if (strcmp(f->crew.roles[r->after[i]].name, other) == 0)
			return true;
	return false;
}

/* Exactly this one problem. */
static void refused(const char *text, const char *message)
{
	struct problems ps = {0};
	struct job job = complete_job(arena, text);
	struct crew c;

	assert_false(strategy_crew(strategy_for(&job, arena, &ps), &job, arena, &c, &ps));
	if (ps.n != 1 || strcmp(ps.v[0].text, message) != 0)
		fail_msg("%zu problems, first: %s\nwanted: %s", ps.n, ps.v[0].text, message);
}

/* "PORT+COUNT KEY", with "*:" before it where all addresses are meant; "": none. */
static const char *ports_of(struct fixture *f, int rank)
{
	struct strategy_port p;

	if (!f->strategy->ports || !f->strategy->ports(&f->in, rank, &p))
		return "";
	return arena_printf(arena, "%s%d+%d %s", p.any ? "*:" : "", p.port, p.count, p.key);
}

static void the_ports_of_a_framework_are_known_before_it_listens(void **state)
{
	struct fixture *torch = make("strategy = 'torch'\ncommand = ['x']\ncount = 2\n");
	struct fixture *other = make("strategy = 'torch'\ncommand = ['x']\n"
				     "env = { MASTER_PORT = '29501' }\n");
	struct fixture *jax = make("strategy = 'jax'\ncommand = ['x']\ncount = 2\n");
	struct fixture *paddle = make("strategy = 'paddle'\ncommand = ['x']\ncount = 2\n");
	struct fixture *tf = make("strategy = 'tf'\ncommand = ['x']\n[roles.chief]\nport = 99\n"
				  "processes_per_node = 3\n[roles.worker]\n[roles.evaluator]\n");
	struct fixture *mpi = make("strategy = 'mpi'\ncommand = ['x']\ncount = 2\n");

	(void)state;
	assert_string_equal(ports_of(torch, 0), "*:29500+1 env.MASTER_PORT");
	assert_string_equal(ports_of(torch, 1), "");
	assert_string_equal(ports_of(other, 0), "*:29501+1 env.MASTER_PORT");
	assert_string_equal(ports_of(jax, 0), "*:8476+1 env.JAX_COORDINATOR_PORT");
	assert_string_equal(ports_of(jax, 1), "");
	assert_string_equal(ports_of(paddle, 0), "7163+2 roles.trainer.port");
	assert_string_equal(ports_of(paddle, 1), "7163+2 roles.trainer.port");
	assert_string_equal(ports_of(tf, 0), "99+3 `port` of its role");
	assert_string_equal(ports_of(tf, 1), "2222+1 `port` of its role");
	assert_string_equal(ports_of(tf, 2), "");
	assert_string_equal(ports_of(mpi, 0), "");
}

/* elastic */

static const char trainers[] =
	"strategy = 'elastic'\n[roles.trainer]\ncount = 2\nmin = 1\nmax = 3\n"
	"command = ['torchrun', 'train.py']\n";

static void elastic_trainers_wait_for_an_etcd_that_the_strategy_brings(void **state)
{
	struct fixture *f = make(trainers);
	const struct strategy_role *rdzv = role_of(f, "rdzv");

	(void)state;
	assert_int_equal(f->crew.n, 4);
	assert_int_equal(f->crew.ncounted, 3);
	assert_false(rdzv->counted);
	assert_int_equal(rdzv->count, 1);
	assert_int_equal(rdzv->port, 2379);
	assert_int_equal(rdzv->ready_when, READY_PORT);
	assert_string_equal(rdzv->command.v[0], "sh");
	assert_non_null(strstr(rdzv->command.v[2], "exec etcd "));
	assert_non_null(strstr(rdzv->command.v[2], "--listen-client-urls $at:2379 "));
	/* Rule: it needs no other port, which somebody else may have: nobody looks at that before the start. */
	assert_non_null(strstr(rdzv->command.v[2], "--listen-peer-urls $at:0 "));
	assert_true(waits_for(f, "trainer", "rdzv"));
}

static void elastic_jobs_without_roles_have_workers(void **state)
{
	struct fixture *f =
		make("strategy = 'elastic'\ncount = 2\nmax = 3\ncommand = ['torchrun', 't']\n");

	(void)state;
	assert_string_equal(f->crew.members[0].name, "worker-0");
	assert_string_equal(f->crew.members[3].name, "rdzv-0");
	assert_int_equal(role_of(f, "worker")->max, 3);
	assert_true(waits_for(f, "worker", "rdzv"));
}

static void elastic_nodes_meet_in_pytorchs_own_store_if_the_job_says_so(void **state)
{
	struct fixture *f =
		make("strategy = 'elastic'\nrendezvous = 'c10d'\n[roles.trainer]\n"
		     "command = ['/opt/bin/python3.11', '-m', 'torch.distributed.run', 't']\n");
	const struct strategy_role *rdzv = role_of(f, "rdzv");
	struct env_list e = fixture_env(f, arena, 0);

	(void)state;
	assert_int_equal(rdzv->port, 29400);
	assert_string_equal(rdzv->command.v[0], "/opt/bin/python3.11");
	assert_non_null(strstr(rdzv->command.v[2], "29400, is_master=True"));
	env_is(e, "PET_RDZV_BACKEND", "c10d");
	env_is(e, "PET_RDZV_ENDPOINT", "127.1.0.2:29400");
	env_is(e, "PET_RDZV_CONF", "last_call_timeout=5,is_host=0");
}

static void elastic_takes_the_rendezvous_of_the_file(void **state)
{
	struct fixture *f =
		make("strategy = 'elastic'\ncommand = ['torchrun', 't']\n[roles.trainer]\n"
		     "[roles.rdzv]\nport = 4001\n");

	(void)state;
	assert_non_null(strstr(role_of(f, "rdzv")->command.v[2], "--listen-client-urls $at:4001 "));
	env_is(fixture_env(f, arena, 0), "RDZV_ENDPOINT", "127.1.0.2:4001");
	f = make("strategy = 'elastic'\n[roles.trainer]\ncommand = 't'\n[roles.rdzv]\nport = 4001\n"
		 "command = ['my-etcd']\nservice = false\n");
	assert_string_equal(role_of(f, "rdzv")->command.v[0], "my-etcd");
	assert_false(role_of(f, "rdzv")->counted);
}

static void elastic_names_are_those_of_torchelastic(void **state)
{
	struct fixture *f = make(trainers);
	struct env_list e = fixture_env(f, arena, 1), rdzv = fixture_env(f, arena, 3);

	(void)state;
	env_is(e, "RDZV_ENDPOINT", "127.1.0.4:2379");
	env_is(e, "JOB_ID", "ctr-abcd");
	env_is(e, "MIN_SIZE", "1");
	env_is(e, "MAX_SIZE", "3");
	env_is(e, "SIZE", "2");
	env_is(e, "NUM_NODES", "2");
	env_is(e, "PET_NNODES", "1:3");
	env_is(e, "PET_NPROC_PER_NODE", "1");
	env_is(e, "PET_RDZV_BACKEND", "etcd");
	env_is(e, "PET_RDZV_ID", "ctr-abcd");
	env_is(e, "PET_MAX_RESTARTS", "3");
	env_has_no(rdzv, "RDZV_ENDPOINT");
	env_has_no(rdzv, "PET_NNODES");
}

static void elastic_refuses_what_it_cannot_do(void **state)
{
	(void)state;
	refused("strategy = 'elastic'\ncommand = 't'\n[roles.a]\n[roles.b]\n",
		"strategy 'elastic' has one role that counts for the finish, and this file has 2: mark the "
		"others with service = true");
	refused("strategy = 'elastic'\ncommand = 't'\nrendezvous = 'zookeeper'\n",
		"rendezvous = \"zookeeper\": write \"etcd\" or \"c10d\"");
	refused("strategy = 'elastic'\ncommand = 't'\n[roles.a]\n[roles.rdzv]\ncount = 2\n",
		"roles.rdzv is one node: leave out count");
	refused("strategy = 'torch'\ncommand = 't'\nrendezvous = 'c10d'\n",
		"rendezvous is for strategy = \"elastic\": leave it out");
}

static void a_gate_is_no_circle(void **state)
{
	struct fixture *f = make(
		"strategy = 'elastic'\ncommand = 't'\n[roles.a]\n[roles.store]\nservice = true\n"
		"[roles.net]\nservice = true\n[roles.rdzv]\nafter = 'store'\n");

	(void)state;
	assert_true(waits_for(f, "a", "rdzv"));
	assert_true(waits_for(f, "net", "rdzv"));
	assert_false(waits_for(f, "store", "rdzv"));
	assert_false(waits_for(f, "rdzv", "rdzv"));
}

/* tf */

static void tensorflows_servers_and_its_evaluator_are_services(void **state)
{
	struct fixture *f =
		make("strategy = 'tf'\ncommand = 't'\n[roles.worker]\ncount = 2\n[roles.ps]\n"
		     "[roles.evaluator]\n");

	(void)state;
	assert_true(role_of(f, "worker")->counted);
	assert_false(role_of(f, "ps")->counted);
	assert_false(role_of(f, "evaluator")->counted);
	assert_int_equal(role_of(f, "ps")->port, 2222);
	assert_int_equal(role_of(f, "ps")->ready_when, READY_PORT);
	assert_true(waits_for(f, "worker", "ps"));
	f = make(
		"strategy = 'tf'\ncommand = 't'\n[roles.worker]\n[roles.evaluator]\nservice = false\n");
	assert_true(role_of(f, "evaluator")->counted);
	f = make("strategy = 'tf'\ncommand = 't'\n[roles.worker]\nport = 2223\n");
	assert_int_equal(role_of(f, "worker")->ready_when, READY_STARTED);
	f = make("strategy = 'tf'\ncommand = 't'\ncount = 3\n");
	assert_int_equal(f->crew.ncounted, 3);
}

static void with_a_chief_and_servers_tensorflows_workers_serve_the_chief(void **state)
{
	static const char both[] =
		"strategy = 'tf'\ncommand = 't'\n[roles.chief]\n[roles.worker]\n[roles.ps]\n";
	struct fixture *f = make(both);

	(void)state;
	assert_int_equal(f->crew.ncounted, 1);
	assert_string_equal(f->crew.members[0].name, "chief-0");
	f = make("strategy = 'tf'\ncommand = 't'\n[roles.chief]\n[roles.worker]\n");
	assert_int_equal(f->crew.ncounted, 2);
}

/* mxnet */

static void mxnet_has_a_scheduler_and_a_server_for_each_worker(void **state)
{
	struct fixture *f = make("strategy = 'mxnet'\ncount = 3\ncommand = 'train'\n");

	(void)state;
	assert_int_equal(f->crew.n, 7);
	assert_int_equal(f->crew.ncounted, 3);
	assert_int_equal(role_of(f, "server")->count, 3);
	assert_int_equal(role_of(f, "scheduler")->port, 9091);
	assert_string_equal(role_of(f, "scheduler")->command.v[0], "train");
	assert_true(waits_for(f, "worker", "scheduler") && waits_for(f, "server", "scheduler"));
	env_is(fixture_env(f, arena, 2), "DMLC_WORKER_ID", "2");
	env_is(fixture_env(f, arena, 2), "DMLC_PS_ROOT_URI", "127.1.0.4");
	f = make(
		"strategy = 'mxnet'\n[roles.worker]\ncount = 2\ncommand = 'w'\n[roles.server]\ncommand = 's'\n"
		"[roles.scheduler]\nport = 5000\n");
	assert_int_equal(role_of(f, "server")->count, 1);
	assert_string_equal(role_of(f, "server")->command.v[0], "s");
	assert_string_equal(role_of(f, "scheduler")->command.v[0], "w");
	env_is(fixture_env(f, arena, 0), "DMLC_PS_ROOT_PORT", "5000");
	env_is(fixture_env(f, arena, 0), "DMLC_NUM_SERVER", "1");
	f = make(
		"strategy = 'mxnet'\ncommand = 't'\n[roles.worker]\ncount = 2\nprocesses_per_node = 2\n");
	f->here.local = 1;
	env_is(fixture_env(f, arena, 1), "DMLC_NUM_WORKER", "4");
	env_is(fixture_env(f, arena, 1), "DMLC_WORKER_ID", "3");
	refused("strategy = 'mxnet'\ncommand = 't'\n[roles.trainer]\n",
		"strategy 'mxnet' needs a table [roles.worker], or no roles at all");
	refused("strategy = 'mxnet'\ncommand = 't'\n[roles.worker]\n[roles.scheduler]\ncount = 2\n",
		"roles.scheduler is one node: leave out count");
}

/* horovod */

static void horovods_ranks_wait_for_a_rendezvous_that_the_strategy_brings(void **state)
{
	struct fixture *f =
		make("strategy = 'horovod'\ncount = 2\ncommand = ['/opt/python3', 't']\n");

	(void)state;
	assert_string_equal(role_of(f, "rdzv")->command.v[0], "/opt/python3");
	assert_int_equal(role_of(f, "rdzv")->ready_when, READY_PORT);
	assert_true(waits_for(f, "worker", "rdzv"));
	env_is(fixture_env(f, arena, 1), "HOROVOD_GLOO_RENDEZVOUS_ADDR", "127.1.0.3");
	env_has_no(fixture_env(f, arena, 2), "HOROVOD_RANK");
	f = make(
		"strategy = 'horovod'\n[roles.w]\ncommand = 't'\n[roles.rdzv]\ncommand = 'mine'\nport = 7\n");
	assert_string_equal(role_of(f, "rdzv")->command.v[0], "mine");
	env_is(fixture_env(f, arena, 0), "HOROVOD_GLOO_RENDEZVOUS_PORT", "7");
}

static void horovods_ranks_are_counted_over_nodes_and_on_each(void **state)
{
	static const char *const names[][2] = {
		{"HOROVOD_RANK", "5"},	     {"HOROVOD_SIZE", "6"},
		{"HOROVOD_LOCAL_RANK", "2"}, {"HOROVOD_LOCAL_SIZE", "3"},
		{"HOROVOD_CROSS_RANK", "1"}, {"HOROVOD_CROSS_SIZE", "2"},
	};
	struct fixture *f =
		make("strategy = 'horovod'\ncount = 2\nprocesses_per_node = 3\ncommand = 't'\n");

	(void)state;
	f->here.local = 2;
	for (size_t i = 0; i < COUNT(names); i++)
		env_is(fixture_env(f, arena, 1), names[i][0], names[i][1]);
}

/* paddle */

static void every_node_of_paddle_runs_a_server_and_a_trainer(void **state)
{
	struct fixture *f =
		make("strategy = 'paddle'\ncount = 2\ncommand = ['python3', 'train.py']\n");
	const struct strs *c = &role_of(f, "trainer")->command;

	(void)state;
	assert_true(f->strategy->ranks_by_address);
	assert_int_equal(f->crew.n, 2);
	assert_string_equal(f->crew.members[1].name, "trainer-1");
	assert_int_equal(c->n, 8);
	assert_string_equal(c->v[0], "python3");
	assert_string_equal(c->v[3], "2");
	assert_string_equal(c->v[5], "train.py");
	assert_string_equal(c->v[7], "train.py");
	f = make("strategy = 'paddle'\n[roles.trainer]\ncount = 2\ncommand = ['t', '--x']\n"
		 "[roles.pserver]\ncommand = 'p'\n");
	c = &role_of(f, "trainer")->command;
	assert_int_equal(f->crew.nroles, 1);
	assert_int_equal(c->n, 7);
	assert_string_equal(c->v[3], "1");
	assert_string_equal(c->v[4], "p");
	assert_string_equal(c->v[6], "--x");
}

static void a_node_that_starts_server_and_trainer_by_itself_runs_as_it_is(void **state)
{
	(void)state;
	struct fixture *f = make(
		"strategy = 'paddle'\n[roles.node]\ncount = 2\ncommand = ['bash', 'start.sh']\n"
		"env = { CONF_PADDLE_PORT = '7000', CONF_PADDLE_NIC = 'eth1' }\n");

	assert_int_equal(f->crew.n, 2);
	assert_string_equal(f->crew.members[1].name, "node-1");
	assert_string_equal(strategy_command(&f->crew, 0).v[0], "bash");
	env_is(fixture_env(f, arena, 1), "PADDLE_INIT_TRAINER_ID", "1");
	env_is(fixture_env(f, arena, 1), "CONF_PADDLE_NIC", "eth1");
	env_is(fixture_env(f, arena, 0), "CONF_PADDLE_GRADIENT_NUM", "2");
	env_is(fixture_env(f, arena, 0), "PADDLE_PSERVERS_IP_PORT_LIST",
	       "127.1.0.1:7000,127.1.0.2:7000");
}

static void paddle_refuses_what_it_cannot_do(void **state)
{
	(void)state;
	refused("strategy = 'paddle'\ncommand = 't'\n[roles.trainer]\n[roles.pserver]\ncount = 2\n",
		"roles.pserver of strategy 'paddle' has only a command: a server runs on every node of trainer. "
		"Servers on nodes of their own are strategy = \"pserver\"");
	refused("strategy = 'paddle'\ncommand = 't'\n[roles.trainer]\n[roles.pserver]\nenv = {A = 'b'}\n",
		"roles.pserver of strategy 'paddle' has only a command: a server runs on every node of trainer. "
		"Servers on nodes of their own are strategy = \"pserver\"");
	refused("strategy = 'paddle'\ncommand = 't'\n[roles.worker]\n",
		"strategy 'paddle' needs a table [roles.trainer], [roles.node] for a command that starts server "
		"and trainer by itself, or no roles at all");
	refused("strategy = 'paddle'\ncommand = 't'\n[roles.node]\n[roles.trainer]\n",
		"roles.node of strategy 'paddle' is the only role: its command starts server and trainer");
	refused("strategy = 'paddle'\ncommand = 't'\nprocesses_per_node = 2\n",
		"strategy 'paddle' runs one server and one trainer on each node: leave out processes_per_node");
}

/* inference */

static void clients_wait_for_the_server_and_find_it(void **state)
{
	struct fixture *f = make(
		"strategy = 'inference'\ncommand = 'x'\n[roles.server]\nport = 80\n[roles.client]\n");

	(void)state;
	assert_false(role_of(f, "server")->counted);
	assert_true(waits_for(f, "client", "server"));
	env_is(fixture_env(f, arena, 0), "INFERENCE_SERVER_HOST", "127.1.0.2");
	env_is(fixture_env(f, arena, 0), "INFERENCE_SERVER_PORT", "80");
	env_has_no(fixture_env(f, arena, 1), "INFERENCE_SERVER_HOST");
	refused("strategy = 'inference'\ncommand = 'x'\n[roles.client]\n",
		"strategy 'inference' needs a table [roles.server], and another for the clients");
	refused("strategy = 'inference'\ncommand = 'x'\n[roles.client]\n[roles.server]\n",
		"roles.server needs a port: clients start when it answers");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(the_ports_of_a_framework_are_known_before_it_listens),
		T(elastic_trainers_wait_for_an_etcd_that_the_strategy_brings),
		T(elastic_jobs_without_roles_have_workers),
		T(elastic_nodes_meet_in_pytorchs_own_store_if_the_job_says_so),
		T(elastic_takes_the_rendezvous_of_the_file),
		T(elastic_names_are_those_of_torchelastic),
		T(elastic_refuses_what_it_cannot_do),
		T(a_gate_is_no_circle),
		T(tensorflows_servers_and_its_evaluator_are_services),
		T(with_a_chief_and_servers_tensorflows_workers_serve_the_chief),
		T(mxnet_has_a_scheduler_and_a_server_for_each_worker),
		T(horovods_ranks_wait_for_a_rendezvous_that_the_strategy_brings),
		T(horovods_ranks_are_counted_over_nodes_and_on_each),
		T(every_node_of_paddle_runs_a_server_and_a_trainer),
		T(a_node_that_starts_server_and_trainer_by_itself_runs_as_it_is),
		T(paddle_refuses_what_it_cannot_do),
		T(clients_wait_for_the_server_and_find_it),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
