#include "net/digest.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/hex.h"
#include "base/rand.h"

#define CHUNK (256 * 1024)
#define TOKEN_BYTES 32

/* OpenSSL fails here only without memory or without SHA-256. */
static void must(int ok)
{
	if (ok != 1)
		abort();
}

/* struct sha256 is never defined: it is OpenSSL's EVP_MD_CTX. */
static EVP_MD_CTX *context(struct sha256 *s)
{
	return (EVP_MD_CTX *)(void *)s;
}

static EVP_MD *fetched;

static void fetch(void)
{
	fetched = EVP_MD_fetch(NULL, "SHA256", NULL);
	must(fetched != NULL);
}

/* EVP_sha256() is looked up again for each digest, which takes longer than that of a token. */
static const EVP_MD *sha256(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fetch);
	return fetched;
}

struct sha256 *sha256_new(void)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	must(ctx != NULL);
	must(EVP_DigestInit_ex(ctx, sha256(), NULL));
	return (struct sha256 *)(void *)ctx;
}

void sha256_add(struct sha256 *s, const void *p, size_t n)
{
	must(EVP_DigestUpdate(context(s), p, n));
}

void sha256_end(struct sha256 *s, uint8_t out[static SHA256_BYTES])
{
	must(EVP_DigestFinal_ex(context(s), out, NULL));
	EVP_MD_CTX_free(context(s));
}

void sha256_of(const void *p, size_t n, uint8_t out[static SHA256_BYTES])
{
	struct sha256 *s = sha256_new();

	sha256_add(s, p, n);
	sha256_end(s, out);
}

void hmac_sha256(const void *key, size_t key_n, const void *p, size_t n,
		 uint8_t out[static SHA256_BYTES])
{
	unsigned size = 0;

	must(key_n <= INT32_MAX && HMAC(EVP_sha256(), key, (int)key_n, p, n, out, &size) != NULL &&
	     size == SHA256_BYTES);
}

void sha1_of(const void *p, size_t n, uint8_t out[static SHA1_BYTES])
{
	must(EVP_Digest(p, n, out, NULL, EVP_sha1(), NULL));
}

/* Up to `most` bytes of the file from `from` on go to `add`. */
static int read_range(int fd, uint64_t from, uint64_t most,
		      void (*add)(void *ctx, const void *p, size_t n), void *ctx,
		      uint64_t *ret_size, struct err *err)
{
	CLEANUP(freep) char *chunk = xmalloc(CHUNK);
	uint64_t done = 0;
	ssize_t n;

	while (done < most && (n = pread(fd, chunk, most - done < CHUNK ? most - done : CHUNK,
					 (off_t)(from + done))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, errno, "read a file to hash");
		add(ctx, chunk, (size_t)n);
		done += (uint64_t)n;
	}
	if (ret_size)
		*ret_size = done;
	return 0;
}

static int read_all(int fd, void (*add)(void *ctx, const void *p, size_t n), void *ctx,
		    uint64_t *ret_size, struct err *err)
{
	return read_range(fd, 0, UINT64_MAX, add, ctx, ret_size, err);
}

static void add_sha256(void *ctx, const void *p, size_t n)
{
	sha256_add(ctx, p, n);
}

int sha256_fd(int fd, uint8_t out[static SHA256_BYTES], uint64_t *ret_size, struct err *err)
{
	struct sha256 *s = sha256_new();
	uint8_t digest[SHA256_BYTES];
	int rc = read_all(fd, add_sha256, s, ret_size, err);

	sha256_end(s, digest);
	if (rc == 0)
		memcpy(out, digest, sizeof(digest));
	return rc;
}

void md5_of(const void *p, size_t n, uint8_t out[static MD5_BYTES])
{
	must(EVP_Digest(p, n, out, NULL, EVP_md5(), NULL));
}

static void add_md5(void *ctx, const void *p, size_t n)
{
	must(EVP_DigestUpdate(ctx, p, n));
}

int md5_fd(int fd, uint8_t out[static MD5_BYTES], struct err *err)
{
	return md5_fd_range(fd, 0, UINT64_MAX, out, err);
}

int md5_fd_range(int fd, uint64_t from, uint64_t most, uint8_t out[static MD5_BYTES],
		 struct err *err)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	must(ctx && EVP_DigestInit_ex(ctx, EVP_md5(), NULL));
	int rc = read_range(fd, from, most, add_md5, ctx, NULL, err);

	must(EVP_DigestFinal_ex(ctx, out, NULL));
	EVP_MD_CTX_free(ctx);
	return rc;
}

int sha256_fd_hex(int fd, char out[static SHA256_TEXT], uint64_t *ret_size, struct err *err)
{
	uint8_t digest[SHA256_BYTES];

	if (sha256_fd(fd, digest, ret_size, err) < 0)
		return -1;
	hex_encode(digest, sizeof(digest), out);
	return 0;
}

bool digest_equal(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}

void token_new(char out[static 65])
{
	uint8_t secret[TOKEN_BYTES];

	rand_bytes(secret, sizeof(secret));
	hex_encode(secret, sizeof(secret), out);
	OPENSSL_cleanse(secret, sizeof(secret));
}
