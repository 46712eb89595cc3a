/* Connections of a session, kept for the next call; and plain calls to metadata services. */
#include "driver/aws/api/internal.h"

#include <poll.h>
#include <string.h>

#include "base/deadline.h"
#include "base/err.h"

int aws_timeout_ms(const struct deadline *d, int64_t at_most)
{
	int64_t left = deadline_left_ms(d);

	return (int)(left < at_most ? left : at_most);
}

int aws_nap(const struct deadline *d, int64_t ms, struct err *err)
{
	struct deadline nap = deadline_within(d, ms);

	while (deadline_left_ms(&nap) > 0) {
		if (deadline_check(d, "a call to AWS was not made", err) < 0)
			return -1;
		poll(NULL, 0, deadline_slice_ms(&nap));
	}
	return deadline_check(d, "a call to AWS was not made", err);
}

static struct http_client *take_idle(struct aws *s, const char *host, int port, bool tls)
{
	struct http_client *found = NULL;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < AWS_IDLE && !found; i++) {
		struct aws_idle *one = &s->idle[i];

		if (one->client && one->port == port && one->tls == tls &&
		    strcmp(one->host, host) == 0) {
			found = one->client;
			one->client = NULL;
		}
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}

static struct tls_trust trust_of(const struct aws *s, bool tls)
{
	return (struct tls_trust){
		.mode = tls ? TLS_CA : TLS_OFF,
		.ca_pem = s->ca_pem,
		.ca_file = s->ca_file,
	};
}

int aws_connect(struct aws *s, const char *host, int port, bool tls, const struct deadline *d,
		struct http_client **ret, struct err *err)
{
	struct http_client *c = take_idle(s, host, port, tls);
	struct http_target t = {
		.host = host,
		.port = port,
		.tls = trust_of(s, tls),
		.proxy = s->proxy,
		.stop = d->stop,
	};

	if (c) {
		http_client_set_stop(c, d->stop);
		*ret = c;
		return 0;
	}
	if (http_client_open(&t, aws_timeout_ms(d, 10000), ret, err) < 0)
		return err_wrap(err, "%s", host);
	return 0;
}

void aws_disconnect(struct aws *s, struct http_client *client, const char *host, int port, bool tls,
		    bool good)
{
	struct http_client *surplus = client;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; good && i < AWS_IDLE && surplus; i++) {
		struct aws_idle *one = &s->idle[i];

		if (one->client)
			continue;
		*one = (struct aws_idle){.client = client, .port = port, .tls = tls};
		snprintf(one->host, sizeof(one->host), "%s", host);
		http_client_set_stop(client, NULL);
		surplus = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	http_client_free(surplus);
}

int aws_fetch(struct aws *s, const char *method, const char *url, const struct http_field *fields,
	      size_t nfields, const struct deadline *d, struct buf *out, int *ret_status,
	      struct err *err)
{
	struct http_url u;
	struct http_client *c = NULL;
	struct http_answer ans;
	char path[2048];

	if (http_url_parse(&u, str_from(url), false, err) < 0)
		return -1;
	snprintf(path, sizeof(path), "%.*s", u.path.n > 0 ? (int)u.path.n : 1,
		 u.path.n > 0 ? u.path.p : "/");
	struct http_target t = {
		.host = u.host,
		.port = u.port,
		.tls = trust_of(s, u.tls),
		.stop = d->stop,
	};
	struct http_outgoing r = {.method = method,
				  .path = path,
				  .fields = fields,
				  .nfields = nfields,
				  .timeout_ms = aws_timeout_ms(d, 5000)};

	if (http_client_open(&t, aws_timeout_ms(d, 5000), &c, err) < 0)
		return -1;
	http_answer_init(&ans, 256 * 1024);
	int rc = http_send(c, &r, &ans, err);

	if (rc == 0) {
		*ret_status = ans.status;
		buf_reset(out);
		buf_addstr(out, buf_str(&ans.body));
	}
	http_answer_release(&ans);
	http_client_free(c);
	return rc;
}

int aws_get_url(struct aws *s, const char *url, const struct deadline *d, struct buf *out,
		struct err *err)
{
	int status = 0;

	if (aws_fetch(s, "GET", url, NULL, 0, d, out, &status, err) < 0)
		return err_wrap(err, "%s", url);
	return status == 200 ? 0 : err_set(err, ERR_UNAVAILABLE, "%s answers %d", url, status);
}
