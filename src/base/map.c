/*
 * Entries stand in an array in the order of insertion; an open-addressed
 * table of indices finds them.  A deleted entry leaves a hole (key NULL) until
 * the next rebuild, so that order and iteration stay simple.  The hash is
 * SipHash-1-3 with a key of this process: outside input chooses our keys.
 */
#include "base/map.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rand.h"

#define MAP_FIRST_SLOTS 16u
#define SLOT_EMPTY UINT32_MAX

struct entry {
	char *key; /* NULL: deleted */
	size_t key_n;
	uint64_t hash;
	void *value;
};

/* n_entries <= 3/4 n_slots, holes included, so that a probe always ends. */
struct map {
	struct entry *entries;
	uint32_t *slots;
	size_t n_entries, n_live, n_slots;
};

static uint64_t hash_key[2];

static void make_hash_key(void)
{
	rand_bytes(hash_key, sizeof(hash_key));
}

static uint64_t rotl(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

static void sip_round(uint64_t v[static 4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

static uint64_t hash_of(struct str s)
{
	uint64_t v[4] = {
		hash_key[0] ^ UINT64_C(0x736f6d6570736575),
		hash_key[1] ^ UINT64_C(0x646f72616e646f6d),
		hash_key[0] ^ UINT64_C(0x6c7967656e657261),
		hash_key[1] ^ UINT64_C(0x7465646279746573),
	};
	uint64_t m;
	size_t i = 0;

	for (; s.n - i >= 8; i += 8) {
		memcpy(&m, s.p + i, 8);
		v[3] ^= m;
		sip_round(v);
		v[0] ^= m;
	}
	m = (uint64_t)s.n << 56;
	for (int shift = 0; i < s.n; i++, shift += 8)
		m |= (uint64_t)(unsigned char)s.p[i] << shift;
	v[3] ^= m;
	sip_round(v);
	v[0] ^= m;
	v[2] ^= 0xff;
	sip_round(v);
	sip_round(v);
	sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct map *map_new(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_hash_key);
	return xcalloc(1, sizeof(struct map));
}

struct map *map_free(struct map *m)
{
	if (!m)
		return NULL;
	for (size_t i = 0; i < m->n_entries; i++)
		free(m->entries[i].key);
	free(m->entries);
	free(m->slots);
	free(m);
	return NULL;
}

/* The slot of the key, or the empty slot where its search ends. */
static uint32_t *find_slot(const struct map *m, struct str key, uint64_t hash)
{
	size_t mask = m->n_slots - 1;

	for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
		if (m->slots[i] == SLOT_EMPTY)
			return &m->slots[i];
		const struct entry *e = &m->entries[m->slots[i]];
		if (e->key && e->hash == hash && str_eq((struct str){e->key, e->key_n}, key))
			return &m->slots[i];
	}
}

/* The index of the entry, or SLOT_EMPTY. */
static uint32_t find(const struct map *m, struct str key)
{
	return m->n_slots ? *find_slot(m, key, hash_of(key)) : SLOT_EMPTY;
}

/* Close the holes and make room for at least one more. */
static void rebuild(struct map *m)
{
	size_t n_slots = MAP_FIRST_SLOTS, live = 0;

	while (n_slots / 2 < m->n_live + 1)
		n_slots *= 2;
	for (size_t i = 0; i < m->n_entries; i++)
		if (m->entries[i].key)
			m->entries[live++] = m->entries[i];
	m->n_entries = live;
	m->entries = xrealloc(m->entries, n_slots / 4 * 3 * sizeof(*m->entries));
	m->slots = xrealloc(m->slots, n_slots * sizeof(*m->slots));
	m->n_slots = n_slots;
	memset(m->slots, 0xff, n_slots * sizeof(*m->slots));
	for (size_t i = 0; i < live; i++) {
		const struct entry *e = &m->entries[i];
		*find_slot(m, (struct str){e->key, e->key_n}, e->hash) = (uint32_t)i;
	}
}

void *map_put(struct map *m, struct str key, void *value)
{
	uint32_t at = find(m, key);

	if (at != SLOT_EMPTY) {
		void *was = m->entries[at].value;
		m->entries[at].value = value;
		return was;
	}
	if (m->n_entries == m->n_slots / 4 * 3)
		rebuild(m);

	uint64_t hash = hash_of(key);
	char *copy = xmalloc(key.n + 1);
	if (key.n)
		memcpy(copy, key.p, key.n);
	copy[key.n] = '\0';
	*find_slot(m, key, hash) = (uint32_t)m->n_entries;
	m->entries[m->n_entries++] = (struct entry){copy, key.n, hash, value};
	m->n_live++;
	return NULL;
}

void *map_get(const struct map *m, struct str key)
{
	uint32_t at = find(m, key);

	return at == SLOT_EMPTY ? NULL : m->entries[at].value;
}

void *map_del(struct map *m, struct str key)
{
	uint32_t at = find(m, key);

	if (at == SLOT_EMPTY)
		return NULL;
	struct entry *e = &m->entries[at];
	void *was = e->value;
	free(e->key);
	*e = (struct entry){0};
	m->n_live--;
	return was;
}

size_t map_count(const struct map *m)
{
	return m->n_live;
}

bool map_at(const struct map *m, size_t *it, struct str *ret_key, void **ret_value)
{
	while (*it < m->n_entries) {
		const struct entry *e = &m->entries[(*it)++];

		if (!e->key)
			continue;
		*ret_key = (struct str){e->key, e->key_n};
		*ret_value = e->value;
		return true;
	}
	return false;
}
