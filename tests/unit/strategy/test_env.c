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

static struct env_list env_of(struct fixture *f, int rank)
{
	return fixture_env(f, arena, rank);
}

static const char ctr[] = "name = 'ctr'\nstrategy = 'pserver'\ncommand = 'x'\n"
			  "[roles.pserver]\ncount = 2\n[roles.trainer]\ncount = 3\n";

/* The first node of each role of each job in tests/golden/env/. */
static void the_environment_of_each_role_is_as_in_the_golden_files(void **state)
{
	static const char *const jobs[] = {"single",   "roles",	  "pserver",   "processes", "torch",
					   "torchrun", "elastic", "tf",	       "jax",	    "mxnet",
					   "horovod",  "paddle",  "inference", "mpi"};
	(void)state;

	for (size_t i = 0; i < COUNT(jobs); i++) {
		CLEANUP(buf_release) struct buf text;
		buf_init(&text, GOLDEN_MAX);
		const char *path =
			golden_path(arena, arena_printf(arena, "golden/env/%s.toml", jobs[i]));
		assert_int_equal(file_read(path, &text, NULL), 0);
		struct fixture *f = make(text.p);
		for (int rank = 0; rank < f->crew.n; rank++) {
			CLEANUP(buf_release) struct buf out;
			const struct member *m = &f->crew.members[rank];

			if (m->index != 0)
				continue;
			buf_init(&out, GOLDEN_MAX);
			struct env_list env = env_of(f, rank);
			for (size_t k = 0; k < env.n; k++)
				buf_printf(&out, "%s=%s\n", env.v[k].name, env.v[k].value);
			path = arena_printf(arena, "golden/env/%s.%s.txt", jobs[i], m->name);
			golden_check(golden_path(arena, path), buf_str(&out));
		}
	}
}

static void names_are_sorted_and_come_once(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	for (int rank = 0; rank < f->crew.n; rank++) {
		struct env_list env = env_of(f, rank);
		assert_true(env.n > 40);
		for (size_t i = 1; i < env.n; i++)
			assert_true(strcmp(env.v[i - 1].name, env.v[i].name) < 0);
	}
}

static void the_same_inputs_give_the_same_environment(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	struct env_list x = env_of(f, 1), y = env_of(f, 1);
	assert_int_equal(x.n, y.n);
	for (size_t i = 0; i < x.n; i++) {
		assert_string_equal(x.v[i].name, y.v[i].name);
		assert_string_equal(x.v[i].value, y.v[i].value);
	}
}

static void the_roles_env_wins_over_the_jobs_and_both_over_ours(void **state)
{
	(void)state;
	struct fixture *f = make(
		"command = 'x'\nenv = { A = 'job', B = 'job', RANK = 'job', MASTER_PORT = '1' }\n"
		"[roles.w]\nenv = { A = 'role', MASTER_PORT = '2' }\n[roles.v]\n");
	struct env_list w = env_of(f, 0), v = env_of(f, 1);
	env_is(w, "A", "role");
	env_is(w, "B", "job");
	env_is(w, "RANK", "job");
	env_is(w, "MASTER_PORT", "2");
	env_is(v, "A", "job");
	env_is(v, "MASTER_PORT", "1");
}

static void every_node_knows_itself_and_the_others(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	struct env_list e = env_of(f, 4);
	env_is(e, "REGATTA_RUN", "ctr-abcd");
	env_is(e, "REGATTA_NODE", "pserver-1");
	env_is(e, "REGATTA_ROLE", "pserver");
	env_is(e, "REGATTA_INDEX", "1");
	env_is(e, "REGATTA_RANK", "4");
	env_is(e, "REGATTA_NODES", "5");
	env_is(e, "REGATTA_ADDRESS", "127.1.0.5");
	env_is(e, "REGATTA_ATTEMPT", "1");
	env_is(e, "REGATTA_OUTPUT", "/run/out");
	env_is(e, "REGATTA_WORK", "/run/work");
	env_is(e, "REGATTA_HOSTFILE", "/run/hostfile");
	env_is(e, "REGATTA_METRICS", "/run/metrics");
	env_is(e, "REGATTA_MEMBERS",
	       "trainer-0=127.1.0.1,trainer-1=127.1.0.2,trainer-2=127.1.0.3,pserver-0=127.1.0.4:5436,pserver-1=127.1.0.5:5436");
}

static void what_is_not_there_is_not_named(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	f->here.output = f->here.work = f->here.hostfile = f->here.metrics = NULL;
	f->here.interface = "";
	f->here.machinefile = NULL;
	f->in.master_endpoint = "";
	struct env_list e = env_of(f, 0);
	static const char *const names[] = {
		"REGATTA_OUTPUT",     "REGATTA_WORK",
		"REGATTA_HOSTFILE",   "REGATTA_METRICS",
		"BAI_SCRIPTS_PATH",   "BENCHMARK_AI_FIFO_FILEPATH",
		"HYDRA_HOST_FILE",    "OMPI_MCA_orte_default_hostfile",
		"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME",
		"MASTER_ENDPOINT",    "JOB_PATH",
		"CONF_PADDLE_NIC",    "OMPI_MCA_plm_rsh_agent",
		"JOB_NAMESPACE",      "SLURM_PROCID",
	};
	for (size_t i = 0; i < COUNT(names); i++)
		env_has_no(e, names[i]);
	f->in.master_endpoint = NULL;
	env_has_no(env_of(f, 0), "MASTER_ENDPOINT");
}

static void an_address_that_only_the_node_knows_is_its_name(void **state)
{
	(void)state;
	struct fixture *f = make("command = 'x'\ncount = 2\n");
	f->members.addresses = (const char *const[]){NULL, "10.0.0.2"};
	struct env_list e = env_of(f, 1);
	env_is(e, "MASTER_ADDR", "worker-0");
	env_is(e, "REGATTA_MEMBERS", "worker-0=worker-0,worker-1=10.0.0.2");
}

static void torch_and_jax_know_the_counted_ranks_only(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	struct env_list trainer = env_of(f, 2), server = env_of(f, 3);
	env_is(trainer, "RANK", "2");
	env_is(trainer, "LOCAL_RANK", "0");
	env_is(trainer, "WORLD_SIZE", "3");
	env_is(trainer, "LOCAL_WORLD_SIZE", "1");
	env_is(trainer, "GROUP_RANK", "2");
	env_is(trainer, "NODE_RANK", "2");
	env_is(trainer, "MASTER_ADDR", "127.1.0.1");
	env_is(trainer, "MASTER_PORT", "29500");
	env_is(trainer, "PET_NNODES", "3");
	env_is(trainer, "PET_NPROC_PER_NODE", "1");
	env_is(trainer, "PET_NODE_RANK", "2");
	env_is(trainer, "PET_RDZV_ENDPOINT", "127.1.0.1:29500");
	env_is(trainer, "PET_RDZV_ID", "ctr-abcd");
	env_is(trainer, "JAX_COORDINATOR_ADDRESS", "127.1.0.1:8476");
	env_is(trainer, "JAX_NUM_PROCESSES", "3");
	env_is(trainer, "JAX_PROCESS_ID", "2");
	env_is(trainer, "COORDINATOR_ADDRESS", "127.1.0.1:8476");
	env_is(trainer, "NUM_PROCESSES", "3");
	env_is(trainer, "PROCESS_ID", "2");
	env_has_no(server, "RANK");
	env_has_no(server, "WORLD_SIZE");
	env_has_no(server, "PET_NNODES");
	env_has_no(server, "JAX_PROCESS_ID");
}

static void mpi_finds_its_hostfile(void **state)
{
	(void)state;
	struct env_list e = env_of(make(ctr), 0);
	env_is(e, "OMPI_MCA_orte_default_hostfile", "/run/hostfile");
	env_is(e, "PRTE_MCA_prte_default_hostfile", "/run/hostfile");
	env_is(e, "HYDRA_HOST_FILE", "/run/machinefile");
	env_is(e, "I_MPI_HYDRA_HOST_FILE", "/run/machinefile");
}

static const char *text_of(struct fixture *f, const char *template)
{
	CLEANUP(buf_release) struct buf out;

	buf_init(&out, GOLDEN_MAX);
	assert_int_equal(expand_text(template, &f->here, &out, NULL), EXPAND_OK);
	return arena_str(arena, buf_str(&out)).p;
}

static void the_hostfiles_list_the_counted_ranks(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	assert_string_equal(text_of(f, strategy_hostfile(&f->crew, arena)),
			    "127.1.0.1 slots=1\n127.1.0.2 slots=1\n127.1.0.3 slots=1\n");
	assert_string_equal(text_of(f, strategy_machinefile(&f->crew, arena)),
			    "127.1.0.1:1\n127.1.0.2:1\n127.1.0.3:1\n");
}

/* Two nodes of two processes, one of three, and a service. */
static const char mixed[] = "command = 'x'\n[roles.a]\ncount = 2\nprocesses_per_node = 2\n"
			    "[roles.b]\nprocesses_per_node = 3\n[roles.s]\nservice = true\n";

static void processes_are_counted_over_the_nodes_of_all_roles(void **state)
{
	static const struct {
		int node, local;
		const char *rank, *size;
	} cases[] = {{0, 0, "0", "2"}, {0, 1, "1", "2"}, {1, 1, "3", "2"},
		     {2, 0, "4", "3"}, {2, 2, "6", "3"}, {3, 0, "7", NULL}};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct fixture *f = make(mixed);

		f->here.local = cases[i].local;
		struct env_list e = env_of(f, cases[i].node);

		env_is(e, "REGATTA_RANK", cases[i].rank);
		env_is(e, "REGATTA_NODE_RANK", arena_printf(arena, "%d", cases[i].node));
		env_is(e, "REGATTA_LOCAL_RANK", arena_printf(arena, "%d", cases[i].local));
		env_is(e, "REGATTA_WORLD_SIZE", "7");
		if (!cases[i].size) {
			env_has_no(e, "RANK");
			continue;
		}
		env_is(e, "RANK", cases[i].rank);
		env_is(e, "LOCAL_RANK", arena_printf(arena, "%d", cases[i].local));
		env_is(e, "LOCAL_WORLD_SIZE", cases[i].size);
		env_is(e, "WORLD_SIZE", "7");
		env_is(e, "NODE_RANK", arena_printf(arena, "%d", cases[i].node));
		env_is(e, "JAX_PROCESS_ID", cases[i].rank);
		env_is(e, "JAX_NUM_PROCESSES", "7");
	}
}

static void each_process_is_a_task_of_tensorflow_and_a_trainer_of_paddle(void **state)
{
	struct fixture *f = make(mixed);

	(void)state;
	f->here.local = 1;
	struct env_list e = env_of(f, 1);

	env_is(e, "TF_CONFIG",
	       "{\"cluster\":{\"a\":[\"127.1.0.1:2222\",\"127.1.0.1:2223\",\"127.1.0.2:2222\",\"127.1.0.2:2223\"],"
	       "\"b\":[\"127.1.0.3:2222\",\"127.1.0.3:2223\",\"127.1.0.3:2224\"],\"s\":[\"127.1.0.4:2222\"]},"
	       "\"task\":{\"type\":\"a\",\"index\":3}}");
	env_is(e, "PADDLE_TRAINERS_NUM", "7");
	env_is(e, "PADDLE_TRAINER_ID", "3");
	env_is(e, "PADDLE_RANK_IN_NODE", "1");
	env_is(e, "PADDLE_CURRENT_ENDPOINT", "127.1.0.2:6171");
	env_is(e, "PADDLE_PORT", "6171");
	env_is(e, "PADDLE_NNODES", "3");
	env_is(e, "PADDLE_TRAINER_ENDPOINTS",
	       "127.1.0.1:6170,127.1.0.1:6171,127.1.0.2:6170,127.1.0.2:6171,127.1.0.3:6170,"
	       "127.1.0.3:6171,127.1.0.3:6172");
}

static void the_evaluator_is_not_in_the_cluster_of_tensorflow(void **state)
{
	struct fixture *f = make("command = 'x'\n[roles.chief]\n[roles.evaluator]\n");

	(void)state;
	env_is(env_of(f, 1), "TF_CONFIG",
	       "{\"cluster\":{\"chief\":[\"127.1.0.1:2222\"]},\"task\":{\"type\":\"evaluator\",\"index\":0}}");
}

static void a_torchrun_starts_the_ranks_of_its_node(void **state)
{
	static const struct {
		const char *command;
		bool torchrun;
	} cases[] = {
		{"['torchrun', 'train.py']", true},
		{"['/opt/bin/torchrun', 'train.py']", true},
		{"['python3', '-m', 'torch.distributed.run', 'train.py']", true},
		{"['sh', '-c', 'cd x && exec /usr/bin/torchrun --tee 1 train.py']", true},
		{"['sh', '-c', 'torchrun train.py']", true},
		{"['bash', '-lc', 'torchrun train.py']", true},
		{"['bash', '-euxc', 'torchrun train.py']", true},
		{"['bash', '--exec', 'torchrun train.py']", false},
		{"['sh', '-c', 'echo torchrunner']", false},
		{"['sh', '-c', './mytorchrun x']", false},
		{"['python3', 'train.py', 'torchrun']", false},
		{"['python3', 'train.py', '--launcher', 'torch.distributed.run']", false},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct fixture *f = make(arena_printf(
			arena,
			"strategy = 'torch'\ncount = 3\nprocesses_per_node = 2\ncommand = %s\n",
			cases[i].command));
		struct env_list e = env_of(f, 2);

		assert_int_equal(f->crew.roles[0].processes, cases[i].torchrun ? 1 : 2);
		assert_int_equal(f->crew.roles[0].ranks, 2);
		env_is(e, "PET_NPROC_PER_NODE", cases[i].torchrun ? "2" : "1");
		env_is(e, "PET_NNODES", "3");
		env_is(e, "PET_NODE_RANK", "2");
		env_is(e, "RANK", "4");
		env_is(e, "WORLD_SIZE", "6");
		env_is(e, "LOCAL_WORLD_SIZE", "2");
	}
}

static void the_port_of_torch_is_the_one_in_the_env_of_the_role_or_the_job(void **state)
{
	static const struct {
		const char *job, *role, *port;
	} cases[] = {{"", "", "29500"},
		     {"MASTER_PORT = '1234'", "", "1234"},
		     {"MASTER_PORT = '1234'", "MASTER_PORT = '1235'", "1235"},
		     {"MASTER_PORT = 'x'", "", "29500"},
		     {"MASTER_PORT = '65536'", "", "29500"}};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct fixture *f = make(arena_printf(
			arena, "command = 'x'\nenv = { %s }\n[roles.w]\nenv = { %s }\n",
			cases[i].job, cases[i].role));
		struct env_list e = env_of(f, 0);

		env_is(e, "PET_MASTER_PORT", cases[i].port);
		env_is(e, "PET_RDZV_ENDPOINT", arena_printf(arena, "127.1.0.1:%s", cases[i].port));
	}
}

static void the_hostfiles_have_a_slot_for_each_process(void **state)
{
	(void)state;
	struct fixture *f = make(mixed);
	assert_string_equal(text_of(f, strategy_hostfile(&f->crew, arena)),
			    "127.1.0.1 slots=2\n127.1.0.2 slots=2\n127.1.0.3 slots=3\n");
	assert_string_equal(text_of(f, strategy_machinefile(&f->crew, arena)),
			    "127.1.0.1:2\n127.1.0.2:2\n127.1.0.3:3\n");
}

static void a_single_rank_needs_no_hostfile(void **state)
{
	static const char *const names[] = {"REGATTA_HOSTFILE", "OMPI_MCA_orte_default_hostfile",
					    "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE",
					    "I_MPI_HYDRA_HOST_FILE"};
	struct fixture *f = make("command = 'x'\n");

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		env_has_no(env_of(f, 0), names[i]);
	assert_string_equal(text_of(f, strategy_hostfile(&f->crew, arena)), "");
	assert_string_equal(text_of(f, strategy_machinefile(&f->crew, arena)), "");
}

static void a_host_without_an_address_is_listed_by_its_name(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	const char *const addresses[] = {"127.1.0.1", NULL, "127.1.0.3", NULL, NULL};

	f->members.addresses = addresses;
	assert_string_equal(text_of(f, strategy_hostfile(&f->crew, arena)),
			    "127.1.0.1 slots=1\ntrainer-1 slots=1\n127.1.0.3 slots=1\n");
	assert_string_equal(text_of(f, strategy_machinefile(&f->crew, arena)),
			    "127.1.0.1:1\ntrainer-1:1\n127.1.0.3:1\n");
}

static void tf_config_is_json_with_tensorflows_words(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	env_is(env_of(f, 1), "TF_CONFIG",
	       "{\"cluster\":{\"worker\":[\"127.1.0.1:2222\",\"127.1.0.2:2222\",\"127.1.0.3:2222\"],\"ps\":[\"127.1.0.4:5436\",\"127.1.0.5:5436\"]},\"task\":{\"type\":\"worker\",\"index\":1}}");
	for (int rank = 0; rank < f->crew.n; rank++) {
		struct doc *doc;
		assert_int_equal(json_parse(str_from(env_get(env_of(f, rank), "TF_CONFIG")), arena,
					    &doc, NULL),
				 0);
		const struct doc *task = doc_get(doc, "task");
		assert_true(str_is(doc_str(task, "type", STR("")), rank < 3 ? "worker" : "ps"));
		assert_int_equal(doc_int(task, "index", -1), f->crew.members[rank].index);
	}
}

static void tf_config_has_no_name_twice(void **state)
{
	(void)state;
	struct fixture *f =
		make("command = 'x'\n[roles.trainer]\n[roles.worker]\n[roles.chief]\nport = 7\n");
	env_is(env_of(f, 2), "TF_CONFIG",
	       "{\"cluster\":{\"trainer\":[\"127.1.0.1:2222\"],\"worker\":[\"127.1.0.2:2222\"],\"chief\":[\"127.1.0.3:7\"]},\"task\":{\"type\":\"chief\",\"index\":0}}");
}

static void paddles_own_names_are_those_of_today(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	struct env_list trainer = env_of(f, 1), server = env_of(f, 3);
	env_is(trainer, "PADDLE_TRAINER_ID", "1");
	env_is(trainer, "PADDLE_TRAINERS_NUM", "3");
	env_is(trainer, "PADDLE_TRAINER_ENDPOINTS", "127.1.0.1:6170,127.1.0.2:6170,127.1.0.3:6170");
	env_is(trainer, "PADDLE_CURRENT_ENDPOINT", "127.1.0.2:6170");
	env_is(trainer, "PADDLE_PORT", "6170");
	env_is(trainer, "PADDLE_PSERVERS_IP_PORT_LIST", "127.1.0.4:5436,127.1.0.5:5436");
	env_is(trainer, "PADDLE_NNODES", "3");
	env_is(trainer, "PADDLE_MASTER", "127.1.0.1:6070");
	env_is(server, "PADDLE_TRAINERS_NUM", "3");
	env_is(server, "PADDLE_CURRENT_ENDPOINT", "127.1.0.4:5436");
	env_is(server, "PADDLE_PORT", "5436");
	env_is(server, "POD_IP", "127.1.0.4");
	env_has_no(server, "PADDLE_TRAINER_ID");
}

static void the_old_tools_names_are_exact_on_both_roles(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	struct env_list trainer = env_of(f, 2), server = env_of(f, 4);
	env_is(trainer, "MASTER_ENDPOINT", "127.0.0.1:5436");
	env_is(trainer, "TASK_NAME", "ctr-abcd");
	env_is(trainer, "TRAINER_COUNT", "3");
	env_is(trainer, "TRAINERS", "3");
	env_is(trainer, "TRAINER_INDEX", "2");
	env_is(trainer, "TRAINING_ROLE", "TRAINER");
	env_is(trainer, "PSERVER_HOSTS", "127.1.0.4:5436,127.1.0.5:5436");
	env_is(trainer, "PSERVERS", "127.1.0.4:5436,127.1.0.5:5436");
	env_is(trainer, "PADDLE_INIT_TRAINER_ID", "2");
	env_has_no(trainer, "SERVER_ENDPOINT");
	env_is(server, "TRAINER_INDEX", "0");
	env_is(server, "TRAINING_ROLE", "PSERVER");
	env_is(server, "SERVER_ENDPOINT", "127.1.0.5:5436");
	env_is(server, "PSERVERS", "127.1.0.4:5436,127.1.0.5:5436");
	env_has_no(server, "PADDLE_INIT_TRAINER_ID");
}

static void the_kubernetes_forms_names_are_filled_where_true(void **state)
{
	(void)state;
	struct env_list e = env_of(make(ctr), 0);
	env_is(e, "JOB_NAME", "ctr");
	env_is(e, "JOB_PATH", "/run/work");
	env_is(e, "CONF_PADDLE_NIC", "lo");
	env_is(e, "CONF_PADDLE_PORT", "5436");
	env_is(e, "CONF_PADDLE_PORTS_NUM", "1");
	env_is(e, "CONF_PADDLE_PORTS_NUM_SPARSE", "0");
	env_is(e, "CONF_PADDLE_GRADIENT_NUM", "3");
	env_has_no(e, "TRAIN_CONFIG_DIR");
}

static void other_strategies_do_not_speak_of_pservers(void **state)
{
	(void)state;
	struct env_list e = env_of(make("command = 'x'\n"), 0);
	env_has_no(e, "PSERVERS");
	env_has_no(e, "TRAINING_ROLE");
	env_has_no(e, "PADDLE_PSERVERS_IP_PORT_LIST");
	env_has_no(e, "JOB_NAME");
	env_is(e, "PADDLE_TRAINER_ID", "0");
}

static void anubis_and_the_network_are_served(void **state)
{
	(void)state;
	struct env_list e = env_of(make("command = 'x'\n"), 0);
	env_is(e, "BENCHMARK_AI", "fifo");
	env_is(e, "BENCHMARK_AI_FIFO_FILEPATH", "/run/metrics");
	env_is(e, "BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "60");
	env_is(e, "BAI_SCRIPTS_PATH", "/run/work");
	env_is(e, "NCCL_SOCKET_IFNAME", "lo");
	env_is(e, "GLOO_SOCKET_IFNAME", "lo");
}

/* Linux takes 128 KiB for a variable: an exec with a longer one fails as a whole. */
static void no_variable_is_too_long_for_an_exec(void **state)
{
	(void)state;
	struct fixture *f = make("command = 'x'\ncount = 10000\n");
	struct env_list e = env_of(f, 9999);
	for (size_t i = 0; i < e.n; i++)
		assert_true(strlen(e.v[i].name) + strlen(e.v[i].value) + 2 < 131072);
	env_has_no(e, "REGATTA_MEMBERS");
	env_has_no(e, "TF_CONFIG");
	env_is(e, "REGATTA_MEMBERS_FILE", "/run/long/REGATTA_MEMBERS");
	env_is(e, "TF_CONFIG_FILE", "/run/long/TF_CONFIG");
	env_is(e, "REGATTA_RANK", "9999");
	f = make("command = 'x'\ncount = 2000\n");
	e = env_of(f, 0);
	assert_true(strlen(env_get(e, "REGATTA_MEMBERS")) > 40000);
	assert_true(strlen(env_get(e, "TF_CONFIG")) > 30000);
	env_has_no(e, "TF_CONFIG_FILE");
}

static void a_file_that_the_job_names_itself_stays(void **state)
{
	(void)state;
	struct fixture *f =
		make("command = 'x'\ncount = 10000\nenv = { TF_CONFIG_FILE = 'mine' }\n");
	env_is(env_of(f, 0), "TF_CONFIG_FILE", "mine");
}

static void what_the_job_file_says_is_no_template(void **state)
{
	(void)state;
	struct fixture *f = make("name = 'a'\ncommand = 'x'\nenv = { A = '{rank}', B = '{{' }\n"
				 "[roles.w]\nenv = { C = '${HOME} {nothing}' }\n");
	struct env_list e = env_of(f, 0);
	env_is(e, "A", "{rank}");
	env_is(e, "B", "{{");
	env_is(e, "C", "${HOME} {nothing}");
}

static void the_templates_of_a_role_do_not_grow_with_its_nodes(void **state)
{
	(void)state;
	size_t bytes[2] = {0};
	for (int i = 0; i < 2; i++) {
		struct fixture *f =
			make(i ? "command = 'x'\ncount = 9999\n" : "command = 'x'\ncount = 1000\n");
		struct env_list templates;

		strategy_env(f->strategy, &f->in, 0, arena, &templates);
		for (size_t k = 0; k < templates.n; k++)
			bytes[i] += strlen(templates.v[k].value);
	}
	assert_int_equal(bytes[0], bytes[1]);
}

static void the_most_pservers_still_fit_in_their_variable(void **state)
{
	(void)state;
	struct fixture *f = make(
		"strategy = 'pserver'\ncommand = 'x'\n[roles.pserver]\ncount = 5000\nport = 65535\n"
		"[roles.trainer]\ncount = 5000\n");
	const char **addresses = arena_array(arena, const char *, 10000);
	for (int i = 0; i < 10000; i++)
		addresses[i] = "255.255.255.255";
	f->members.addresses = addresses;
	struct env_list e = env_of(f, 0);
	assert_int_equal(strlen(env_get(e, "PSERVERS")), 5000 * 22 - 1);
	assert_non_null(env_get(e, "PADDLE_TRAINER_ENDPOINTS"));
	/* Names may be longer than addresses: then the list is in a file, whole. */
	for (int i = 0; i < 10000; i++)
		addresses[i] = "a-node-with-a-long-name.example";
	e = env_of(f, 0);
	env_has_no(e, "PSERVERS");
	env_has_no(e, "PADDLE_TRAINER_ENDPOINTS");
	env_is(e, "PSERVERS_FILE", "/run/long/PSERVERS");
}

static void a_job_may_have_many_variables_of_its_own(void **state)
{
	CLEANUP(buf_release) struct buf text;
	(void)state;

	buf_init(&text, 1 << 20);
	buf_addz(&text, "command = 'x'\n[env]\n");
	for (int i = 0; i < 1000; i++)
		buf_printf(&text, "V%d = '%d'\n", i, i);
	struct env_list e = env_of(make(text.p), 0);
	env_is(e, "V0", "0");
	env_is(e, "V500", "500");
	env_is(e, "V999", "999");
	env_is(e, "REGATTA_RANK", "0");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(the_environment_of_each_role_is_as_in_the_golden_files),
		T(names_are_sorted_and_come_once),
		T(the_same_inputs_give_the_same_environment),
		T(the_roles_env_wins_over_the_jobs_and_both_over_ours),
		T(every_node_knows_itself_and_the_others),
		T(what_is_not_there_is_not_named),
		T(an_address_that_only_the_node_knows_is_its_name),
		T(torch_and_jax_know_the_counted_ranks_only),
		T(mpi_finds_its_hostfile),
		T(the_hostfiles_list_the_counted_ranks),
		T(processes_are_counted_over_the_nodes_of_all_roles),
		T(each_process_is_a_task_of_tensorflow_and_a_trainer_of_paddle),
		T(the_evaluator_is_not_in_the_cluster_of_tensorflow),
		T(a_torchrun_starts_the_ranks_of_its_node),
		T(the_port_of_torch_is_the_one_in_the_env_of_the_role_or_the_job),
		T(the_hostfiles_have_a_slot_for_each_process),
		T(a_single_rank_needs_no_hostfile),
		T(a_host_without_an_address_is_listed_by_its_name),
		T(tf_config_is_json_with_tensorflows_words),
		T(tf_config_has_no_name_twice),
		T(paddles_own_names_are_those_of_today),
		T(the_old_tools_names_are_exact_on_both_roles),
		T(the_kubernetes_forms_names_are_filled_where_true),
		T(other_strategies_do_not_speak_of_pservers),
		T(anubis_and_the_network_are_served),
		T(no_variable_is_too_long_for_an_exec),
		T(a_file_that_the_job_names_itself_stays),
		T(what_the_job_file_says_is_no_template),
		T(the_templates_of_a_role_do_not_grow_with_its_nodes),
		T(the_most_pservers_still_fit_in_their_variable),
		T(a_job_may_have_many_variables_of_its_own),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests_name("env", tests, NULL, NULL);
}
