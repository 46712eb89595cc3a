#include "unit.h"

#include "fake_master.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "agent/agent.h"
#include "agent/enrol.h"
#include "agent/shim/status.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/rand.h"
#include "base/str.h"
#include "fmt/jsonw.h"
#include "sys/cgroup.h"
#include "sys/child.h"
#include "sys/proctree.h"

#define STREAM_MAX (256 * 1024 * 1024)

extern char **environ;

int fake_role(int argc, char **argv)
{
	if (argc >= 4 && strcmp(argv[2], "--enrol") == 0)
		return agent_enrol_main(argv[3]);
	if (argc >= 3 && strcmp(argv[1], "node-agent") == 0)
		return agent_main(argv[2]);
	if (argc >= 3 && strcmp(argv[1], "master") == 0) {
		/* What revive starts: leave a sign. */
		const char *home = getenv("REGATTA_HOME"), *mark = getenv(PROC_MARK);
		char *path = path_join(home ? home : "/nowhere", "revived");

		return file_write_atomic(path, str_from(mark ? "marked" : argv[2]), 0600, false,
					 NULL) < 0;
	}
	return -1;
}

int fake_setup(void **state)
{
	struct fake *f = xcalloc(1, sizeof(*f));
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	void *dir;

	if (unit_make_dir(&dir) < 0)
		return -1;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGPIPE, SIG_IGN);
	*f = (struct fake){
		.dir = dir, .node = path_join(dir, "node"), .config = "", .env = "", .fd = -1};
	f->arena = arena_new();
	buf_init(&f->rx, 4 * FRAME_MAX_PAYLOAD);
	buf_init(&f->samples, 1 << 20);
	buf_init(&f->exec_out, STREAM_MAX);
	buf_init(&f->exec_err, STREAM_MAX);
	buf_init(&f->asked_in, STREAM_MAX);
	for (int s = 0; s < FAKE_STREAMS; s++)
		buf_init(&f->out[s], STREAM_MAX);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/link.sock", f->dir);
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(f->listener, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    listen(f->listener, 8) < 0 || mkdir(f->node, 0700) < 0)
		return -1;
	*state = f;
	return 0;
}

/* Kills every process that carries the mark of this test: a failed test may leave some. */
static void kill_marked(struct fake *f)
{
	char *entry = xasprintf("%s=%s", PROC_MARK, f->mark ? f->mark : "?");

	for (int i = 0; f->mark && i < 500; i++) {
		struct proc_list l = {0};

		proc_with_env(entry, true, &l);
		proc_kill(&l);
		size_t n = l.n;

		proc_list_release(&l);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (n == 0)
			break;
		poll(NULL, 0, 5);
	}
	free(entry);
}

int fake_teardown(void **state)
{
	struct fake *f = *state;
	struct cgroup cg;
	char name[64];

	kill_marked(f);
	snprintf(name, sizeof(name), "regatta.test.%s", f->mark ? f->mark : "none");
	cgroup_place(name, &cg);
	cgroup_remove(&cg);
	fake_hang_up(f);
	close(f->listener);
	arena_free(f->arena);
	buf_release(&f->rx);
	buf_release(&f->samples);
	buf_release(&f->exec_out);
	buf_release(&f->exec_err);
	buf_release(&f->asked_in);
	for (int s = 0; s < FAKE_STREAMS; s++)
		buf_release(&f->out[s]);
	file_remove_tree(f->dir, NULL);
	free(f->dir);
	free(f->node);
	free(f);
	return 0;
}

static void write_config(struct fake *f)
{
	char *path = path_join(f->node, "agent.json");
	uint8_t bytes[8];
	char mark[17], name[64];
	struct cgroup cg = {0};

	if (!f->mark) {
		rand_bytes(bytes, sizeof(bytes));
		hex_encode(bytes, sizeof(bytes), mark);
		f->mark = arena_strdup(f->arena, mark);
	}
	snprintf(name, sizeof(name), "regatta.test.%s", f->mark);
	if (!f->no_cgroup)
		cgroup_place(name, &cg);
	char *text = xasprintf(
		"{\"run\":\"r\",\"node\":\"n-0\",\"token\":\"secret\",\"link_dir\":\"%s\",\"link_name\":\"link.sock\",\"proto\":1,\"mark\":\"%s\",\"home\":\"%s\",\"cgroup\":\"%s\",\"cgroup_memory\":\"%s\"%s}\n",
		f->dir, f->mark, f->dir, cg.unified, cg.memory, f->config);

	/* As the driver does: one that says the same stays, and with it the lock of a living agent. */
	const char *want = f->raw_config ? f->raw_config : text;
	struct buf now;

	buf_init(&now, 1 << 20);
	if (f->raw_config || file_read(path, &now, NULL) < 0 ||
	    !str_starts(buf_str(&now), str_from(want)))
		assert_int_equal(file_write_atomic(path, str_from(want), 0600, false, NULL), 0);
	buf_release(&now);
	free(text);
	free(path);
}

void fake_agent(struct fake *f)
{
	char *log = path_join(f->dir, "agent.log");
	char *mark, *path;
	struct err err = {0};

	char *file = path_join(f->dir, "enrol.json");

	if (f->enrol)
		assert_int_equal(file_write(file, str_from(f->enrol), 0600, NULL), 0);
	else
		write_config(f);
	mark = xasprintf("%s=%s", PROC_MARK, f->mark ? f->mark : "");
	path = xasprintf("PATH=%s", getenv("PATH"));
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	const char *const argv[] = {"regatta", "node-agent", f->enrol ? "--enrol" : f->node,
				    f->enrol ? file : NULL, NULL};
	const char *const env[] = {path,	 mark, "HOME=/root", "ASAN_OPTIONS=detect_leaks=1",
				   f->agent_env, NULL};
	struct child_spec spec = {.file = f->exe ? f->exe : "/proc/self/exe",
				  .argv = argv,
				  .env = env,
				  .in = -1,
				  .out = fd,
				  .err = fd,
				  .session = true};

	assert_int_equal(child_spawn(&spec, &f->agent, &err), 0);
	close(fd);
	free(mark);
	free(path);
	free(log);
	free(file);
}

static bool readable(int fd, int64_t until)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int64_t left = until - clock_boot_ms();

	return poll(&p, 1, left > 0 ? (int)left : 0) > 0;
}

static void send_frame(struct fake *f, enum frame_type type, uint16_t channel, struct str payload)
{
	uint8_t header[FRAME_HEADER];

	frame_header(header, (uint8_t)type, 0, channel, (uint32_t)payload.n);
	if (file_write_all(f->fd, header, sizeof(header), NULL) < 0 ||
	    file_write_all(f->fd, payload.p, payload.n, NULL) < 0)
		f->closed = true;
}

void fake_send(struct fake *f, enum frame_type type, const char *json)
{
	if (type == FRAME_INPUTS && json[0] == '{')
		f->inputs = arena_strdup(f->arena, json);
	send_frame(f, type, 0, str_from(json));
}

void fake_send_on(struct fake *f, enum frame_type type, uint16_t channel, const char *payload)
{
	send_frame(f, type, channel, str_from(payload));
}

void fake_ack(struct fake *f, enum stream s)
{
	uint8_t ack[16];

	data_offset_put(ack, f->out[s].n);
	data_offset_put(ack + 8, f->scanned[s]);
	send_frame(f, FRAME_ACK, (uint16_t)s, (struct str){(char *)ack, sizeof(ack)});
}

static void take_data(struct fake *f, const struct frame *fr)
{
	uint64_t offset;
	struct str bytes;

	assert_true(fr->channel < FAKE_STREAMS);
	assert_true(data_payload(fr->payload, &offset, &bytes));
	struct buf *b = &f->out[fr->channel];

	assert_true(offset <= b->n); /* never a hole */
	if (offset + bytes.n <= b->n)
		return;
	size_t skip = b->n - (size_t)offset;

	buf_add(b, bytes.p + skip, bytes.n - skip);
	if (!f->hold_acks)
		fake_ack(f, (enum stream)fr->channel);
}

static void take_metrics(struct fake *f, const struct frame *fr, const struct doc *d)
{
	const struct doc *samples = doc_array(d, "samples");

	if ((uint64_t)doc_int(d, "from", -1) != f->scanned[fr->channel])
		return;
	f->scanned[fr->channel] = (uint64_t)doc_int(d, "to", 0);
	f->bad += (uint64_t)doc_int(d, "bad", 0);
	assert_non_null(samples);
	for (size_t i = 0; i < samples->array.n; i++) {
		struct doc **v = samples->array.v[i]->array.v;

		buf_printf(&f->samples, "%s=%g@%" PRId64 ";", v[0]->s.p,
			   v[1]->type == DOC_INT ? (double)v[1]->i : v[1]->f, v[2]->i);
	}
	if (!f->hold_acks)
		fake_ack(f, (enum stream)fr->channel);
}

static void take_exec(struct fake *f, const struct frame *fr)
{
	struct str bytes = {fr->payload.p + 1, fr->payload.n - 1};

	buf_addstr(fr->payload.p[0] == 'e' ? &f->exec_err : &f->exec_out, bytes);
	if (!f->hold_exec)
		fake_send_on(
			f, FRAME_EXEC_CONTROL, fr->channel,
			arena_printf(f->arena, "{\"taken\":%zu}", f->exec_out.n + f->exec_err.n));
}

static void take(struct fake *f, const struct frame *fr)
{
	f->count[fr->type]++;
	if (fr->type == FRAME_EXEC_OUTPUT) {
		take_exec(f, fr);
		return;
	}
	if (fr->type == FRAME_EXEC_INPUT) {
		buf_addstr(&f->asked_in, fr->payload);
		f->asked_in_ended |= fr->payload.n == 0;
		return;
	}
	if (fr->type == FRAME_DATA) {
		take_data(f, fr);
		return;
	}
	struct err err = {0};

	if (json_parse(fr->payload, f->arena, &f->last[fr->type], &err) < 0)
		fail_msg("frame %s is not JSON: %s", frame_type_name(fr->type), err.msg);
	if (fr->type == FRAME_METRICS)
		take_metrics(f, fr, f->last[fr->type]);
	if (fr->type == FRAME_PING && !f->hold_pongs)
		fake_send(f, FRAME_PONG, "{}");
}

/* One read; false at the deadline or the end. */
static bool pump(struct fake *f, int64_t until)
{
	struct frame fr;
	size_t used;

	if (f->fd < 0 || f->closed || !readable(f->fd, until))
		return false;
	char *room = buf_reserve(&f->rx, 256 * 1024);

	assert_non_null(room);
	ssize_t n = read(f->fd, room, 256 * 1024);

	if (n <= 0) {
		f->closed = true;
		return false;
	}
	buf_commit(&f->rx, (size_t)n);
	size_t at = 0;
	int r;

	while ((r = frame_decode((struct str){f->rx.p + at, f->rx.n - at}, &fr, &used)) > 0) {
		take(f, &fr);
		at += used;
	}
	assert_true(r == 0);
	buf_drop_front(&f->rx, at);
	return true;
}

const struct doc *fake_wait(struct fake *f, enum frame_type type)
{
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;

	while (!f->last[type] || f->count[type] == 0)
		if (!pump(f, until))
			fail_msg("no %s came%s", frame_type_name((uint8_t)type),
				 f->closed ? ": the agent closed" : "");
	f->count[type] = 0;
	return f->last[type];
}

void fake_wait_bytes(struct fake *f, enum stream s, size_t bytes)
{
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;

	while (f->out[s].n < bytes)
		if (!pump(f, until))
			fail_msg("stream %s has only %zu of %zu bytes", stream_name(s), f->out[s].n,
				 bytes);
}

void fake_wait_exec(struct fake *f, size_t bytes)
{
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;

	while (f->exec_out.n + f->exec_err.n < bytes)
		if (!pump(f, until))
			fail_msg("the command wrote only %zu of %zu bytes%s",
				 f->exec_out.n + f->exec_err.n, bytes,
				 f->last[FRAME_EXEC_CLOSE] ? ": it has ended" : "");
}

void fake_wait_samples(struct fake *f, const char *text)
{
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;

	while (!f->samples.p || !strstr(f->samples.p, text))
		if (!pump(f, until))
			fail_msg("no sample '%s' in '%s'", text, f->samples.p ? f->samples.p : "");
}

void fake_wait_close(struct fake *f)
{
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;

	while (pump(f, until))
		;
	assert_true(f->closed);
	fake_hang_up(f);
}

void fake_hang_up(struct fake *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	f->closed = false;
	buf_reset(&f->rx);
	memset(f->count, 0, sizeof(f->count));
	memset(f->last, 0, sizeof(f->last));
}

static const struct doc *accept_first(struct fake *f, enum frame_type type)
{
	fake_hang_up(f);
	if (!readable(f->listener, clock_boot_ms() + FAKE_WAIT_MS))
		fail_msg("no agent dialled");
	f->fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(f->fd >= 0);
	return fake_wait(f, type);
}

const struct doc *fake_accept(struct fake *f)
{
	return accept_first(f, FRAME_HELLO);
}

const struct doc *fake_accept_enrol(struct fake *f)
{
	return accept_first(f, FRAME_ENROL);
}

void fake_welcome(struct fake *f, int64_t lease_ms)
{
	struct message_welcome m = {.lease_ms = lease_ms};
	struct buf json;

	for (int s = 0; s < FAKE_STREAMS; s++) {
		m.acks[s] = f->out[s].n;
		m.scanned[s] = f->scanned[s];
	}
	buf_init(&json, MESSAGE_HELLO_MAX);
	message_welcome_put(&m, &json);
	fake_send(f, FRAME_WELCOME, json.p);
	buf_release(&json);
	if (f->inputs) /* they follow every welcome */
		fake_send(f, FRAME_INPUTS, f->inputs);
}

const struct doc *fake_meet(struct fake *f)
{
	const struct doc *hello = fake_accept(f);

	fake_welcome(f, 60000);
	return hello;
}

void fake_ready(struct fake *f)
{
	fake_agent(f);
	fake_meet(f);
	fake_send(
		f, FRAME_INPUTS,
		"{\"data\":[],\"argv0\":\"sh\",\"path\":\"/usr/bin:/bin\",\"address\":\"127.0.0.1\",\"metrics\":[{\"name\":\"loss\",\"pattern\":\"loss=(?<value>[-+.0-9eE]+)\"}],\"sample_ms\":0,\"keep\":[]}");
	assert_true(doc_bool(fake_wait(f, FRAME_READY), "ok", false));
}

pid_t fake_start_with(struct fake *f, const char *script, const char *more)
{
	struct jsonw w;
	struct buf b;

	buf_init(&b, FRAME_MAX_PAYLOAD);
	jsonw_init(&w, &b);
	jsonw_str(&w, str_from(script));
	char *json = xasprintf(
		"{\"attempt\":1,\"argv\":[\"sh\",\"-c\",%s],\"env\":{\"PATH\":\"/usr/bin:/bin\",\"DIR\":\"%s\"%s},\"cwd\":\"\",\"grace_ms\":300%s}",
		b.p, f->dir, f->env, more);

	fake_send(f, FRAME_START, json);
	free(json);
	buf_release(&b);
	return (pid_t)fake_int(fake_wait(f, FRAME_STARTED), "pid");
}

pid_t fake_start(struct fake *f, const char *script)
{
	return fake_start_with(f, script, "");
}

const struct doc *fake_end(struct fake *f)
{
	const struct doc *e = fake_wait(f, FRAME_EXIT);

	fake_wait(f, FRAME_COLLECTED);
	const struct doc *sizes = doc_array(e, "streams");

	for (size_t s = 0; s < sizes->array.n; s++) {
		size_t size = (size_t)sizes->array.v[s]->i;

		/* EXIT and COLLECTED overtake DATA and METRICS. */
		fake_wait_bytes(f, (enum stream)s, size);
		while (f->scanned[s] < size && pump(f, clock_boot_ms() + FAKE_WAIT_MS))
			continue;
		assert_int_equal(f->out[s].n, size);
		assert_int_equal(f->scanned[s], size);
	}
	return e;
}

int fake_agent_gone(struct fake *f)
{
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;
	int status;

	for (;;) {
		pid_t pid = waitpid(f->agent, &status, WNOHANG);

		if (pid == f->agent)
			return status;
		if (clock_boot_ms() > until)
			fail_msg("the agent does not leave");
		poll(NULL, 0, 1);
	}
}

void fake_release(struct fake *f)
{
	char *out = path_join(f->node, "out"), *work = path_join(f->node, "work");
	struct stat st;

	fake_send(f, FRAME_RELEASE, "{}");
	int status = fake_agent_gone(f);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* What takes space is gone; the rest is the driver's. */
	assert_true(stat(out, &st) < 0 || st.st_size == 0);
	assert_false(file_exists(work));
	free(out);
	free(work);
}

pid_t fake_shim(struct fake *f)
{
	char *path = xstrdup(f->node);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct status st;

	assert_int_equal(status_read(fd, &st, NULL), 0);
	assert_true(st.shim.pid > 0);
	close(fd);
	free(path);
	return st.shim.pid;
}

void fake_gone(pid_t pid)
{
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;
	struct proc_info p;

	while (proc_read(pid, &p) && p.state != 'Z' && p.state != 'X') {
		if (clock_boot_ms() > until)
			fail_msg("process %d is still alive", (int)pid);
		poll(NULL, 0, 1);
	}
	waitpid(pid, NULL, WNOHANG);
}

void fake_kill(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	fake_gone(pid);
}

void fake_kill_both(struct fake *f)
{
	pid_t shim = fake_shim(f);

	kill(f->agent, SIGSTOP);
	fake_kill(shim);
	fake_kill(f->agent);
}

char *fake_below(struct fake *f, const char *name)
{
	return arena_printf(f->arena, "%s/%s", f->dir, name);
}

char *fake_in_node(struct fake *f, const char *name)
{
	return arena_printf(f->arena, "%s/%s", f->node, name);
}

void fake_touch(const char *path)
{
	assert_int_equal(file_write_atomic(path, STR("x\n"), 0600, false, NULL), 0);
}

bool fake_alive(pid_t pid)
{
	struct proc_info p;

	return proc_read(pid, &p) && p.state != 'Z';
}

const char *fake_file(struct fake *f, const char *path)
{
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;
	struct buf b;

	buf_init(&b, 1 << 20);
	while (file_read(path, &b, NULL) < 0 || b.n == 0) {
		if (clock_boot_ms() > until)
			fail_msg("'%s' does not appear", path);
		poll(NULL, 0, 1);
	}
	const char *text = arena_strdup(f->arena, b.p);

	buf_release(&b);
	return text;
}

pid_t fake_pid_in(struct fake *f, const char *name)
{
	const char *text = fake_file(f, fake_below(f, name));
	int64_t pid;

	assert_true(str_to_i64(str_trim(str_from(text)), &pid));
	return (pid_t)pid;
}

void fake_output_is_copy(struct fake *f, const char *name)
{
	struct buf want;

	buf_init(&want, 256 * 1024 * 1024);
	assert_int_equal(file_read(fake_below(f, name), &want, NULL), 0);
	assert_int_equal(f->out[STREAM_OUT].n, want.n);
	assert_memory_equal(f->out[STREAM_OUT].p, want.p, want.n);
	buf_release(&want);
}

int64_t fake_int(const struct doc *d, const char *key)
{
	const struct doc *v = doc_get(d, key);

	if (!v || v->type != DOC_INT)
		fail_msg("key '%s' is not a number", key);
	return v->i;
}

const char *fake_str(const struct doc *d, const char *key)
{
	const struct doc *v = doc_get(d, key);

	if (!v || v->type != DOC_STRING)
		fail_msg("key '%s' is not a text", key);
	return v->s.p;
}
