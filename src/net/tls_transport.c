/*
 * The transport over OpenSSL, and the settings that both sides share.
 */
#include "net/tls_transport.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hex.h"
#include "net/digest.h"
#include "net/transport.h"

#define MAX_SPKI 2048	   /* DER of a public key: RSA 8192 is 1062 */
#define RECORD (16 * 1024) /* plain bytes of one record */
#define PIN_PREFIX "sha256//"
#define PIN_LENGTH 52 /* with the 44 characters of 32 bytes in base64 */

int tls_fail(struct err *err, int kind, const char *what)
{
	unsigned long code = ERR_peek_error();
	const char *why = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return err_set(err, (enum err_kind)kind, "TLS: %s%s%s", what, why ? ": " : "",
		       why ? why : "");
}

/* The result after a failed OpenSSL call: -1 with errno, or 0 at the end of input.  *crossed is set when
 * a read has to wait for a writable socket, or a write for a readable one. */
static ssize_t stopped(SSL *ssl, int rc, int crossing, bool *crossed)
{
	int why = SSL_get_error(ssl, rc);

	*crossed = why == crossing;
	switch (why) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		errno = EAGAIN;
		break;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		errno = errno ? errno : ECONNRESET;
		break;
	default:
		/* An end of file without close_notify: the input may be truncated. */
		errno = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING
				? ECONNRESET
				: EPROTO;
	}
	ERR_clear_error();
	return -1;
}

static ssize_t tls_read(struct transport *t, void *p, size_t n)
{
	size_t got;

	t->read_wants_write = false;
	ERR_clear_error();
	errno = 0;
	int rc = SSL_read_ex(t->ssl, p, n, &got);

	t->drained = false;
	if (rc == 1)
		return (ssize_t)got;
	ssize_t end = stopped(t->ssl, rc, SSL_ERROR_WANT_WRITE, &t->read_wants_write);

	t->drained = end < 0 && errno == EAGAIN;
	return end;
}

/* SSL_read returns at most one record: repeat until OpenSSL holds no more or the parts are full.  What has come to the
 * socket meanwhile the loop reports. */
static ssize_t tls_readv(struct transport *t, struct iovec *iov, size_t n)
{
	ssize_t total = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t done = 0; done < iov[i].iov_len;) {
			ssize_t got =
				tls_read(t, (char *)iov[i].iov_base + done, iov[i].iov_len - done);

			if (got <= 0) /* the next call returns the same error */
				return total > 0 ? total : got;
			done += (size_t)got;
			total += got;
			if (!SSL_has_pending(t->ssl))
				return total;
		}
	}
	return total;
}

/* OpenSSL's buffer may hold a part of a record: it says that something is there until the rest has come. */
static bool tls_pending(const struct transport *t)
{
	return (SSL_has_pending(t->ssl) && !t->drained) ||
	       (SSL_get_shutdown(t->ssl) & SSL_RECEIVED_SHUTDOWN);
}

static ssize_t write_some(struct transport *t, const void *p, size_t n)
{
	size_t sent;

	t->write_wants_read = false;
	ERR_clear_error();
	errno = 0;
	int rc = SSL_write_ex(t->ssl, p, n, &sent);

	if (rc == 1)
		return (ssize_t)sent;
	ssize_t end = stopped(t->ssl, rc, SSL_ERROR_WANT_READ, &t->write_wants_read);

	if (end == 0)
		errno = EPIPE;
	return -1;
}

/* After EAGAIN the caller repeats the call with the same bytes, maybe followed by more, as OpenSSL's
 * partial-write modes require. */
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
	SSL_shutdown(t->ssl); /* errors are ignored: the peer sees the end of file at least */
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
	.readv = tls_readv,
	.writev = tls_writev,
	.send_file = tls_send_file,
	.pending = tls_pending,
	.end_output = tls_end_output,
	.close = tls_close,
};

int tls_transport_new(struct transport *t, SSL_CTX *ctx, int fd, struct err *err)
{
	SSL *ssl = SSL_new(ctx);

	if (!ssl || SSL_set_fd(ssl, fd) != 1) {
		SSL_free(ssl);
		close(fd);
		return tls_fail(err, ERR_IO, "a connection cannot be set up");
	}
	*t = (struct transport){.fd = fd, .ops = &tls_ops, .ssl = ssl};
	return 0;
}

int tls_shake(struct transport *t, short *ret_poll, struct err *err)
{
	ERR_clear_error();
	int rc = SSL_do_handshake(t->ssl);

	if (rc == 1)
		return 1;
	int why = SSL_get_error(t->ssl, rc);

	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
		*ret_poll = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
		return 0;
	}
	if (SSL_get_verify_mode(t->ssl) == SSL_VERIFY_PEER &&
	    SSL_get_verify_result(t->ssl) != X509_V_OK) {
		ERR_clear_error();
		return err_set(err, ERR_DENIED, "TLS: the server is not trusted: %s",
			       X509_verify_cert_error_string(SSL_get_verify_result(t->ssl)));
	}
	return tls_fail(err, ERR_UNAVAILABLE,
			SSL_is_server(t->ssl) ? "the client does not shake hands"
					      : "the server does not shake hands");
}

bool tls_is_server(const struct transport *t)
{
	return SSL_is_server(t->ssl);
}

struct str tls_protocol(const struct transport *t)
{
	const unsigned char *p = NULL;
	unsigned n = 0;

	SSL_get0_alpn_selected(t->ssl, &p, &n);
	return n > 0 ? (struct str){(const char *)p, n} : STR("");
}

void tls_read_ahead(struct transport *t)
{
	SSL_set_read_ahead(t->ssl, 1);
}

void tls_expect_goodbye(struct transport *t)
{
	SSL_clear_options(t->ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);
}

int tls_context_new(const SSL_METHOD *method, SSL_CTX **ret, struct err *err)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1) {
		SSL_CTX_free(ctx);
		return tls_fail(err, ERR_IO, "cannot be set up");
	}
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_options(ctx,
			    SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	*ret = ctx;
	return 0;
}

bool tls_pin_ok(const char *text)
{
	return strncmp(text, PIN_PREFIX, strlen(PIN_PREFIX)) == 0 && strlen(text) == PIN_LENGTH;
}

static void put_pin(const uint8_t *der, size_t n, char out[static TLS_PIN_SIZE])
{
	uint8_t hash[SHA256_BYTES];
	struct buf text;

	sha256_of(der, n, hash);
	buf_init(&text, TLS_PIN_SIZE - 1);
	buf_addz(&text, PIN_PREFIX);
	b64_encode(&text, hash, sizeof(hash));
	snprintf(out, TLS_PIN_SIZE, "%.*s", STR_ARG(buf_str(&text)));
	buf_release(&text);
}

int tls_pin_of(X509 *cert, char out[static TLS_PIN_SIZE], struct err *err)
{
	uint8_t der[MAX_SPKI], *p = der;
	int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), NULL);

	if (n <= 0 || (size_t)n > sizeof(der) ||
	    i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &p) != n)
		return tls_fail(err, ERR_INVALID, "the certificate's key cannot be read");
	put_pin(der, (size_t)n, out);
	return 0;
}

int tls_pin_of_key(EVP_PKEY *key, char out[static TLS_PIN_SIZE], struct err *err)
{
	uint8_t der[MAX_SPKI], *p = der;
	int n = i2d_PUBKEY(key, NULL);

	if (n <= 0 || (size_t)n > sizeof(der) || i2d_PUBKEY(key, &p) != n)
		return tls_fail(err, ERR_INVALID, "the key cannot be read");
	put_pin(der, (size_t)n, out);
	return 0;
}
