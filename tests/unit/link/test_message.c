/* Payloads of the link in both directions: their own keys are checked strictly, unknown keys are ignored. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "link/message.h"

/* Any message, read and written. */
union any {
	struct exit_report exit;
	struct message_bye bye;
	struct message_collected collected;
	struct message_enrol enrol;
	struct message_enrolled enrolled;
	struct message_exec exec;
	struct message_exec_close exec_close;
	struct message_exec_control exec_control;
	struct message_hello hello;
	struct message_host_answer host_answer;
	struct message_host_ask host_ask;
	struct message_host_nodes host_nodes;
	struct message_inputs inputs;
	struct message_join join;
	struct message_metrics metrics;
	struct message_preempt preempt;
	struct message_preflight preflight;
	struct message_preflight_done preflight_done;
	struct message_extend extend;
	struct message_ready ready;
	struct message_refuse refuse;
	struct message_sample sample;
	struct message_serving serving;
	struct message_signal signal;
	struct message_members members;
	struct message_start start;
	struct message_started started;
	struct message_welcome welcome;
};

#define TYPE(name)                                                                                 \
	static int get_##name(struct str json, struct arena *a, union any *ret, struct err *err)   \
	{                                                                                          \
		return message_##name##_get(json, a, &ret->name, err);                             \
	}                                                                                          \
	static void put_##name(const union any *m, struct buf *out)                                \
	{                                                                                          \
		message_##name##_put(&m->name, out);                                               \
	}
TYPE(exit)
TYPE(bye)
TYPE(collected)
TYPE(enrol)
TYPE(enrolled)
TYPE(exec)
TYPE(exec_close)
TYPE(exec_control)
TYPE(hello)
TYPE(host_answer)
TYPE(host_ask)
TYPE(host_nodes)
TYPE(inputs)
TYPE(join)
TYPE(metrics)
TYPE(preempt)
TYPE(preflight)
TYPE(preflight_done)
TYPE(extend)
TYPE(ready)
TYPE(refuse)
TYPE(sample)
TYPE(serving)
TYPE(signal)
TYPE(members)
TYPE(start)
TYPE(started)
TYPE(welcome)

#define SHA "abababababababababababababababababababababababababababababababab"
#define EXIT_TEXT                                                                                  \
	"{\"attempt\":1,\"code\":-1,\"signal\":9,\"oom\":false,\"kind\":\"timeout\",\"reason\":\"late\",\"streams\":[1,2,3],\"gaps\":[{\"stream\":\"err\",\"offset\":7,\"bytes\":8}]}"

static const struct message {
	const char *name;
	int (*get)(struct str json, struct arena *a, union any *ret, struct err *err);
	void (*put)(const union any *m, struct buf *out);
	const char *text;     /* with every key, as it is written */
	const char *optional; /* keys that may be missing, between spaces */
} messages[] = {
	{"hello", get_hello, put_hello,
	 "{\"proto\":1,\"run\":\"r\",\"node\":\"n\",\"token\":\"t\",\"boot_id\":\"b\",\"pid\":5,\"version\":\"0.1\",\"attempt\":1,\"holds\":\"other_boot\",\"streams\":[4,5,6],\"exit\":" EXIT_TEXT
	 ",\"templates\":true,\"address\":\"10.0.0.7\",\"interface\":\"eth0\",\"incarnation\":3}",
	 " exit gaps templates address interface incarnation "},
	{"join", get_join, put_join,
	 "{\"proto\":1,\"id\":\"i\",\"name\":\"n1\",\"token\":\"t\",\"boot_id\":\"b\",\"version\":\"0.1\",\"machine\":\"m\",\"address\":\"10.0.0.7\",\"time_ms\":5,\"cpus\":2,\"gpus\":1,\"memory\":1024,\"labels\":{}}",
	 " machine address "},
	{"enrol", get_enrol, put_enrol,
	 "{\"proto\":1,\"run\":\"r\",\"role\":\"trainer\",\"token\":\"1.2.3.x\",\"identity\":\"i-0abc\",\"place\":4,\"version\":\"0.1\"}",
	 " place "},
	{"enrolled", get_enrolled, put_enrolled,
	 "{\"node\":\"trainer-3\",\"token\":\"t\",\"incarnation\":2,\"again\":true}", " again "},
	{"host_nodes", get_host_nodes, put_host_nodes,
	 "{\"nodes\":[{\"run\":\"r\",\"node\":\"n\",\"incarnation\":2}]}", ""},
	{"host_ask", get_host_ask, put_host_ask,
	 "{\"no\":1,\"op\":\"create\",\"run\":\"r\",\"node\":\"n\",\"incarnation\":2,\"token\":\"t\",\"id\":\"77\",\"limit_ms\":100}",
	 " token id "},
	{"host_answer", get_host_answer, put_host_answer,
	 "{\"no\":1,\"outcome\":\"held\",\"kind\":\"io\",\"text\":\"why\",\"id\":\"77\"}",
	 " kind text id "},
	{"ready", get_ready, put_ready, "{\"ok\":true}", ""},
	{"ready", get_ready, put_ready, "{\"ok\":false,\"kind\":\"conflict\",\"reason\":\"taken\"}",
	 ""},
	{"ready", get_ready, put_ready,
	 "{\"ok\":true,\"preflight\":{\"port\":4000,\"mtu\":1500,\"shm\":-1,\"files\":1024,\"time_ms\":5}}",
	 " preflight "},
	{"preflight", get_preflight, put_preflight,
	 "{\"round\":1,\"peers\":[{\"rank\":2,\"address\":\"10.0.0.2\",\"port\":4001}],\"limit_ms\":5000}",
	 ""},
	{"preflight_done", get_preflight_done, put_preflight_done,
	 "{\"round\":1,\"failed\":2,\"rank\":3,\"reached\":true,\"reason\":\"no answer\"}",
	 " rank reached "},
	{"started", get_started, put_started, "{\"attempt\":1,\"pid\":2}", ""},
	{"serving", get_serving, put_serving, "{\"attempt\":1}", ""},
	{"preempt", get_preempt, put_preempt, "{\"time_ms\":1700000000000}", ""},
	{"extend", get_extend, put_extend, "{\"expires_ms\":1700000000000}", ""},
	{"metrics", get_metrics, put_metrics,
	 "{\"from\":1,\"to\":9,\"bad\":2,\"samples\":[[\"loss\",0.5,3,1000],[\"acc\",1.0,-1,1001,50],[\"nan\",null,-1,1002]]}",
	 ""},
	{"sample", get_sample, put_sample,
	 "{\"time_ms\":5,\"values\":{\"host.cpu\":1.5,\"odd\":null}}", ""},
	{"exit", get_exit, put_exit, EXIT_TEXT, " gaps "},
	{"collected", get_collected, put_collected, "{\"files\":1,\"bytes\":2,\"error\":\"no\"}",
	 " error "},
	{"collected", get_collected, put_collected,
	 "{\"files\":1,\"bytes\":2,\"error\":\"no\",\"kind\":\"capacity\"}", " kind "},
	{"welcome", get_welcome, put_welcome,
	 "{\"lease_ms\":5,\"lost_ms\":7,\"acks\":[1,2,3],\"scanned\":[4,5,6]}", " lost_ms "},
	{"refuse", get_refuse, put_refuse, "{\"kind\":\"denied\",\"reason\":\"no\"}", " reason "},
	{"inputs", get_inputs, put_inputs,
	 "{\"source\":{\"sha256\":\"" SHA
	 "\"},\"data\":[{\"path\":\"x\",\"src\":\"d\",\"sha256\":\"" SHA
	 "\",\"shard_index\":1,\"shard_count\":3,\"unpack\":true},{\"path\":\"y\",\"blobs\":[{\"sha256\":\"" SHA
	 "\"},{\"sha256\":\"" SHA "\"}],\"tar\":true},{\"path\":\"z\",\"list\":\"" SHA
	 "\",\"from\":\"s3://b/z/\",\"input\":2}],\"argv0\":\"a\",\"path\":\"/bin\",\"address\":\"127.0.0.1\",\"port\":80,\"ports\":[{\"first\":7163,\"count\":2,\"any\":true,\"key\":\"k\"}],\"gpus\":2,\"memory\":9,\"metrics\":[{\"name\":\"l\",\"pattern\":\"p\"},{\"pattern\":\"q\"}],\"metric_prefix\":\"##\",\"sample_ms\":7,\"keep\":[\"a\",\"b\"],\"previous\":2,\"attempt\":3,\"setup\":[\"make\"],\"packages\":[\"zip\"],\"setup_env\":{\"A\":\"1\"},\"setup_ms\":5,\"preempt_signal\":10,\"preflight\":true}",
	 " source data shard_index input address port ports count any gpus memory metrics name metric_prefix sample_ms keep previous attempt setup packages unpack setup_env setup_ms preempt_signal preflight "},
	{"members", get_members, put_members,
	 "{\"first\":1,\"total\":3,\"roles\":[{\"name\":\"t\",\"first\":0,\"count\":3,\"port\":5,\"counted\":true}],\"addresses\":\"10.0.0.1 -\",\"names\":\"t-2 t-0\"}",
	 " port counted names "},
	{"start", get_start, put_start,
	 "{\"attempt\":2,\"rank\":7,\"interface\":\"eth0\",\"argv\":[\"a\",\"\",\"c\"],\"env\":{\"A\":\"1\",\"B\":\"x=y\"},\"cwd\":\"/w\",\"hostfile\":\"h\",\"machinefile\":\"m\",\"address\":\"127.0.0.1\",\"port\":80,\"grace_ms\":3,\"memory\":9,\"deadline_ms\":11,\"pty\":true,\"bind\":true}",
	 " rank interface cwd hostfile machinefile address port memory deadline_ms pty bind "},
	{"signal", get_signal, put_signal, "{\"hurry\":true}", ""},
	{"exec", get_exec, put_exec,
	 "{\"argv\":[\"a\",\"b c\"],\"term\":\"xterm\",\"columns\":80,\"rows\":24}",
	 " term columns rows "},
	{"exec_control", get_exec_control, put_exec_control,
	 "{\"taken\":5,\"signal\":2,\"columns\":80,\"rows\":24}", " taken signal columns rows "},
	{"exec_close", get_exec_close, put_exec_close,
	 "{\"code\":-1,\"signal\":9,\"kind\":\"denied\",\"reason\":\"no\"}",
	 " signal kind reason "},
	{"bye", get_bye, put_bye, "{\"reason\":\"end\"}", " reason "},
};

static int setup(void **state)
{
	*state = arena_new();
	return 0;
}

static int teardown(void **state)
{
	arena_free(*state);
	return 0;
}

static const struct message *message(const char *name)
{
	for (size_t i = 0; i < COUNT(messages); i++)
		if (strcmp(messages[i].name, name) == 0)
			return &messages[i];
	fail_msg("no message %s", name);
	return NULL;
}

static void every_message_is_read_as_it_was_written(void **state)
{
	for (size_t i = 0; i < COUNT(messages); i++) {
		struct err err = {0};
		union any m;
		struct buf b;

		if (messages[i].get(str_from(messages[i].text), *state, &m, &err) < 0)
			fail_msg("%s: %s", messages[i].name, err.msg);
		buf_init(&b, 10000);
		messages[i].put(&m, &b);
		assert_string_equal(b.p, messages[i].text);
		buf_release(&b);
	}
}

/* A tree with one fault in it. */
struct walk {
	const struct message *m;
	struct arena *a;
	struct doc *root;
	int faults;
};

static void expect(struct walk *w, const char *key, const char *fault, bool refused)
{
	struct err err = {0};
	struct buf b;
	union any any;
	char named[64];

	buf_init(&b, 10000);
	doc_to_json(w->root, &b);
	int rc = w->m->get(buf_str(&b), w->a, &any, &err);

	snprintf(named, sizeof(named), "'%s'", key);
	if (rc != (refused ? -1 : 0))
		fail_msg("%s with %s %s gave %d, %s", w->m->name, key, fault, rc, err.msg);
	if (refused && (err.kind != ERR_PROTOCOL || !strstr(err.msg, named) ||
			strncmp(err.msg, w->m->name, strlen(w->m->name)) != 0))
		fail_msg("%s with %s %s said '%s'", w->m->name, key, fault, err.msg);
	w->faults++;
	buf_release(&b);
}

static bool is_optional(const struct walk *w, const struct doc *table, const char *key)
{
	char word[64];

	/* Required in source and data, and not in inputs itself. */
	if (strcmp(key, "path") == 0)
		return table == w->root;
	/* What is fetched from the master has one; a file of this machine may have one. */
	if (strcmp(key, "sha256") == 0)
		return doc_get(table, "src") != NULL;
	snprintf(word, sizeof(word), " %s ", key);
	return strstr(w->m->optional, word) != NULL;
}

static void spoil_keys(struct walk *w, struct doc *d);

static void spoil_below(struct walk *w, const char *key, struct doc *v)
{
	/* Names in these are the job's own. */
	if (strcmp(key, "env") == 0 || strcmp(key, "setup_env") == 0 || strcmp(key, "values") == 0)
		return;
	if (v->type == DOC_TABLE)
		spoil_keys(w, v);
	for (size_t i = 0; v->type == DOC_ARRAY && i < v->array.n; i++)
		if (v->array.v[i]->type == DOC_TABLE)
			spoil_keys(w, v->array.v[i]);
}

static void spoil_keys(struct walk *w, struct doc *d)
{
	static const struct {
		enum doc_type type;
		const char *json;
	} others[] = {
		{DOC_BOOL, "true"},    {DOC_INT, "-9"},	  {DOC_FLOAT, "1.5"},
		{DOC_STRING, "\"?\""}, {DOC_ARRAY, "[]"}, {DOC_TABLE, "{}"},
	};

	for (size_t i = 0; i < d->table.n; i++) {
		struct doc_entry *e = &d->table.v[i], before = *e;
		const char *key = before.key.p;
		bool needed = !is_optional(w, d, key);

		e->key = STR("nobody-knows");
		/* Without its count this shard is none of the default's. */
		if (strcmp(key, "shard_count") == 0)
			expect(w, "shard_index", "without its count", true);
		else
			expect(w, key, "missing", needed);
		e->key = before.key;
		for (size_t k = 0; k < COUNT(others); k++) {
			struct err err = {0};

			if (others[k].type == before.value->type)
				continue;
			assert_int_equal(
				json_parse(str_from(others[k].json), w->a, &e->value, &err), 0);
			expect(w, key, others[k].json, true);
		}
		e->value = before.value;
		spoil_below(w, key, before.value);
	}
}

static void a_missing_key_or_one_of_another_type_is_refused_by_name(void **state)
{
	for (size_t i = 0; i < COUNT(messages); i++) {
		struct walk w = {.m = &messages[i], .a = *state};

		assert_int_equal(json_parse(str_from(messages[i].text), *state, &w.root, NULL), 0);
		spoil_keys(&w, w.root);
		assert_true(w.faults >= 6);
	}
}

static void keys_that_nobody_knows_are_ignored(void **state)
{
	for (size_t i = 0; i < COUNT(messages); i++) {
		char *more =
			arena_printf(*state, "{\"later\":{\"x\":[1]},%s", messages[i].text + 1);
		struct err err = {0};
		union any m;

		assert_int_equal(messages[i].get(str_from(more), *state, &m, &err), 0);
	}
}

static void a_payload_that_is_no_object_is_refused(void **state)
{
	static const char *const bad[] = {"", "[]", "7", "{", "\xff\xfe", "{}x"};

	for (size_t i = 0; i < COUNT(messages); i++)
		for (size_t k = 0; k < COUNT(bad); k++) {
			struct err err = {0};
			union any m;

			assert_int_equal(messages[i].get(str_from(bad[k]), *state, &m, &err), -1);
			assert_int_equal(err.kind, ERR_PROTOCOL);
			assert_non_null(strstr(err.msg, messages[i].name));
		}
}

static void a_value_out_of_its_range_is_named(void **state)
{
	static const struct {
		const char *message, *json, *says;
	} bad[] = {
		{"welcome", "{\"lease_ms\":1,\"acks\":[0,0],\"scanned\":[0,0,0]}", "acks"},
		{"welcome", "{\"lease_ms\":1,\"acks\":[0,0,-1],\"scanned\":[0,0,0]}", "acks"},
		{"welcome", "{\"lease_ms\":1,\"acks\":[0,0,0],\"scanned\":[0,0,\"0\"]}", "scanned"},
		{"inputs", "{\"argv0\":\"a\\u0000b\"}", "argv0"},
		{"inputs", "{\"argv0\":\"a\",\"data\":[7]}", "data"},
		{"inputs",
		 "{\"argv0\":\"a\",\"data\":[{\"src\":\"x\",\"path\":\"y\",\"shard_index\":2,\"shard_count\":2}]}",
		 "shard_index"},
		/* a digest becomes the name of a file */
		{"inputs", "{\"argv0\":\"a\",\"source\":{\"sha256\":\"../../etc/passwd\"}}",
		 "source: key 'sha256'"},
		{"inputs", "{\"argv0\":\"a\",\"source\":{}}", "source"},
		{"inputs",
		 "{\"argv0\":\"a\",\"data\":[{\"path\":\"y\",\"blobs\":[{\"sha256\":\"AB\"}]}]}",
		 "data[0]: key 'sha256'"},
		{"inputs", "{\"argv0\":\"a\",\"data\":[{\"path\":\"y\"}]}", "'blobs' and 'list'"},
		{"inputs",
		 "{\"argv0\":\"a\",\"data\":[{\"path\":\"y\",\"src\":\"x\",\"blobs\":[{\"sha256\":\"" SHA
		 "\"}]}]}",
		 "'blobs' and 'list'"},
		{"inputs",
		 "{\"argv0\":\"a\",\"data\":[{\"path\":\"y\",\"src\":\"x\",\"list\":\"" SHA "\"}]}",
		 "'blobs' and 'list'"},
		{"inputs",
		 "{\"argv0\":\"a\",\"data\":[{\"path\":\"y\",\"from\":\"u\",\"list\":\"../x\"}]}",
		 "key 'list'"},
		{"inputs",
		 "{\"argv0\":\"a\",\"data\":[{\"path\":\"y\",\"blobs\":[{\"sha256\":\"" SHA
		 "\"},{\"sha256\":\"" SHA "\"}]}]}",
		 "blobs"},
		{"inputs", "{\"argv0\":\"a\",\"port\":65536}", "port"},
		{"inputs", "{\"argv0\":\"a\",\"keep\":[1]}", "keep"},
		{"members",
		 "{\"first\":0,\"total\":2,\"roles\":[{\"name\":\"t\",\"first\":1,\"count\":2}],\"addresses\":\"\"}",
		 "first"},
		{"members",
		 "{\"first\":0,\"total\":2,\"roles\":[{\"name\":\"t\",\"first\":0,\"count\":1}],\"addresses\":\"\"}",
		 "total"},
		{"members", "{\"first\":0,\"total\":100001,\"roles\":[],\"addresses\":\"\"}",
		 "total"},
		{"start", "{\"attempt\":0,\"argv\":[\"a\"],\"env\":{},\"grace_ms\":1}", "attempt"},
		{"start", "{\"attempt\":3000000000,\"argv\":[\"a\"],\"env\":{},\"grace_ms\":1}",
		 "attempt"},
		{"start", "{\"attempt\":1,\"argv\":[],\"env\":{},\"grace_ms\":1}", "argv"},
		{"start", "{\"attempt\":1,\"argv\":[1],\"env\":{},\"grace_ms\":1}", "argv"},
		{"start", "{\"attempt\":1,\"argv\":[\"a\"],\"env\":{\"A\":1},\"grace_ms\":1}",
		 "env"},
		{"start", "{\"attempt\":1,\"argv\":[\"a\"],\"env\":{\"\":\"x\"},\"grace_ms\":1}",
		 "env"},
		{"start", "{\"attempt\":1,\"argv\":[\"a\"],\"env\":{\"A=B\":\"x\"},\"grace_ms\":1}",
		 "env"},
		{"start", "{\"attempt\":1,\"argv\":[\"a\"],\"env\":{},\"grace_ms\":1,\"pty\":1}",
		 "pty"},
		{"started", "{\"attempt\":0,\"pid\":1}", "attempt"},
		{"serving", "{\"attempt\":0}", "attempt"},
		{"ready", "{\"ok\":false,\"reason\":\"x\"}", "kind"},
		{"ready", "{\"ok\":false,\"kind\":\"none\",\"reason\":\"x\"}", "kind"},
		{"ready", "{\"ok\":false,\"kind\":\"odd\",\"reason\":\"x\"}", "kind"},
		{"ready", "{\"ok\":false,\"kind\":\"invalid\"}", "reason"},
		{"exit",
		 "{\"attempt\":1,\"code\":256,\"signal\":0,\"oom\":false,\"kind\":\"none\",\"reason\":\"\",\"streams\":[0,0,0]}",
		 "code"},
		{"exit",
		 "{\"attempt\":1,\"code\":0,\"signal\":0,\"oom\":false,\"kind\":\"odd\",\"reason\":\"\",\"streams\":[0,0,0]}",
		 "kind"},
		{"exit",
		 "{\"attempt\":1,\"code\":0,\"signal\":0,\"oom\":false,\"kind\":\"none\",\"reason\":\"\",\"streams\":[0,0,0],\"gaps\":[{\"stream\":\"odd\",\"offset\":1,\"bytes\":1}]}",
		 "stream"},
		{"exit",
		 "{\"attempt\":1,\"code\":0,\"signal\":0,\"oom\":false,\"kind\":\"none\",\"reason\":\"\",\"streams\":[0,0,0],\"gaps\":[0,1,2,3,4,5,6,7,8]}",
		 "gaps"},
		{"metrics", "{\"from\":2,\"to\":1,\"bad\":0,\"samples\":[]}", "to"},
		{"metrics", "{\"from\":0,\"to\":1,\"bad\":0,\"samples\":[[\"a\",1,0]]}",
		 "samples[0]"},
		{"metrics", "{\"from\":0,\"to\":1,\"bad\":0,\"samples\":[[\"a\",1,0,1,1,1]]}",
		 "samples[0]"},
		{"metrics", "{\"from\":0,\"to\":1,\"bad\":0,\"samples\":[[7,1,0,1]]}",
		 "samples[0]"},
		{"metrics", "{\"from\":0,\"to\":1,\"bad\":0,\"samples\":[[\"a\",\"1\",0,1]]}",
		 "samples[0]"},
		{"metrics", "{\"from\":0,\"to\":1,\"bad\":0,\"samples\":[[\"a\",1,null,1]]}",
		 "samples[0]"},
		{"sample", "{\"time_ms\":1,\"values\":{\"a\":\"1\"}}", "values"},
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct err err = {0};
		union any m;
		int rc = message(bad[i].message)->get(str_from(bad[i].json), *state, &m, &err);

		if (rc != -1 || err.kind != ERR_PROTOCOL || !strstr(err.msg, bad[i].says) ||
		    !strstr(err.msg, bad[i].message))
			fail_msg("'%s' gave %d, '%s'", bad[i].json, rc, err.msg);
	}
}

static void inputs_have_defaults_for_all_but_the_command(void **state)
{
	struct err err = {0};
	struct message_inputs m;

	assert_int_equal(message_inputs_get(STR("{\"argv0\":\"true\"}"), *state, &m, &err), 0);
	assert_null(m.source);
	assert_int_equal(m.ndata + m.nmetrics + m.nkeep, 0);
	assert_null(m.metric_prefix);
	assert_int_equal(m.port, 0);
	assert_int_equal(m.sample_ms, 0);
}

static void data_that_names_no_shard_is_taken_whole(void **state)
{
	struct err err = {0};
	struct message_inputs m;

	assert_int_equal(
		message_inputs_get(
			STR("{\"argv0\":\"a\",\"data\":[{\"src\":\"/e\",\"path\":\"y\"}]}"), *state,
			&m, &err),
		0);
	assert_int_equal(m.data[0].shard_index, 0);
	assert_int_equal(m.data[0].shard_count, 1);
}

static void a_command_ends_with_null_and_null_stands_for_missing(void **state)
{
	struct err err = {0};
	struct message_start m;

	assert_int_equal(
		message_start_get(
			STR("{\"attempt\":2,\"argv\":[\"a\",\"c\"],\"env\":{\"A\":\"1\"},\"grace_ms\":3,\"port\":null,\"cwd\":null}"),
			*state, &m, &err),
		0);
	assert_string_equal(m.argv[1], "c");
	assert_null(m.argv[2]);
	assert_string_equal(m.env[0].name, "A");
	assert_int_equal(m.port, 0);
	assert_string_equal(m.cwd, "");
	assert_int_equal(message_start_get(STR("{\"attempt\":null}"), *state, &m, &err), -1);
	assert_string_equal(err.msg, "start: key 'attempt' is missing");
}

static void a_goodbye_needs_no_reason(void **state)
{
	struct err err = {0};
	struct message_bye m;

	assert_int_equal(message_bye_get(STR("{}"), *state, &m, &err), 0);
	assert_string_equal(m.reason, "");
}

static void a_refusal_of_a_kind_nobody_knows_is_no_reason_to_leave(void **state)
{
	struct err err = {0};
	struct message_refuse m;

	assert_int_equal(message_refuse_get(STR("{\"kind\":\"whatever\"}"), *state, &m, &err), 0);
	assert_int_equal(m.kind, ERR_NONE);
	assert_string_equal(m.reason, "");
}

static void a_hello_of_another_version_is_unavailable_whatever_else_it_says(void **state)
{
	struct err err = {0};
	struct message_hello m;

	assert_int_equal(message_hello_get(STR("{\"proto\":2,\"who\":7}"), *state, &m, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_int_equal(message_hello_get(STR("{\"proto\":\"2\"}"), *state, &m, &err), -1);
	assert_int_equal(err.kind, ERR_PROTOCOL);
}

static void the_longest_hello_fits_in_its_frame(void **state)
{
	struct exit_report e = {
		.attempt = INT32_MAX, .code = -1, .signal = 64, .kind = ERR_UNAVAILABLE};
	char name[41], boot[37], token[65];
	struct message_hello h = {.proto = LINK_PROTO,
				  .run = name,
				  .node = name,
				  .token = token,
				  .boot_id = boot,
				  .pid = INT32_MAX,
				  .version = "1000.1000.1000",
				  .attempt = INT32_MAX,
				  .holds = HOLDS_OTHER_BOOT,
				  .exit = &e,
				  .address = "2001:0db8:1234:5678:9abc:def0:255.255.255.255",
				  .interface = "a_name_of_15.xx"};
	struct buf b;

	(void)state;
	memset(name, 'n', sizeof(name));
	memset(boot, 'b', sizeof(boot));
	memset(token, 't', sizeof(token));
	name[40] = boot[36] = token[64] = '\0';
	memset(e.reason, '\1', sizeof(e.reason) - 1); /* six bytes each in JSON */
	for (int s = 0; s < STREAMS; s++)
		h.streams[s] = e.streams[s] = INT64_MAX;
	for (e.ngaps = 0; e.ngaps < MESSAGE_MAX_GAPS; e.ngaps++)
		e.gaps[e.ngaps] = (struct gap){STREAM_METRICS, INT64_MAX, INT64_MAX};
	buf_init(&b, MESSAGE_HELLO_MAX);
	message_hello_put(&h, &b);
	assert_false(b.overflow);
	buf_release(&b);
}

static void figures_are_encoded_one_by_one_as_well(void **state)
{
	struct message_point points[] = {{STR("loss"), 0.5, 3, 1000, 0},
					 {STR("a\0b"), (double)NAN, -1, 1001, 50}};
	struct message_metrics m = {.from = 1, .to = 2, .samples = points, .nsamples = 2};
	struct message_metrics back;
	struct err err = {0};
	struct buf encoded, one, other;

	buf_init(&encoded, 1000);
	buf_init(&one, 1000);
	buf_init(&other, 1000);
	message_point_put(&points[0], &encoded);
	message_point_put(&points[1], &encoded);
	message_metrics_put(&m, &one);
	message_metrics_put(
		&(struct message_metrics){.from = 1, .to = 2, .encoded = buf_str(&encoded)},
		&other);
	assert_string_equal(one.p, other.p);
	assert_int_equal(message_metrics_get(buf_str(&one), *state, &back, &err), 0);
	/* A name that cannot be stored is counted by whoever stores it, not refused. */
	assert_int_equal(back.samples[1].name.n, 3);
	assert_true(isnan(back.samples[1].value));
	assert_int_equal(back.samples[1].total, 50);
	buf_release(&encoded);
	buf_release(&one);
	buf_release(&other);
}

static void an_acknowledgement_is_two_offsets(void **state)
{
	struct message_ack m = {UINT64_C(0x0102030405060708), 9}, back;
	uint8_t out[MESSAGE_ACK_BYTES + 1] = {0};
	struct err err = {0};

	(void)state;
	message_ack_put(&m, out);
	assert_int_equal(out[0], 8);
	assert_int_equal(message_ack_get((struct str){(char *)out, MESSAGE_ACK_BYTES}, &back, &err),
			 0);
	assert_true(back.stored == m.stored && back.scanned == 9);
	for (size_t n = 0; n <= sizeof(out); n++)
		if (n != MESSAGE_ACK_BYTES) {
			assert_int_equal(message_ack_get((struct str){(char *)out, n}, &back, &err),
					 -1);
			assert_int_equal(err.kind, ERR_PROTOCOL);
		}
}

static void reasons_are_joined_and_cut(void **state)
{
	struct exit_report e = {0};

	(void)state;
	exit_add_reason(&e, "one");
	exit_add_reason(&e, "two");
	assert_string_equal(e.reason, "one; two");
	for (int i = 0; i < 50; i++)
		exit_add_reason(&e, "a reason");
	assert_int_equal(strlen(e.reason), MESSAGE_REASON - 1);
}

static void a_reason_longer_than_its_place_is_cut(void **state)
{
	char *json = arena_printf(
		*state,
		"{\"attempt\":1,\"code\":0,\"signal\":0,\"oom\":false,\"kind\":\"none\",\"reason\":\"%0300d\",\"streams\":[0,0,0]}",
		7);
	struct err err = {0};
	struct exit_report e;

	assert_int_equal(message_exit_get(str_from(json), *state, &e, &err), 0);
	assert_int_equal(strlen(e.reason), MESSAGE_REASON - 1);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	static const struct CMUnitTest tests[] = {
		CASE(every_message_is_read_as_it_was_written),
		CASE(a_missing_key_or_one_of_another_type_is_refused_by_name),
		CASE(keys_that_nobody_knows_are_ignored),
		CASE(a_payload_that_is_no_object_is_refused),
		CASE(a_value_out_of_its_range_is_named),
		CASE(inputs_have_defaults_for_all_but_the_command),
		CASE(data_that_names_no_shard_is_taken_whole),
		CASE(a_command_ends_with_null_and_null_stands_for_missing),
		CASE(a_goodbye_needs_no_reason),
		CASE(a_refusal_of_a_kind_nobody_knows_is_no_reason_to_leave),
		CASE(a_hello_of_another_version_is_unavailable_whatever_else_it_says),
		CASE(the_longest_hello_fits_in_its_frame),
		CASE(figures_are_encoded_one_by_one_as_well),
		CASE(an_acknowledgement_is_two_offsets),
		CASE(reasons_are_joined_and_cut),
		CASE(a_reason_longer_than_its_place_is_cut),
	};

	return cmocka_run_group_tests_name("link: message", tests, NULL, NULL);
}
