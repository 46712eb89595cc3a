#pragma once
/* digest - SHA-256, HMAC and SHA-1 (OpenSSL), random tokens, and comparison in constant time. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
#define SHA256_BYTES 32

struct sha256;
struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *s, const void *p, size_t n);
void sha256_end(struct sha256 *s, uint8_t out[static SHA256_BYTES]); /* frees s */
void sha256_of(const void *p, size_t n, uint8_t out[static SHA256_BYTES]);
void hmac_sha256(const void *key, size_t key_n, const void *p, size_t n,
		 uint8_t out[static SHA256_BYTES]);
/* For names that others derive with it; it protects nothing. */
#define SHA1_BYTES 20
void sha1_of(const void *p, size_t n, uint8_t out[static SHA1_BYTES]);
/* Of a whole file, for data whose publisher gives nothing better. */
#define MD5_BYTES 16
int md5_fd(int fd, uint8_t out[static MD5_BYTES], struct err *err);
/* Of up to `most` bytes from `from` on. */
int md5_fd_range(int fd, uint64_t from, uint64_t most, uint8_t out[static MD5_BYTES],
		 struct err *err);
void md5_of(const void *p, size_t n, uint8_t out[static MD5_BYTES]);
/* Whole file from offset 0. */
int sha256_fd(int fd, uint8_t out[static SHA256_BYTES], uint64_t *ret_size, struct err *err);
/* The same as hex digits. */
#define SHA256_TEXT (2 * SHA256_BYTES + 1)
int sha256_fd_hex(int fd, char out[static SHA256_TEXT], uint64_t *ret_size, struct err *err);
bool digest_equal(const void *a, const void *b, size_t n);
/* A new random token, 64 hex digits.  Only its SHA-256 (sha256_of the text) is stored. */
void token_new(char out[static 65]);
