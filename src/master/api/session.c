#include "master/api/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct secret { /* scope 0: the slot is free */
	uint8_t hash[SHA256_BYTES];
	enum api_auth scope;
	int64_t until_ms;
	uint32_t serial;
};

struct sessions {
	struct secret codes[SESSION_MAX], sessions[SESSION_MAX];
	uint32_t last_serial;
};

struct sessions *sessions_new(void)
{
	return xcalloc(1, sizeof(struct sessions));
}

struct sessions *sessions_free(struct sessions *s)
{
	free(s);
	return NULL;
}

/* A free slot, or the one that expires first. */
static struct secret *place(struct secret *v, int64_t now_ms)
{
	struct secret *first = v;

	for (size_t i = 0; i < SESSION_MAX; i++) {
		if (!v[i].scope || v[i].until_ms <= now_ms)
			return &v[i];
		if (v[i].until_ms < first->until_ms)
			first = &v[i];
	}
	return first;
}

/* Returns the serial of the session that was overwritten, or 0. */
static uint32_t add(struct secret *v, enum api_auth scope, int64_t now_ms, int64_t for_ms,
		    uint32_t serial, char text[static 65])
{
	struct secret *s = place(v, now_ms);
	uint32_t before = s->serial;

	token_new(text);
	*s = (struct secret){.scope = scope, .until_ms = now_ms + for_ms, .serial = serial};
	sha256_of(text, strlen(text), s->hash);
	return before;
}

/* Compares all of them, so that the duration does not tell which one matched. */
static const struct secret *find(const struct secret *v, struct str text, int64_t now_ms)
{
	uint8_t hash[SHA256_BYTES];
	const struct secret *found = NULL;

	sha256_of(text.n ? text.p : "", text.n, hash);
	for (size_t i = 0; i < SESSION_MAX; i++)
		if (digest_equal(hash, v[i].hash, sizeof(hash)) && v[i].scope &&
		    v[i].until_ms > now_ms)
			found = &v[i];
	return found;
}

void session_code(struct sessions *s, enum api_auth scope, int64_t now_ms, char code[static 65])
{
	add(s->codes, scope, now_ms, SESSION_CODE_MS, 0, code);
}

bool session_begin(struct sessions *s, struct str code, int64_t now_ms, char secret[static 65],
		   uint32_t *ret_forgotten)
{
	const struct secret *found = find(s->codes, code, now_ms);

	if (!found)
		return false;
	*ret_forgotten =
		add(s->sessions, found->scope, now_ms, SESSION_MS, ++s->last_serial, secret);
	s->codes[found - s->codes] = (struct secret){0};
	return true;
}

enum api_auth session_scope(const struct sessions *s, struct str secret, int64_t now_ms,
			    uint32_t *ret_serial)
{
	const struct secret *found = find(s->sessions, secret, now_ms);

	if (found && ret_serial)
		*ret_serial = found->serial;
	return found ? found->scope : 0;
}

static uint32_t forget(struct secret *v)
{
	uint32_t serial = v->serial;

	*v = (struct secret){0};
	return serial;
}

uint32_t session_end(struct sessions *s, struct str secret)
{
	const struct secret *found = find(s->sessions, secret, 0);

	return found ? forget(&s->sessions[found - s->sessions]) : 0;
}

uint32_t session_expire(struct sessions *s, int64_t now_ms)
{
	for (size_t i = 0; i < SESSION_MAX; i++)
		if (s->sessions[i].scope && s->sessions[i].until_ms <= now_ms)
			return forget(&s->sessions[i]);
	return 0;
}

void sessions_each(const struct sessions *s, void (*fn)(void *ctx, const struct session *one),
		   void *ctx)
{
	for (size_t i = 0; i < SESSION_MAX; i++) {
		const struct secret *v = &s->sessions[i];
		struct session one = {.scope = v->scope, .until_ms = v->until_ms};

		memcpy(one.hash, v->hash, sizeof(one.hash));
		if (v->scope)
			fn(ctx, &one);
	}
}

void session_restore(struct sessions *s, const struct session *one, int64_t now_ms)
{
	if (one->until_ms <= now_ms || one->until_ms > now_ms + SESSION_MS)
		return;
	struct secret *v = place(s->sessions, now_ms);

	*v = (struct secret){
		.scope = one->scope, .until_ms = one->until_ms, .serial = ++s->last_serial};
	memcpy(v->hash, one->hash, sizeof(v->hash));
}
