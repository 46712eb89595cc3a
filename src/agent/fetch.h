#pragma once
/*
 * fetch - open a blob as a local file with a checked digest.
 *
 * On the master's machine the blob is in the master's store.  On other machines it is downloaded,
 * continuing an earlier try, into a cache by SHA-256, which the nodes of a host may share (agent.json:
 * cache, cache_bytes).  A file gets its name when its digest is right; nodes that need the same file
 * wait for one download; the least recently used files are removed to make room.  The digest is
 * checked at every use, so a damaged file is downloaded again.
 */
#include <stdbool.h>
#include <stdint.h>

struct agent_config;
struct buf;
struct err;
struct message_blob;

/* A descriptor at offset 0.  Blocks (transfer.h). */
int fetch_open(const struct agent_config *cfg, const char *node_dir, const struct message_blob *b,
	       struct err *err);
/*
 * An object that another server has.  Without a digest it is cached under what and ETag together, and
 * without both it is not cached at all, because the same URL may have another content next time.
 */
struct fetch_object {
	const char *what;   /* names it, "s3://bucket/key" */
	const char *etag;   /* other content is refused; NULL: not known */
	int64_t size;	    /* the same; -1 */
	const char *sha256; /* the same; NULL */
	/* Appends the URL.  `again`: the last one was refused, which may be because its time was over. */
	int (*url)(void *ctx, bool again, struct buf *out, struct err *err);
	void *ctx;
};
int fetch_object(const struct agent_config *cfg, const char *node_dir, const struct fetch_object *o,
		 struct err *err);
/* The same for a path of the node's part of the master's API ("previous?attempt=1&path=x"). */
int fetch_open_path(const struct agent_config *cfg, const char *node_dir, const char *rest,
		    const char *sha256, struct err *err);
/* The disk is full: what is in the shared cache and not being fetched just now goes. */
void fetch_empty_cache(const struct agent_config *cfg);
/* The inputs are in place: a cache that only this node has is not needed any more. */
void fetch_drop_own_cache(const struct agent_config *cfg, const char *node_dir);
