#include "../spec/golden.h"

#include "strategy/strategy.h"

struct fixture {
	struct job job;
	const struct strategy *strategy;
	struct crew crew;
	struct env_input in;
	struct expand_members members;
	struct expand_here here;
};

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
	struct fixture *f = arena_new_of(arena, struct fixture);
	struct problems ps = {0};

	f->job = good_job(arena, text);
	f->strategy = strategy_for(&f->job, arena, &ps);
	if (!f->strategy || !strategy_crew(f->strategy, &f->job, arena, &f->crew, &ps))
		fail_msg("%s", ps.v[0].text);
	const char **addresses = arena_array(arena, const char *, (size_t)f->crew.n);
	for (int i = 0; i < f->crew.n; i++)
		addresses[i] = arena_printf(arena, "127.1.%d.%d", i / 250, i % 250 + 1);
	f->in = (struct env_input){
		.job = &f->job,
		.crew = &f->crew,
		.run_id = "ctr-abcd",
		.master_endpoint = "127.0.0.1:5436",
	};
	strategy_members(&f->crew, addresses, arena, &f->members);
	f->here = (struct expand_here){
		.members = &f->members,
		.attempt = 1,
		.interface = "lo",
		.output = "/run/out",
		.work = "/run/work",
		.hostfile = "/run/hostfile",
		.machinefile = "/run/machinefile",
		.metrics = "/run/metrics",
	};
	return f;
}

static struct env_list env_of(struct fixture *f, int rank)
{
	struct env_list templates, env;

	f->here.rank = rank;
	strategy_env(f->strategy, &f->in, f->crew.members[rank].role, arena, &templates);
	strategy_env_expand(&templates, &f->here, "/run/long", arena, &env);
	return env;
}

static const char *get(struct env_list env, const char *name)
{
	for (size_t i = 0; i < env.n; i++)
		if (strcmp(env.v[i].name, name) == 0)
			return env.v[i].value;
	return NULL;
}

static void is(struct env_list env, const char *name, const char *value)
{
	const char *got = get(env, name);

	if (!got)
		fail_msg("%s is not set", name);
	assert_string_equal(got, value);
}

static void none(struct env_list env, const char *name)
{
	if (get(env, name))
		fail_msg("%s is set to %s", name, get(env, name));
}

static const char ctr[] = "name = 'ctr'\nstrategy = 'pserver'\ncommand = 'x'\n"
			  "[roles.pserver]\ncount = 2\n[roles.trainer]\ncount = 3\n";

/* The first node of each role of each job in tests/golden/env/. */
static void the_environment_of_each_role_is_as_in_the_golden_files(void **state)
{
	static const char *const jobs[] = {"single", "roles", "pserver"};
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
	is(w, "A", "role");
	is(w, "B", "job");
	is(w, "RANK", "job");
	is(w, "MASTER_PORT", "2");
	is(v, "A", "job");
	is(v, "MASTER_PORT", "1");
}

static void every_node_knows_itself_and_the_others(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	struct env_list e = env_of(f, 4);
	is(e, "REGATTA_RUN", "ctr-abcd");
	is(e, "REGATTA_NODE", "pserver-1");
	is(e, "REGATTA_ROLE", "pserver");
	is(e, "REGATTA_INDEX", "1");
	is(e, "REGATTA_RANK", "4");
	is(e, "REGATTA_NODES", "5");
	is(e, "REGATTA_ADDRESS", "127.1.0.5");
	is(e, "REGATTA_ATTEMPT", "1");
	is(e, "REGATTA_OUTPUT", "/run/out");
	is(e, "REGATTA_WORK", "/run/work");
	is(e, "REGATTA_HOSTFILE", "/run/hostfile");
	is(e, "REGATTA_METRICS", "/run/metrics");
	is(e, "REGATTA_MEMBERS",
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
		none(e, names[i]);
	f->in.master_endpoint = NULL;
	none(env_of(f, 0), "MASTER_ENDPOINT");
}

static void an_address_that_only_the_node_knows_is_its_name(void **state)
{
	(void)state;
	struct fixture *f = make("command = 'x'\ncount = 2\n");
	f->members.addresses = (const char *const[]){NULL, "10.0.0.2"};
	struct env_list e = env_of(f, 1);
	is(e, "MASTER_ADDR", "worker-0");
	is(e, "REGATTA_MEMBERS", "worker-0=worker-0,worker-1=10.0.0.2");
}

static void torch_and_jax_know_the_counted_ranks_only(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	struct env_list trainer = env_of(f, 2), server = env_of(f, 3);
	is(trainer, "RANK", "2");
	is(trainer, "LOCAL_RANK", "0");
	is(trainer, "WORLD_SIZE", "3");
	is(trainer, "LOCAL_WORLD_SIZE", "1");
	is(trainer, "GROUP_RANK", "2");
	is(trainer, "NODE_RANK", "2");
	is(trainer, "MASTER_ADDR", "127.1.0.1");
	is(trainer, "MASTER_PORT", "29500");
	is(trainer, "PET_NNODES", "3");
	is(trainer, "PET_NPROC_PER_NODE", "1");
	is(trainer, "PET_NODE_RANK", "2");
	is(trainer, "PET_RDZV_ENDPOINT", "127.1.0.1:29500");
	is(trainer, "PET_RDZV_ID", "ctr-abcd");
	is(trainer, "JAX_COORDINATOR_ADDRESS", "127.1.0.1:8476");
	is(trainer, "JAX_NUM_PROCESSES", "3");
	is(trainer, "JAX_PROCESS_ID", "2");
	is(trainer, "COORDINATOR_ADDRESS", "127.1.0.1:8476");
	is(trainer, "NUM_PROCESSES", "3");
	is(trainer, "PROCESS_ID", "2");
	none(server, "RANK");
	none(server, "WORLD_SIZE");
	none(server, "PET_NNODES");
	none(server, "JAX_PROCESS_ID");
}

static void mpi_finds_its_hostfile(void **state)
{
	(void)state;
	struct env_list e = env_of(make(ctr), 0);
	is(e, "OMPI_MCA_orte_default_hostfile", "/run/hostfile");
	is(e, "PRTE_MCA_prte_default_hostfile", "/run/hostfile");
	is(e, "HYDRA_HOST_FILE", "/run/machinefile");
	is(e, "I_MPI_HYDRA_HOST_FILE", "/run/machinefile");
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
	assert_string_equal(text_of(f, strategy_hostfile(&f->crew)),
			    "127.1.0.1 slots=1\n127.1.0.2 slots=1\n127.1.0.3 slots=1\n");
	assert_string_equal(text_of(f, strategy_machinefile(&f->crew)),
			    "127.1.0.1:1\n127.1.0.2:1\n127.1.0.3:1\n");
}

static void a_single_rank_needs_no_hostfile(void **state)
{
	static const char *const names[] = {"REGATTA_HOSTFILE", "OMPI_MCA_orte_default_hostfile",
					    "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE",
					    "I_MPI_HYDRA_HOST_FILE"};
	struct fixture *f = make("command = 'x'\n");

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		none(env_of(f, 0), names[i]);
	assert_string_equal(text_of(f, strategy_hostfile(&f->crew)), "");
	assert_string_equal(text_of(f, strategy_machinefile(&f->crew)), "");
}

static void a_host_without_an_address_is_listed_by_its_name(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	const char *const addresses[] = {"127.1.0.1", NULL, "127.1.0.3", NULL, NULL};

	f->members.addresses = addresses;
	assert_string_equal(text_of(f, strategy_hostfile(&f->crew)),
			    "127.1.0.1 slots=1\ntrainer-1 slots=1\n127.1.0.3 slots=1\n");
	assert_string_equal(text_of(f, strategy_machinefile(&f->crew)),
			    "127.1.0.1:1\ntrainer-1:1\n127.1.0.3:1\n");
}

static void tf_config_is_json_with_tensorflows_words(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	is(env_of(f, 1), "TF_CONFIG",
	   "{\"cluster\":{\"worker\":[\"127.1.0.1:2222\",\"127.1.0.2:2222\",\"127.1.0.3:2222\"],\"ps\":[\"127.1.0.4:5436\",\"127.1.0.5:5436\"]},\"task\":{\"type\":\"worker\",\"index\":1}}");
	for (int rank = 0; rank < f->crew.n; rank++) {
		struct doc *doc;
		assert_int_equal(
			json_parse(str_from(get(env_of(f, rank), "TF_CONFIG")), arena, &doc, NULL),
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
	is(env_of(f, 2), "TF_CONFIG",
	   "{\"cluster\":{\"trainer\":[\"127.1.0.1:2222\"],\"worker\":[\"127.1.0.2:2222\"],\"chief\":[\"127.1.0.3:7\"]},\"task\":{\"type\":\"chief\",\"index\":0}}");
}

static void paddles_own_names_are_those_of_today(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	struct env_list trainer = env_of(f, 1), server = env_of(f, 3);
	is(trainer, "PADDLE_TRAINER_ID", "1");
	is(trainer, "PADDLE_TRAINERS_NUM", "3");
	is(trainer, "PADDLE_TRAINER_ENDPOINTS", "127.1.0.1:6170,127.1.0.2:6170,127.1.0.3:6170");
	is(trainer, "PADDLE_CURRENT_ENDPOINT", "127.1.0.2:6170");
	is(trainer, "PADDLE_PORT", "6170");
	is(trainer, "PADDLE_PSERVERS_IP_PORT_LIST", "127.1.0.4:5436,127.1.0.5:5436");
	is(trainer, "PADDLE_NNODES", "3");
	is(trainer, "PADDLE_MASTER", "127.1.0.1:6070");
	is(server, "PADDLE_TRAINERS_NUM", "3");
	is(server, "PADDLE_CURRENT_ENDPOINT", "127.1.0.4:5436");
	is(server, "PADDLE_PORT", "5436");
	is(server, "POD_IP", "127.1.0.4");
	none(server, "PADDLE_TRAINER_ID");
}

static void the_old_tools_names_are_exact_on_both_roles(void **state)
{
	(void)state;
	struct fixture *f = make(ctr);
	struct env_list trainer = env_of(f, 2), server = env_of(f, 4);
	is(trainer, "MASTER_ENDPOINT", "127.0.0.1:5436");
	is(trainer, "TASK_NAME", "ctr-abcd");
	is(trainer, "TRAINER_COUNT", "3");
	is(trainer, "TRAINERS", "3");
	is(trainer, "TRAINER_INDEX", "2");
	is(trainer, "TRAINING_ROLE", "TRAINER");
	is(trainer, "PSERVER_HOSTS", "127.1.0.4:5436,127.1.0.5:5436");
	is(trainer, "PSERVERS", "127.1.0.4:5436,127.1.0.5:5436");
	is(trainer, "PADDLE_INIT_TRAINER_ID", "2");
	none(trainer, "SERVER_ENDPOINT");
	is(server, "TRAINER_INDEX", "0");
	is(server, "TRAINING_ROLE", "PSERVER");
	is(server, "SERVER_ENDPOINT", "127.1.0.5:5436");
	is(server, "PSERVERS", "127.1.0.4:5436,127.1.0.5:5436");
	none(server, "PADDLE_INIT_TRAINER_ID");
}

static void the_kubernetes_forms_names_are_filled_where_true(void **state)
{
	(void)state;
	struct env_list e = env_of(make(ctr), 0);
	is(e, "JOB_NAME", "ctr");
	is(e, "JOB_PATH", "/run/work");
	is(e, "CONF_PADDLE_NIC", "lo");
	is(e, "CONF_PADDLE_PORT", "5436");
	is(e, "CONF_PADDLE_PORTS_NUM", "1");
	is(e, "CONF_PADDLE_PORTS_NUM_SPARSE", "0");
	is(e, "CONF_PADDLE_GRADIENT_NUM", "3");
	none(e, "TRAIN_CONFIG_DIR");
}

static void other_strategies_do_not_speak_of_pservers(void **state)
{
	(void)state;
	struct env_list e = env_of(make("command = 'x'\n"), 0);
	none(e, "PSERVERS");
	none(e, "TRAINING_ROLE");
	none(e, "PADDLE_PSERVERS_IP_PORT_LIST");
	none(e, "JOB_NAME");
	is(e, "PADDLE_TRAINER_ID", "0");
}

static void anubis_and_the_network_are_served(void **state)
{
	(void)state;
	struct env_list e = env_of(make("command = 'x'\n"), 0);
	is(e, "BENCHMARK_AI", "fifo");
	is(e, "BENCHMARK_AI_FIFO_FILEPATH", "/run/metrics");
	is(e, "BENCHMARK_AI_FIFO_MAX_WAIT_TIME", "60");
	is(e, "BAI_SCRIPTS_PATH", "/run/work");
	is(e, "NCCL_SOCKET_IFNAME", "lo");
	is(e, "GLOO_SOCKET_IFNAME", "lo");
}

/* Linux takes 128 KiB for a variable: an exec with a longer one fails as a whole. */
static void no_variable_is_too_long_for_an_exec(void **state)
{
	(void)state;
	struct fixture *f = make("command = 'x'\ncount = 10000\n");
	struct env_list e = env_of(f, 9999);
	for (size_t i = 0; i < e.n; i++)
		assert_true(strlen(e.v[i].name) + strlen(e.v[i].value) + 2 < 131072);
	none(e, "REGATTA_MEMBERS");
	none(e, "TF_CONFIG");
	is(e, "REGATTA_MEMBERS_FILE", "/run/long/REGATTA_MEMBERS");
	is(e, "TF_CONFIG_FILE", "/run/long/TF_CONFIG");
	is(e, "REGATTA_RANK", "9999");
	f = make("command = 'x'\ncount = 2000\n");
	e = env_of(f, 0);
	assert_true(strlen(get(e, "REGATTA_MEMBERS")) > 40000);
	assert_true(strlen(get(e, "TF_CONFIG")) > 30000);
	none(e, "TF_CONFIG_FILE");
}

static void a_file_that_the_job_names_itself_stays(void **state)
{
	(void)state;
	struct fixture *f =
		make("command = 'x'\ncount = 10000\nenv = { TF_CONFIG_FILE = 'mine' }\n");
	is(env_of(f, 0), "TF_CONFIG_FILE", "mine");
}

static void what_the_job_file_says_is_no_template(void **state)
{
	(void)state;
	struct fixture *f = make("name = 'a'\ncommand = 'x'\nenv = { A = '{rank}', B = '{{' }\n"
				 "[roles.w]\nenv = { C = '${HOME} {nothing}' }\n");
	struct env_list e = env_of(f, 0);
	is(e, "A", "{rank}");
	is(e, "B", "{{");
	is(e, "C", "${HOME} {nothing}");
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
	assert_int_equal(strlen(get(e, "PSERVERS")), 5000 * 22 - 1);
	assert_non_null(get(e, "PADDLE_TRAINER_ENDPOINTS"));
	/* Names may be longer than addresses: then the list is in a file, whole. */
	for (int i = 0; i < 10000; i++)
		addresses[i] = "a-node-with-a-long-name.example";
	e = env_of(f, 0);
	none(e, "PSERVERS");
	none(e, "PADDLE_TRAINER_ENDPOINTS");
	is(e, "PSERVERS_FILE", "/run/long/PSERVERS");
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
	is(e, "V0", "0");
	is(e, "V500", "500");
	is(e, "V999", "999");
	is(e, "REGATTA_RANK", "0");
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
