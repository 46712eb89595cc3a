#include "net/tls_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "net/address.h"
#include "net/digest.h"
#include "net/tls_transport.h"
#include "net/transport.h"

#define MAX_BUNDLE (4 * 1024 * 1024) /* bytes of a file of CAs */
#define MAX_SHARED 16		     /* contexts kept; the least recently used one is replaced */

static const char *const system_bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt",		     /* Debian, Arch */
	"/etc/pki/tls/certs/ca-bundle.crt",		     /* Fedora, Amazon Linux */
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* RHEL */
	"/etc/ssl/ca-bundle.pem",			     /* SUSE */
	"/etc/ssl/cert.pem",				     /* Alpine */
};

static void ctx_freep(SSL_CTX **c)
{
	SSL_CTX_free(*c);
}

static void cert_freep(X509 **c)
{
	X509_free(*c);
}

static void key_freep(EVP_PKEY **k)
{
	EVP_PKEY_free(*k);
}

static void bio_freep(BIO **b)
{
	BIO_free(*b);
}

static const char *own_bundle(void)
{
	const char *named = getenv("SSL_CERT_FILE");

	if (named && *named)
		return named;
	for (size_t i = 0; i < sizeof(system_bundles) / sizeof(system_bundles[0]); i++)
		if (file_exists(system_bundles[i]))
			return system_bundles[i];
	return system_bundles[0]; /* named in the error */
}

/* The file of CA certificates; NULL if they are in ca_pem. */
static const char *bundle_file(const struct tls_trust *trust)
{
	if (trust->mode != TLS_CA || trust->ca_pem.n > 0)
		return NULL;
	return trust->ca_file ? trust->ca_file : own_bundle();
}

static BIO *bio_of(struct str pem)
{
	return pem.n <= MAX_BUNDLE ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
}

/* Without this callback OpenSSL would ask for a password on the terminal. */
static int no_password(char *out, int size, int writing, void *ctx)
{
	(void)out;
	(void)size;
	(void)writing;
	(void)ctx;
	return -1;
}

static int add_cas(SSL_CTX *ctx, struct str pem, struct err *err)
{
	CLEANUP(bio_freep) BIO *bio = bio_of(pem);
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	int n = 0;

	for (; bio; n++) {
		CLEANUP(cert_freep) X509 *cert = PEM_read_bio_X509(bio, NULL, no_password, NULL);

		if (!cert)
			break;
		if (X509_STORE_add_cert(store, cert) != 1)
			return tls_fail(err, ERR_INVALID, "a CA's certificate cannot be used");
	}
	/* The end of the text is reported as the error NO_START_LINE. */
	if (n == 0 || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return tls_fail(err, ERR_INVALID, "the certificates of CAs cannot be read");
	ERR_clear_error();
	return 0;
}

int tls_bundle_read(const char *ca_file, struct buf *out, struct err *err)
{
	if (file_read(ca_file ? ca_file : own_bundle(), out, err) == 0)
		return 0;
	err_wrap(err, "certificates of CAs (set SSL_CERT_FILE)");
	/* Not ERR_NOT_FOUND, which callers take for an absent resource. */
	if (err)
		err->kind = ERR_INVALID;
	return -1;
}

static int add_ca_file(SSL_CTX *ctx, const char *path, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, MAX_BUNDLE);
	if (tls_bundle_read(path, &text, err) < 0)
		return -1;
	if (add_cas(ctx, buf_str(&text), err) < 0)
		return err_wrap(err, "'%s'", path);
	return 0;
}

static int use_own(SSL_CTX *ctx, const struct tls_trust *trust, struct err *err)
{
	CLEANUP(bio_freep) BIO *cert_text = bio_of(trust->cert_pem);
	CLEANUP(bio_freep) BIO *key_text = bio_of(trust->key_pem);
	CLEANUP(cert_freep)
	X509 *cert = cert_text ? PEM_read_bio_X509(cert_text, NULL, no_password, NULL) : NULL;
	CLEANUP(key_freep)
	EVP_PKEY *key =
		key_text ? PEM_read_bio_PrivateKey(key_text, NULL, no_password, NULL) : NULL;

	if (!cert || !key || SSL_CTX_use_certificate(ctx, cert) != 1 ||
	    SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
		return tls_fail(err, ERR_INVALID, "our own certificate and key cannot be used");
	for (;;) {
		CLEANUP(cert_freep)
		X509 *next = PEM_read_bio_X509(cert_text, NULL, no_password, NULL);

		if (!next)
			break;
		if (SSL_CTX_add1_chain_cert(ctx, next) != 1)
			return tls_fail(err, ERR_INVALID,
					"the chain of our certificate cannot be used");
	}
	ERR_clear_error();
	return 0;
}

static int context_of(const struct tls_trust *trust, SSL_CTX **ret, struct err *err)
{
	static const unsigned char http11[] = "\x08http/1.1";
	CLEANUP(ctx_freep) SSL_CTX *ctx = NULL;
	const char *file = bundle_file(trust);

	if (tls_context_new(TLS_client_method(), &ctx, err) < 0)
		return -1;
	SSL_CTX_set_alpn_protos(ctx, http11, sizeof(http11) - 1);
	if (trust->mode == TLS_CA) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
		/* An intermediate CA may be given instead of its root. */
		X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
		if ((file ? add_ca_file(ctx, file, err) : add_cas(ctx, trust->ca_pem, err)) < 0)
			return -1;
	}
	if (trust->cert_pem.n > 0 && use_own(ctx, trust, err) < 0)
		return -1;
	*ret = TAKE_PTR(ctx);
	return 0;
}

/* For the digest that identifies a setting. */

static void add_bytes(struct sha256 *h, struct str s)
{
	sha256_add(h, &s.n, sizeof(s.n));
	if (s.n > 0)
		sha256_add(h, s.p, s.n);
}

static void digest_of(const struct tls_trust *trust, uint8_t out[static SHA256_BYTES])
{
	const char *file = bundle_file(trust);
	struct sha256 *h = sha256_new();
	struct stat st = {0};

	sha256_add(h, &trust->mode, sizeof(trust->mode));
	add_bytes(h, trust->ca_pem);
	add_bytes(h, trust->cert_pem);
	add_bytes(h, trust->key_pem);
	add_bytes(h, str_from(file));
	if (file && stat(file, &st) == 0) {
		sha256_add(h, &st.st_dev, sizeof(st.st_dev));
		sha256_add(h, &st.st_ino, sizeof(st.st_ino));
		sha256_add(h, &st.st_size, sizeof(st.st_size));
		sha256_add(h, &st.st_mtim, sizeof(st.st_mtim));
	}
	sha256_end(h, out);
}

static struct {
	pthread_mutex_t lock;
	struct {
		uint8_t digest[SHA256_BYTES];
		SSL_CTX *ctx;
		uint64_t used;
	} v[MAX_SHARED];
	uint64_t clock;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The index of a free slot, or of the least recently used one, which is freed. */
static size_t place_for_new(void)
{
	size_t oldest = 0;

	for (size_t i = 0; i < MAX_SHARED; i++) {
		if (!shared.v[i].ctx)
			return i;
		if (shared.v[i].used < shared.v[oldest].used)
			oldest = i;
	}
	SSL_CTX_free(shared.v[oldest].ctx); /* connections have their own references */
	shared.v[oldest].ctx = NULL;
	return oldest;
}

/* The caller owns a reference to the result. */
static int shared_context(const struct tls_trust *trust, SSL_CTX **ret, struct err *err)
{
	uint8_t digest[SHA256_BYTES];
	size_t i = 0;
	int rc = 0;

	digest_of(trust, digest);
	pthread_mutex_lock(&shared.lock);
	while (i < MAX_SHARED &&
	       (!shared.v[i].ctx || memcmp(shared.v[i].digest, digest, sizeof(digest)) != 0))
		i++;
	if (i == MAX_SHARED) {
		i = place_for_new();
		rc = context_of(trust, &shared.v[i].ctx, err);
		memcpy(shared.v[i].digest, digest, sizeof(digest));
	}
	if (rc == 0) {
		shared.v[i].used = ++shared.clock;
		SSL_CTX_up_ref(shared.v[i].ctx);
		*ret = shared.v[i].ctx;
	}
	pthread_mutex_unlock(&shared.lock);
	return rc;
}

/* Check the settings and get the shared context. */
static int usable_context(const struct tls_trust *trust, SSL_CTX **ret, struct err *err)
{
	switch (trust->mode) {
	case TLS_UNDECIDED:
	case TLS_OFF:
		return err_set(err, ERR_INVALID, "TLS: no certificate of a CA is trusted");
	case TLS_PIN:
		if (!trust->pin)
			return err_set(err, ERR_INVALID, "TLS: there is no pin");
		break;
	case TLS_CA:
	case TLS_ANYONE:
		break;
	}
	if (!trust->cert_pem.n != !trust->key_pem.n)
		return err_set(err, ERR_INVALID, "TLS: a certificate and its key belong together");
	return shared_context(trust, ret, err);
}

int tls_trust_check(const struct tls_trust *trust, struct err *err)
{
	CLEANUP(ctx_freep) SSL_CTX *ctx = NULL;

	return usable_context(trust, &ctx, err);
}

/* The handshake. */

static int shake_hands(struct transport *t, const struct deadline *d, struct err *err)
{
	short wait;
	int rc;

	while ((rc = tls_shake(t, &wait, err)) == 0)
		if (deadline_poll(d, t->fd, wait, "TLS: the server did not answer", err) < 0)
			return -1;
	return rc < 0 ? -1 : 0;
}

static int check_pin(struct transport *t, const char *pin, struct err *err)
{
	CLEANUP(cert_freep) X509 *cert = SSL_get1_peer_certificate(t->ssl);
	char got[TLS_PIN_SIZE];

	if (!cert)
		return err_set(err, ERR_DENIED, "TLS: the server shows no certificate");
	if (tls_pin_of(cert, got, err) < 0)
		return -1;
	if (strlen(pin) == strlen(got) && digest_equal(pin, got, strlen(got)))
		return 0;
	return err_set(err, ERR_DENIED, "TLS: the server's key is %s, expected %.60s", got, pin);
}

/* Set the name for SNI and for the check of the certificate. */
static int expect_name(SSL *ssl, const struct tls_trust *trust, const char *host, struct err *err)
{
	const char *name = trust->server_name ? trust->server_name : host;
	size_t n = strlen(name);
	char own[256];
	struct address ip;
	int ok;

	if (address_ip(&ip, name, 0)) {
		ok = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name);
	} else {
		if (n == 0 || n >= sizeof(own))
			return err_set(err, ERR_INVALID, "TLS: '%.60s' is no name of a server",
				       name);
		memcpy(own, name, n + 1);
		if (own[n - 1] == '.')
			own[n - 1] = '\0';
		SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
		ok = SSL_set_tlsext_host_name(ssl, own) == 1 && SSL_set1_host(ssl, own) == 1;
	}
	return ok == 1 ? 0 : tls_fail(err, ERR_INVALID, "the server's name cannot be used");
}

static int ask_for(SSL *ssl, const char *protocol, struct err *err)
{
	unsigned char list[256];
	size_t n = strlen(protocol);

	if (n == 0 || n >= sizeof(list))
		return err_set(err, ERR_INVALID, "TLS: '%.60s' is no protocol", protocol);
	list[0] = (unsigned char)n;
	memcpy(list + 1, protocol, n);
	return SSL_set_alpn_protos(ssl, list, (unsigned)n + 1) == 0
		       ? 0
		       : tls_fail(err, ERR_INVALID, "the protocol cannot be asked for");
}

int tls_client_begin(struct transport *t, int fd, const struct tls_trust *trust, const char *host,
		     const char *protocol, struct err *err)
{
	CLEANUP(ctx_freep) SSL_CTX *ctx = NULL;
	CLEANUP(close_fdp) int own = fd;

	if (usable_context(trust, &ctx, err) < 0)
		return -1;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_errno(err, errno, "set up a socket");
	if (tls_transport_new(t, ctx, TAKE_FD(own), err) < 0)
		return -1;
	SSL_set_connect_state(t->ssl);
	if (expect_name(t->ssl, trust, host, err) == 0 &&
	    (!protocol || ask_for(t->ssl, protocol, err) == 0))
		return 0;
	t->ops->close(t);
	return -1;
}

int tls_client_check(struct transport *t, const struct tls_trust *trust, const char *protocol,
		     struct err *err)
{
	if (trust->mode == TLS_PIN && check_pin(t, trust->pin, err) < 0)
		return -1;
	if (protocol && !str_is(tls_protocol(t), protocol))
		return err_set(err, ERR_UNAVAILABLE, "TLS: the server does not speak %s", protocol);
	return 0;
}

int tls_connect(struct transport *t, int fd, const struct tls_trust *trust, const char *host,
		const struct deadline *d, struct err *err)
{
	if (tls_client_begin(t, fd, trust, host, NULL, err) < 0)
		return -1;
	if (shake_hands(t, d, err) == 0 && tls_client_check(t, trust, NULL, err) == 0)
		return 0;
	t->ops->close(t);
	return -1;
}
