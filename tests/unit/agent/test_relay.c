/* The relay of output to the master: what it keeps until it is stored, and which acknowledgements count. */
#include "unit.h"

#include <fcntl.h>
#include <string.h>

#include "agent/relay.h"
#include "agent/shim/supervisor.h"

#define BLOCK 4096

/* A spool of three steps, each with one block that is not a hole. */
static int open_spool(void **state)
{
	char block[BLOCK];
	int fd = open(unit_path(state, "out"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 3; i++)
		assert_int_equal(pwrite(fd, block, BLOCK, (off_t)i * RELAY_PUNCH), BLOCK);
	assert_int_equal(ftruncate(fd, (off_t)3 * RELAY_PUNCH), 0);
	return fd;
}

static char byte_at(int fd, off_t offset)
{
	char c = 0;

	assert_int_equal(pread(fd, &c, 1, offset), 1);
	return c;
}

struct spooled {
	struct relay r;
	int dir, fd;
};

static struct spooled make(void **state, uint64_t sent)
{
	struct spooled s = {.fd = open_spool(state),
			    .dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

	relay_open(&s.r, s.dir, STREAMS);
	s.r.s[STREAM_OUT].sent = sent;
	return s;
}

static void drop(struct spooled *s)
{
	relay_close(&s->r);
	close(s->fd);
	close(s->dir);
}

/* Rule: a byte leaves the node's disk when it is on the master's and its samples are, too. */
static void what_is_not_stored_and_scanned_stays_in_the_spool(void **state)
{
	struct spooled s = make(state, (uint64_t)3 * RELAY_PUNCH);

	relay_ack(&s.r, STREAM_OUT, (uint64_t)2 * RELAY_PUNCH, 0);
	assert_int_equal(byte_at(s.fd, 0), 'x');
	assert_int_equal(s.r.s[STREAM_OUT].punched, 0);
	relay_ack(&s.r, STREAM_OUT, (uint64_t)2 * RELAY_PUNCH, RELAY_PUNCH);
	assert_int_equal(s.r.s[STREAM_OUT].punched, RELAY_PUNCH);
	assert_int_equal(byte_at(s.fd, RELAY_PUNCH), 'x');
	/* Scanned by the agent, and not yet stored by the master. */
	relay_ack(&s.r, STREAM_OUT, (uint64_t)2 * RELAY_PUNCH, (uint64_t)3 * RELAY_PUNCH);
	assert_int_equal(s.r.s[STREAM_OUT].punched, (uint64_t)2 * RELAY_PUNCH);
	assert_int_equal(byte_at(s.fd, (off_t)2 * RELAY_PUNCH), 'x');
	drop(&s);
}

static void an_acknowledgement_of_what_was_not_sent_is_not_believed(void **state)
{
	struct spooled s = make(state, 100);
	uint64_t told[STREAMS];

	relay_ack(&s.r, STREAM_OUT, 101, 0);
	assert_int_equal(s.r.s[STREAM_OUT].acked, 0);
	relay_ack(&s.r, STREAM_OUT, 100, 0);
	assert_int_equal(s.r.s[STREAM_OUT].acked, 100);
	relay_ack(&s.r, STREAM_OUT, 99, 0); /* an older one */
	assert_int_equal(s.r.s[STREAM_OUT].acked, 100);
	/* The shim, which waits for room, hears the same. */
	s.r.s[STREAM_OUT].sent = (uint64_t)3 * RELAY_PUNCH;
	relay_ack(&s.r, STREAM_OUT, (uint64_t)3 * RELAY_PUNCH, 0);
	int fd = openat(s.dir, SUPERVISOR_ACKED, O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, told, sizeof(told)), sizeof(told));
	assert_int_equal(told[STREAM_OUT], (uint64_t)3 * RELAY_PUNCH);
	close(fd);
	drop(&s);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
	static const struct CMUnitTest tests[] = {
		CASE(what_is_not_stored_and_scanned_stays_in_the_spool),
		CASE(an_acknowledgement_of_what_was_not_sent_is_not_believed),
	};

	return cmocka_run_group_tests_name("agent: relay", tests, NULL, NULL);
}
