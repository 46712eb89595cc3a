#include "net/tls_key.h"

#include <string.h>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "net/digest.h"
#include "net/tls_transport.h"

#define LEAST_SECRET 32
#define TRIES 8

static void key_freep(EVP_PKEY **k)
{
	EVP_PKEY_free(*k);
}

static void bio_freep(BIO **b)
{
	BIO_free(*b);
}

/* ECPrivateKey of RFC 5915 with the number and the name of the curve; OpenSSL works out the public
 * key. */
static EVP_PKEY *key_of_number(const uint8_t number[static SHA256_BYTES])
{
	static const uint8_t head[] = {0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20};
	static const uint8_t tail[] = {0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86,
				       0x48, 0xce, 0x3d, 0x03, 0x01, 0x07};
	uint8_t der[sizeof(head) + SHA256_BYTES + sizeof(tail)];
	const uint8_t *p = der;

	memcpy(der, head, sizeof(head));
	memcpy(der + sizeof(head), number, SHA256_BYTES);
	memcpy(der + sizeof(head) + SHA256_BYTES, tail, sizeof(tail));
	EVP_PKEY *key = d2i_PrivateKey(EVP_PKEY_EC, NULL, &p, sizeof(der));

	explicit_bzero(der, sizeof(der));
	return key;
}

/* One number in four thousand million is not one of the curve: then the next one. */
static EVP_PKEY *derive(struct str secret)
{
	uint8_t number[SHA256_BYTES];
	EVP_PKEY *key = NULL;

	hmac_sha256(secret.p, secret.n, "regatta tls key", 15, number);
	for (int i = 0; i < TRIES && !key; i++) {
		key = key_of_number(number);
		if (!key)
			sha256_of(number, sizeof(number), number);
	}
	explicit_bzero(number, sizeof(number));
	return key;
}

int tls_key_of_secret(struct str secret, struct buf *out, char pin[static TLS_PIN_SIZE],
		      struct err *err)
{
	CLEANUP(key_freep) EVP_PKEY *key = NULL;
	CLEANUP(bio_freep) BIO *text = BIO_new(BIO_s_mem());
	char *p;

	if (secret.n < LEAST_SECRET)
		return err_set(err, ERR_INVALID, "the secret of a key is too short");
	key = derive(secret);
	if (!key || PEM_write_bio_PrivateKey(text, key, NULL, NULL, 0, NULL, NULL) != 1)
		return tls_fail(err, ERR_IO, "a key cannot be made");
	long n = BIO_get_mem_data(text, &p);

	buf_add(out, p, (size_t)n);
	return tls_pin_of_key(key, pin, err);
}
