/* An instance of EC2 asks its metadata service who it is. */
#include "unit.h"

#include <string.h>

#include "../driver/aws/fake_http.h"
#include "agent/config.h"
#include "agent/enrol_config.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "link/layout.h"
#include "link/message.h"

struct world {
	char *dir;
	struct fake_http http;
	struct arena *a;
	int late;	   /* so many requests are not answered well: it has just booted */
	const char *index; /* launch index; NULL: it has none */
};

/* A token first, then what was asked for. */
static bool metadata(struct fake_http *h, int fd, int nth, const struct fake_asked *asked)
{
	const struct world *w = h->ctx;
	const char *token = fake_header(asked, "X-aws-ec2-metadata-token");
	const struct {
		const char *path, *text;
	} pages[] = {{"GET /latest/meta-data/instance-id ", "i-0abc\n"},
		     {"GET /latest/meta-data/ami-launch-index ", w->index},
		     {"GET /latest/meta-data/local-ipv4 ", "172.31.9.9"}};
	int status = token && strcmp(token, "t-1") == 0 ? 404 : 401;
	const char *text = "";

	if (nth < w->late)
		status = 503;
	else if (fake_is(asked, "PUT /latest/api/token ")) {
		status = 200;
		text = "t-1";
	}
	for (size_t i = 0; i < COUNT(pages); i++)
		if (status == 404 && pages[i].text && fake_is(asked, pages[i].path)) {
			status = 200;
			text = pages[i].text;
		}
	fake_say(fd, status, "", text);
	return true;
}

static int make(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	if (unit_make_dir((void **)&w->dir) < 0)
		return -1;
	w->a = arena_new();
	w->index = "4";
	w->http.answer = metadata;
	w->http.ctx = w;
	fake_start(&w->http);
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", w->http.url, 1);
	*state = w;
	return 0;
}

static int drop(void **state)
{
	struct world *w = *state;

	unsetenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	fake_stop(&w->http);
	arena_free(w->a);
	int rc = unit_remove_dir((void **)&w->dir);
	free(w);
	return rc;
}

static int load(struct world *w, struct enrol_config *c, struct err *err)
{
	const char *path = unit_path((void **)&w->dir, "enrol.json");

	assert_int_equal(
		file_write(
			path,
			STR("{\"run\":\"r\",\"role\":\"t\",\"token\":\"x\",\"urls\":[\"https://a:1\"],"
			    "\"pin\":\"p\",\"identity\":{\"from\":\"imds\"}}"),
			0600, NULL),
		0);
	return enrol_config_load(path, w->a, c, err);
}

static void it_knows_its_id_its_place_and_its_address(void **state)
{
	struct world *w = *state;
	struct enrol_config c;
	struct agent_config kept;

	w->late = 2;
	assert_int_equal(load(w, &c, NULL), 0);
	assert_string_equal(c.identity, "i-0abc");
	assert_int_equal(c.place, 4);
	assert_int_equal(
		enrol_config_keep(&c, 0, &(struct message_enrolled){"t-0", "y", 1, false}, NULL),
		0);
	assert_int_equal(config_load(c.dir, w->a, &kept, NULL), 0);
	assert_string_equal(kept.address, "172.31.9.9");
}

static void a_service_without_the_page_is_not_waited_for(void **state)
{
	struct world *w = *state;
	struct enrol_config c;
	struct err err = {0};

	w->index = NULL;
	assert_int_equal(load(w, &c, &err), -1);
	assert_non_null(strstr(err.msg, "ami-launch-index: 404"));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make, drop)
	const struct CMUnitTest tests[] = {
		CASE(it_knows_its_id_its_place_and_its_address),
		CASE(a_service_without_the_page_is_not_waited_for),
	};

	return cmocka_run_group_tests_name("agent enrol imds", tests, NULL, NULL);
}
