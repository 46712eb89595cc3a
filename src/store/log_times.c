#include "store/log_times.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "store/logfile.h"

#define RECORD 36 /* "%020u %014d\n" */
#define OFFSET_DIGITS 20
#define TIME_DIGITS 14
#define TIME_MAX INT64_C(99999999999999)
#define NAME_MAX_BYTES 128
#define PAUSE_MS 10
#define PAUSE_DOUBLES 65536 /* records */
#define PAUSE_SHIFTS 20	    /* a pause of three hours is long enough */

struct record {
	uint64_t offset;
	int64_t ms;
};

static bool get_number(const char *p, int digits, uint64_t *ret)
{
	uint64_t v = 0;

	for (int i = 0; i < digits; i++) {
		if (p[i] < '0' || p[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(p[i] - '0');
	}
	*ret = v;
	return true;
}

/* False if the record does not exist or is damaged. */
static bool get_record(int fd, uint64_t i, struct record *ret)
{
	char text[RECORD];
	uint64_t ms;
	size_t n;

	if (fd < 0 || file_pread_full(fd, text, RECORD, (int64_t)(i * RECORD), &n, NULL) < 0 ||
	    n != RECORD || text[OFFSET_DIGITS] != ' ' || text[RECORD - 1] != '\n' ||
	    !get_number(text, OFFSET_DIGITS, &ret->offset) ||
	    !get_number(text + OFFSET_DIGITS + 1, TIME_DIGITS, &ms))
		return false;
	ret->ms = (int64_t)ms;
	return true;
}

static int open_times(const char *logs_dir, const char *log, int flags)
{
	char name[NAME_MAX_BYTES];

	snprintf(name, sizeof(name), "%s.times", log);
	return logfile_open_below(logs_dir, name, flags);
}

static uint64_t count_records(int fd)
{
	off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;

	return size > 0 ? (uint64_t)size / RECORD : 0;
}

/* Records of bytes that were lost in a power failure are dropped: those bytes are sent again. */
static bool load(struct log_times *t, int fd, uint64_t size)
{
	struct record last = {0};

	for (t->records = count_records(fd); t->records; t->records--)
		if (get_record(fd, t->records - 1, &last) && last.offset <= size)
			break;
	t->last_ms = t->records ? last.ms : 0;
	t->loaded = ftruncate(fd, (off_t)(t->records * RECORD)) == 0;
	return t->loaded;
}

static int64_t pause_ms(uint64_t records)
{
	uint64_t shift = records / PAUSE_DOUBLES;

	return (int64_t)PAUSE_MS << (shift < PAUSE_SHIFTS ? shift : PAUSE_SHIFTS);
}

static bool is_due(const struct log_times *t, int64_t now_ms)
{
	return t->records == 0 || now_ms - t->last_ms >= pause_ms(t->records);
}

void log_times_grow(struct log_times *t, const char *logs_dir, const char *log, uint64_t size,
		    int64_t now_ms)
{
	char text[RECORD + 1];

	if (now_ms < 0 || now_ms > TIME_MAX || (t->loaded && !is_due(t, now_ms)))
		return;
	CLEANUP(close_fdp) int fd = open_times(logs_dir, log, O_RDWR | O_CREAT);
	if (fd < 0 || (!t->loaded && !load(t, fd, size)) || !is_due(t, now_ms))
		return;
	snprintf(text, sizeof(text), "%0*" PRIu64 " %0*" PRId64 "\n", OFFSET_DIGITS, size,
		 TIME_DIGITS, now_ms);
	/* An incomplete record is overwritten by the next one. */
	if (pwrite(fd, text, RECORD, (off_t)(t->records * RECORD)) != RECORD)
		return;
	t->records++;
	t->last_ms = now_ms;
}

uint64_t log_times_find(const char *logs_dir, const char *log, uint64_t size, int64_t since_ms)
{
	CLEANUP(close_fdp) int fd = open_times(logs_dir, log, O_RDONLY);
	uint64_t low = 0, records = count_records(fd), high = records;
	struct record at;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (get_record(fd, middle, &at) && at.ms < since_ms)
			low = middle + 1;
		else
			high = middle;
	}
	/* What came before the first record is not known to be older. */
	if (low == 0)
		return 0;
	if (low == records || !get_record(fd, low, &at) || at.offset > size)
		return size;
	return at.offset;
}

/* Goes past all records up to pos: of several at one offset the last one counts, because the
 * bytes of the others were not stored. */
static void advance(struct log_times_reader *r, uint64_t pos, uint64_t *ret_end)
{
	struct record at;

	*ret_end = UINT64_MAX;
	for (; get_record(r->fd, r->next, &at); r->next++) {
		if (at.offset > pos) {
			*ret_end = at.offset;
			return;
		}
		r->now_ms = at.ms;
	}
}

void log_times_reader_init(struct log_times_reader *r, const char *logs_dir, const char *log,
			   uint64_t pos)
{
	struct record at;

	*r = (struct log_times_reader){.fd = open_times(logs_dir, log, O_RDONLY),
				       .now_ms = LOG_TIME_UNKNOWN};
	uint64_t low = 0, high = count_records(r->fd);
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (get_record(r->fd, middle, &at) && at.offset <= pos)
			low = middle + 1;
		else
			high = middle;
	}
	r->next = low ? low - 1 : 0;
}

void log_times_reader_release(struct log_times_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

int64_t log_times_at(struct log_times_reader *r, const char *logs_dir, const char *log,
		     uint64_t pos, uint64_t *ret_end)
{
	if (r->fd < 0)
		r->fd = open_times(logs_dir, log, O_RDONLY);
	advance(r, pos, ret_end);
	return r->now_ms;
}
