#include "net/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
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
#include "base/hex.h"
#include "base/path.h"
#include "net/digest.h"
#include "net/transport.h"

#define VALID_DAYS 3650
#define PEM_MAX (64 * 1024)
#define MAX_SPKI 1024
#define RECORD (16 * 1024) /* plain bytes of one record */
#define PIN_PREFIX "sha256//"

struct tls_server {
	SSL_CTX *ctx;
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

static int fail(struct err *err, enum err_kind kind, const char *what)
{
	unsigned long code = ERR_peek_error();
	const char *why = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return err_set(err, kind, "TLS: %s%s%s", what, why ? ": " : "", why ? why : "");
}

/* The transport. */

/* -1 with errno, or 0 at the end of input. */
static ssize_t stopped(SSL *ssl, int rc)
{
	switch (SSL_get_error(ssl, rc)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE: /* handshakes fit a fresh socket: this is a full one */
		errno = EAGAIN;
		break;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		errno = errno ? errno : ECONNRESET;
		break;
	default:
		errno = EPROTO;
	}
	ERR_clear_error();
	return -1;
}

static ssize_t tls_read(struct transport *t, void *p, size_t n)
{
	size_t got;

	ERR_clear_error();
	errno = 0;
	int rc = SSL_read_ex(t->ssl, p, n, &got);

	return rc == 1 ? (ssize_t)got : stopped(t->ssl, rc);
}

static ssize_t write_some(struct transport *t, const void *p, size_t n)
{
	size_t sent;

	ERR_clear_error();
	errno = 0;
	int rc = SSL_write_ex(t->ssl, p, n, &sent);

	if (rc == 1)
		return (ssize_t)sent;
	ssize_t end = stopped(t->ssl, rc);

	if (end == 0)
		errno = EPIPE;
	return -1;
}

/* A call that met a full socket is repeated by the caller with the same bytes, maybe more: that is
 * what the partial-write modes ask for. */
static ssize_t tls_writev(struct transport *t, struct iovec *iov, size_t n)
{
	ssize_t total = 0;

	for (size_t i = 0; i < n; i++) {
		size_t done = 0;

		while (done < iov[i].iov_len) {
			ssize_t sent = write_some(t, (char *)iov[i].iov_base + done,
						  iov[i].iov_len - done);

			if (sent < 0)
				return total > 0 && errno == EAGAIN ? total : -1;
			done += (size_t)sent;
			total += sent;
		}
	}
	return total;
}

static ssize_t tls_send_file(struct transport *t, int fd, off_t *off, size_t n)
{
	char chunk[RECORD];
	size_t got;

	if (file_pread_full(fd, chunk, n < sizeof(chunk) ? n : sizeof(chunk), *off, &got, NULL) <
	    0) {
		errno = EIO;
		return -1;
	}
	if (got == 0)
		return 0;
	ssize_t sent = write_some(t, chunk, got);

	if (sent > 0)
		*off += sent;
	return sent;
}

static void tls_end_output(struct transport *t)
{
	ERR_clear_error();
	SSL_shutdown(t->ssl); /* a client that does not hear it sees the end of the stream */
	ERR_clear_error();
	shutdown(t->fd, SHUT_WR);
}

static void tls_close(struct transport *t)
{
	SSL_free(t->ssl);
	t->ssl = NULL;
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

static const struct transport_ops tls_ops = {
	.read = tls_read,
	.writev = tls_writev,
	.send_file = tls_send_file,
	.end_output = tls_end_output,
	.close = tls_close,
};

static void begin(SSL_CTX *ctx, struct transport *t, int fd)
{
	SSL *ssl = SSL_new(ctx);

	if (!ssl || SSL_set_fd(ssl, fd) != 1)
		abort(); /* out of memory */
	*t = (struct transport){.fd = fd, .ops = &tls_ops, .ssl = ssl};
}

static int new_context(const SSL_METHOD *method, SSL_CTX **ret, struct err *err)
{
	CLEANUP(ctx_freep) SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
		return fail(err, ERR_IO, "cannot be set up");
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					 SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
	/* Nothing but answers comes from the server: an idle connection that is readable is over. */
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	*ret = TAKE_PTR(ctx);
	return 0;
}

/* The identity. */

static int pin_of(X509 *cert, char out[static TLS_PIN_SIZE], struct err *err)
{
	uint8_t der[MAX_SPKI], *p = der, hash[SHA256_BYTES];
	int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), NULL);
	struct buf text;

	if (n <= 0 || (size_t)n > sizeof(der) ||
	    i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &p) != n)
		return fail(err, ERR_INVALID, "the certificate's key cannot be read");
	sha256_of(der, (size_t)n, hash);
	buf_init(&text, TLS_PIN_SIZE - 1);
	buf_addz(&text, PIN_PREFIX);
	b64_encode(&text, hash, sizeof(hash));
	snprintf(out, TLS_PIN_SIZE, "%.*s", STR_ARG(buf_str(&text)));
	buf_release(&text);
	return 0;
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
		return fail(err, ERR_IO, "a certificate cannot be made");
	*ret = TAKE_PTR(cert);
	return 0;
}

static int write_pem(const char *path, BIO *bio, struct err *err)
{
	char *p;
	long n = BIO_get_mem_data(bio, &p);

	return file_write_atomic(path, (struct str){p, (size_t)n}, 0600, true, err);
}

static int make_identity(const char *key_path, const char *cert_path, struct err *err)
{
	CLEANUP(key_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
	CLEANUP(cert_freep) X509 *cert = NULL;
	CLEANUP(bio_freep) BIO *key_text = BIO_new(BIO_s_mem());
	CLEANUP(bio_freep) BIO *cert_text = BIO_new(BIO_s_mem());

	if (!key)
		return fail(err, ERR_IO, "a key cannot be made");
	if (self_sign(key, &cert, err) < 0)
		return -1;
	if (PEM_write_bio_PrivateKey(key_text, key, NULL, NULL, 0, NULL, NULL) != 1 ||
	    PEM_write_bio_X509(cert_text, cert) != 1)
		return fail(err, ERR_IO, "the key cannot be written");
	/* The key last: a certificate alone is made anew. */
	if (write_pem(cert_path, cert_text, err) < 0)
		return -1;
	return write_pem(key_path, key_text, err);
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
		fail(err, ERR_INVALID, "the key and the certificate are no pair");
		return err_wrap(err, "'%s' and '%s' (remove both to get new ones)", key_path,
				cert_path);
	}
	return pin_of(cert, pin, err);
}

int tls_server_open(const char *dir, struct tls_server **ret, struct err *err)
{
	CLEANUP(freep) char *key_path = path_join(dir, "tls.key");
	CLEANUP(freep) char *cert_path = path_join(dir, "tls.crt");
	CLEANUP(ctx_freep) SSL_CTX *ctx = NULL;
	char pin[TLS_PIN_SIZE];

	if (!file_exists(key_path) && make_identity(key_path, cert_path, err) < 0)
		return -1;
	if (new_context(TLS_server_method(), &ctx, err) < 0 ||
	    load_identity(ctx, key_path, cert_path, pin, err) < 0)
		return -1;
	struct tls_server *s = xcalloc(1, sizeof(*s));

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

void tls_accept(struct tls_server *s, struct transport *t, int fd)
{
	begin(s->ctx, t, fd);
	SSL_set_accept_state(t->ssl);
}

/* The client's side. */

static int shake_hands(struct transport *t, int timeout_ms, struct err *err)
{
	int64_t give_up = clock_boot_ms() + timeout_ms;

	for (;;) {
		ERR_clear_error();
		int rc = SSL_do_handshake(t->ssl);

		if (rc == 1)
			return 0;
		int why = SSL_get_error(t->ssl, rc);
		if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
			return fail(err, ERR_UNAVAILABLE, "the server does not shake hands");
		struct pollfd p = {.fd = t->fd,
				   .events = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT};
		int64_t left = give_up - clock_boot_ms();
		int n = poll(&p, 1, timeout_ms < 0 ? -1 : left > 0 ? (int)left : 0);

		if (n == 0)
			return err_set(err, ERR_TIMEOUT, "TLS: the server did not answer in time");
		if (n < 0 && errno != EINTR)
			return err_errno(err, errno, "wait for the server");
	}
}

static int check_pin(struct transport *t, const char *pin, struct err *err)
{
	CLEANUP(cert_freep) X509 *cert = SSL_get1_peer_certificate(t->ssl);
	char got[TLS_PIN_SIZE];

	if (!cert)
		return err_set(err, ERR_DENIED, "TLS: the server shows no certificate");
	if (pin_of(cert, got, err) < 0)
		return -1;
	if (strlen(pin) == strlen(got) && digest_equal(pin, got, strlen(got)))
		return 0;
	return err_set(err, ERR_DENIED, "TLS: the server's key is %s, expected %.60s", got, pin);
}

int tls_connect(struct transport *t, int fd, const char *pin, int timeout_ms, struct err *err)
{
	CLEANUP(ctx_freep) SSL_CTX *ctx = NULL;
	CLEANUP(close_fdp) int own = fd;

	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_errno(err, errno, "set up a socket");
	if (new_context(TLS_client_method(), &ctx, err) < 0)
		return -1;
	begin(ctx, t, TAKE_FD(own)); /* the connection keeps the context */
	SSL_set_connect_state(t->ssl);
	SSL_set_verify(t->ssl, SSL_VERIFY_NONE, NULL); /* the pin below says more than a chain */
	if (shake_hands(t, timeout_ms, err) == 0 && check_pin(t, pin, err) == 0)
		return 0;
	t->ops->close(t);
	return -1;
}
