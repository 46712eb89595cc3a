/*
 * The server's side: making and loading key and certificate, and accepting connections.
 */
#include "net/tls.h"

#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "net/tls_transport.h"
#include "net/transport.h"

#define VALID_DAYS 3650
#define PEM_MAX (64 * 1024)

struct tls_server {
	SSL_CTX *ctx;
	const char *offer; /* ALPN protocol beside http/1.1; NULL: none */
	char pin[TLS_PIN_SIZE];
};

static void key_freep(EVP_PKEY **k)
{
	EVP_PKEY_free(*k);
}

static void cert_freep(X509 **c)
{
	X509_free(*c);
}

static void bio_freep(BIO **b)
{
	BIO_free(*b);
}

static void ctx_freep(SSL_CTX **c)
{
	SSL_CTX_free(*c);
}

static int add_names(X509 *cert)
{
	X509_NAME *name = X509_get_subject_name(cert);
	X509_EXTENSION *also =
		X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:localhost");
	int ok = also && X509_add_ext(cert, also, -1) == 1 &&
		 X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
					    (const unsigned char *)"regatta", -1, -1, 0) == 1 &&
		 X509_set_issuer_name(cert, name) == 1;

	X509_EXTENSION_free(also);
	return ok;
}

static int self_sign(EVP_PKEY *key, X509 **ret, struct err *err)
{
	CLEANUP(cert_freep) X509 *cert = X509_new();

	if (!cert || X509_set_version(cert, X509_VERSION_3) != 1 ||
	    ASN1_INTEGER_set_int64(X509_get_serialNumber(cert), clock_wall_ms()) != 1 ||
	    !X509_gmtime_adj(X509_getm_notBefore(cert), -86400) ||
	    !X509_time_adj_ex(X509_getm_notAfter(cert), VALID_DAYS, 0, NULL) ||
	    X509_set_pubkey(cert, key) != 1 || !add_names(cert) ||
	    X509_sign(cert, key, EVP_sha256()) <= 0)
		return tls_fail(err, ERR_IO, "a certificate cannot be made");
	*ret = TAKE_PTR(cert);
	return 0;
}

static int write_pem(const char *path, BIO *bio, struct err *err)
{
	char *p;
	long n = BIO_get_mem_data(bio, &p);

	return file_write_atomic(path, (struct str){p, (size_t)n}, 0600, true, err);
}

static int make_key(const char *path, struct err *err)
{
	CLEANUP(key_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
	CLEANUP(bio_freep) BIO *text = BIO_new(BIO_s_mem());

	if (!key || PEM_write_bio_PrivateKey(text, key, NULL, NULL, 0, NULL, NULL) != 1)
		return tls_fail(err, ERR_IO, "a key cannot be made");
	return write_pem(path, text, err);
}

static int read_pem(const char *path, BIO **ret, struct err *err)
{
	struct buf text;

	buf_init(&text, PEM_MAX);
	int rc = file_read(path, &text, err);

	if (rc == 0) {
		*ret = BIO_new(BIO_s_mem());
		BIO_write(*ret, text.p, (int)text.n);
	}
	if (text.p)
		explicit_bzero(text.p, text.n);
	buf_release(&text);
	return rc;
}

/* For the key that is there, perhaps put there before the first start (tls_key.h). */
static int make_cert(const char *key_path, const char *path, struct err *err)
{
	CLEANUP(bio_freep) BIO *key_text = NULL;
	CLEANUP(bio_freep) BIO *text = BIO_new(BIO_s_mem());
	CLEANUP(cert_freep) X509 *cert = NULL;

	if (read_pem(key_path, &key_text, err) < 0)
		return -1;
	CLEANUP(key_freep) EVP_PKEY *key = PEM_read_bio_PrivateKey(key_text, NULL, NULL, NULL);

	if (!key) {
		tls_fail(err, ERR_INVALID, "this is not a key");
		return err_wrap(err, "'%s' (remove it to get a new one)", key_path);
	}
	if (self_sign(key, &cert, err) < 0)
		return -1;
	if (PEM_write_bio_X509(text, cert) != 1)
		return tls_fail(err, ERR_IO, "the certificate cannot be written");
	return write_pem(path, text, err);
}

static int load_identity(SSL_CTX *ctx, const char *key_path, const char *cert_path,
			 char pin[static TLS_PIN_SIZE], struct err *err)
{
	CLEANUP(bio_freep) BIO *key_text = NULL;
	CLEANUP(bio_freep) BIO *cert_text = NULL;

	if (read_pem(key_path, &key_text, err) < 0 || read_pem(cert_path, &cert_text, err) < 0)
		return -1;
	CLEANUP(key_freep) EVP_PKEY *key = PEM_read_bio_PrivateKey(key_text, NULL, NULL, NULL);
	CLEANUP(cert_freep) X509 *cert = PEM_read_bio_X509(cert_text, NULL, NULL, NULL);

	if (!key || !cert || SSL_CTX_use_certificate(ctx, cert) != 1 ||
	    SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1) {
		tls_fail(err, ERR_INVALID, "the key does not belong to the certificate");
		return err_wrap(err, "'%s' and '%s' (remove both to get new ones)", key_path,
				cert_path);
	}
	return tls_pin_of(cert, pin, err);
}

static bool asked_for(const char *protocol, const unsigned char *list, unsigned n,
		      const unsigned char **ret, unsigned char *ret_n)
{
	size_t want = strlen(protocol);

	for (unsigned i = 0; i < n; i += 1u + list[i]) {
		if (list[i] != want || i + 1 + want > n ||
		    memcmp(list + i + 1, protocol, want) != 0)
			continue;
		*ret = list + i + 1;
		*ret_n = list[i];
		return true;
	}
	return false;
}

static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
			   const unsigned char *list, unsigned n, void *ctx)
{
	const struct tls_server *s = ctx;

	(void)ssl;
	if ((s->offer && asked_for(s->offer, list, n, ret, ret_n)) ||
	    asked_for("http/1.1", list, n, ret, ret_n))
		return SSL_TLSEXT_ERR_OK;
	return SSL_TLSEXT_ERR_NOACK;
}

int tls_server_open(const char *dir, struct tls_server **ret, struct err *err)
{
	CLEANUP(freep) char *key_path = path_join(dir, "tls.key");
	CLEANUP(freep) char *cert_path = path_join(dir, "tls.crt");
	CLEANUP(ctx_freep) SSL_CTX *ctx = NULL;
	char pin[TLS_PIN_SIZE];

	if (!file_exists(key_path)) {
		(void)unlink(cert_path); /* that of a key that is lost */
		if (make_key(key_path, err) < 0)
			return -1;
	}
	if (!file_exists(cert_path) && make_cert(key_path, cert_path, err) < 0)
		return -1;
	if (tls_context_new(TLS_server_method(), &ctx, err) < 0)
		return -1;
	/* A client may close without close_notify: the length of each message shows if it is cut. */
	SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_num_tickets(ctx, 0); /* no session is resumed */
	if (load_identity(ctx, key_path, cert_path, pin, err) < 0)
		return -1;
	struct tls_server *s = xcalloc(1, sizeof(*s));

	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, s);
	s->ctx = TAKE_PTR(ctx);
	memcpy(s->pin, pin, sizeof(pin));
	*ret = s;
	return 0;
}

struct tls_server *tls_server_free(struct tls_server *s)
{
	if (s)
		SSL_CTX_free(s->ctx);
	free(s);
	return NULL;
}

void tls_server_pin(const struct tls_server *s, char out[static TLS_PIN_SIZE])
{
	memcpy(out, s->pin, TLS_PIN_SIZE);
}

void tls_server_offer(struct tls_server *s, const char *protocol)
{
	s->offer = protocol;
}

void tls_accept(struct tls_server *s, struct transport *t, int fd)
{
	if (tls_transport_new(t, s->ctx, fd, NULL) < 0)
		abort(); /* out of memory */
	SSL_set_accept_state(t->ssl);
}
