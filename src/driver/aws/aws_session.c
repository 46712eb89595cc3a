#include "driver/aws/aws_session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "driver/aws/api/aws.h"
#include "driver/aws/api/s3.h"
#include "driver/object_store.h"
#include "fmt/doc.h"

#define KEPT 32 /* sessions that are not in use and stay open, at most */

struct aws_session {
	struct aws_session *next;
	char *region, *credentials; /* credentials: "" if the process's own are used */
	struct arena *a;	    /* of env */
	const struct doc *env;	    /* NULL: the process's own environment */
	struct aws *s;
	int users;
	pthread_mutex_t first; /* so that many calls at once ask for the account once */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and of users */
static struct aws_session *sessions;			 /* the last used one first */

const char *const aws_session_variables[] = {
	"AWS_ENDPOINT_URL",
	"AWS_ENDPOINT_URL_EC2",
	"AWS_ENDPOINT_URL_S3",
	"AWS_ENDPOINT_URL_STS",
	"AWS_ENDPOINT_URL_IAM",
	"AWS_ENDPOINT_URL_SSM",
	"AWS_ENDPOINT_URL_CLOUDWATCH",
	"AWS_ENDPOINT_URL_AUTO_SCALING",
	"AWS_ENDPOINT_URL_SERVICE_QUOTAS",
	"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
	"http_proxy",
	"HTTP_PROXY",
	"https_proxy",
	"HTTPS_PROXY",
	"no_proxy",
	"NO_PROXY",
	NULL,
};

/* What came with the run; nothing of the master's own environment. */
static const char *get_given(void *ctx, const char *name)
{
	const struct aws_session *k = ctx;

	return doc_str(k->env, name, (struct str){0}).p;
}

static void session_free(struct aws_session *k)
{
	aws_free(k->s);
	pthread_mutex_destroy(&k->first);
	arena_free(k->a);
	free(k->region);
	free(k->credentials);
	free(k);
}

static int session_open(const char *region, const char *credentials, const struct deadline *d,
			struct aws_session **ret, struct err *err)
{
	struct aws_session *k = xcalloc(1, sizeof(*k));
	struct aws_config c = {.region = region};
	struct doc *all = NULL;

	pthread_mutex_init(&k->first, NULL);
	k->a = arena_new();
	k->region = xstrdup(region);
	k->credentials = xstrdup(credentials);
	if (*credentials) {
		if (json_parse(str_from(credentials), k->a, &all, err) < 0) {
			err_wrap(err, "the credentials of the run");
			goto bad;
		}
		const struct doc *given = doc_table(all, OBJECT_CREDENTIALS);

		given = given ? given : all;
		k->env = doc_table(given, "env");
		if (!k->env)
			k->env = doc_new(k->a, DOC_TABLE);
		if (!*region)
			c.region = doc_str(given, "region", (struct str){0}).p;
		c.access_key = doc_str(given, "access_key", STR("")).p;
		c.secret_key = doc_str(given, "secret_key", STR("")).p;
		c.session_token = doc_str(given, "session_token", (struct str){0}).p;
		c.endpoint_url = doc_str(given, "endpoint_url", (struct str){0}).p;
		c.ca_pem = doc_str(given, AWS_CA_PEM, (struct str){0});
		c.env = (struct env_lookup){get_given, k};
	}
	if (aws_open(&c, d, &k->s, err) < 0)
		goto bad;
	*ret = k;
	return 0;
bad:
	session_free(k);
	return -1;
}

/* With the lock held: the session of these credentials, moved to the front. */
static struct aws_session *find_kept(const char *region, const char *credentials)
{
	for (struct aws_session **at = &sessions; *at; at = &(*at)->next) {
		struct aws_session *k = *at;

		if (strcmp(k->region, region) != 0 || strcmp(k->credentials, credentials) != 0)
			continue;
		*at = k->next;
		k->next = sessions;
		sessions = k;
		return k;
	}
	return NULL;
}

/* With the lock held: closes those that were not used for longest, `most` may stay. */
static void drop_idle(int most)
{
	for (struct aws_session **at = &sessions; *at;) {
		struct aws_session *k = *at;

		if (k->users > 0 || most-- > 0) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		session_free(k);
	}
}

void aws_sessions_drop(void)
{
	pthread_mutex_lock(&lock);
	drop_idle(0);
	pthread_mutex_unlock(&lock);
}

int aws_session_take(const char *region, const char *credentials, const struct deadline *d,
		     struct aws_session **ret, struct err *err)
{
	struct aws_session *made = NULL;

	region = region ? region : "";
	credentials = credentials ? credentials : "";
	pthread_mutex_lock(&lock);
	*ret = find_kept(region, credentials);
	if (!*ret && session_open(region, credentials, d, &made, err) == 0) {
		drop_idle(KEPT - 1);
		made->next = sessions;
		*ret = sessions = made;
	}
	if (*ret)
		(*ret)->users++;
	pthread_mutex_unlock(&lock);
	return *ret ? 0 : -1;
}

void aws_session_give(struct aws_session *k)
{
	pthread_mutex_lock(&lock);
	k->users--;
	pthread_mutex_unlock(&lock);
}

struct aws *aws_session_of(struct aws_session *k)
{
	return k->s;
}

int aws_session_account(struct aws_session *k, const struct deadline *d, char *ret, struct err *err)
{
	char account[AWS_ACCOUNT];
	int rc;

	pthread_mutex_lock(&k->first);
	rc = aws_account(k->s, d, account, err);
	pthread_mutex_unlock(&k->first);
	if (rc == 0)
		memcpy(ret, account, sizeof(account));
	return rc;
}

static int check_account(const struct aws_work *w, struct err *err)
{
	const char *owner = aws_spec(w, "account");
	char account[AWS_ACCOUNT];

	if (aws_session_account(w->kept, &w->d, account, err) < 0)
		return -1;
	if (!owner || strcmp(owner, account) != 0)
		return err_set(
			err, ERR_DENIED,
			"these credentials are of account %s, the run belongs to %s: nothing "
			"is touched until they fit",
			account, owner ? owner : "none");
	return 0;
}

int aws_work_read(const struct driver_row *row, struct aws_work *ret, struct err *err)
{
	struct aws_work w = {
		.a = arena_new(),
		.row = row,
		.d = row->deadline ? *row->deadline : deadline_in(-1, NULL),
	};
	struct doc *spec, *choice = NULL;

	if (json_parse(str_from(row->spec), w.a, &spec, err) < 0 ||
	    (row->choice && json_parse(str_from(row->choice), w.a, &choice, err) < 0)) {
		aws_work_close(&w);
		return err_wrap(err, "the spec of %s '%s'", row->kind, row->name);
	}
	w.spec = spec;
	w.choice = choice;
	*ret = w;
	return 0;
}

int aws_work_open(const struct driver_row *row, struct aws_work *ret, struct err *err)
{
	struct aws_work w;
	const char *region;

	if (aws_work_read(row, &w, err) < 0)
		return -1;
	region = aws_spec(&w, "region");
	if (aws_session_take(region, row->credentials, &w.d, &w.kept, err) < 0)
		goto bad;
	w.s = w.kept->s;
	if (check_account(&w, err) < 0)
		goto bad;
	*ret = w;
	return 0;
bad:
	aws_work_close(&w);
	return -1;
}

void aws_work_close(struct aws_work *w)
{
	if (w->kept)
		aws_session_give(w->kept);
	w->a = arena_free(w->a);
	*w = (struct aws_work){0};
}

int aws_work_presign(const struct aws_work *w, const char *bucket, const char *key, int64_t seconds,
		     struct buf *out)
{
	const char *region = aws_spec(w, "region");
	const struct s3_place at = {.bucket = bucket, .key = key};
	struct aws_session *k;
	struct err err;
	int rc;

	if (!w->row->credentials || !region || !bucket || !key ||
	    aws_session_take(region, w->row->credentials, &w->d, &k, &err) < 0)
		return -1;
	rc = s3_presign(k->s, &at, "GET", seconds, &w->d, out, &err);
	aws_session_give(k);
	return rc < 0 || out->overflow ? -1 : 0;
}

static const char *text_of(const struct doc *d, const char *key)
{
	struct str text = doc_str(d, key, (struct str){0});

	return text.n ? text.p : NULL;
}

const char *aws_spec(const struct aws_work *w, const char *key)
{
	return text_of(w->spec, key);
}

const char *aws_choice(const struct aws_work *w, const char *key)
{
	return text_of(w->choice, key);
}
