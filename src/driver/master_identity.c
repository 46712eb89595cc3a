#include "driver/master_identity.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "driver/driver.h"
#include "net/digest.h"
#include "net/tls_key.h"

#define KEY_MAX 1024

int master_identity(const struct driver_row *row, struct driver_master *ret, struct buf *pem,
		    struct err *err)
{
	CLEANUP(buf_release) struct buf own = {0};
	uint8_t token[SHA256_BYTES];
	struct str secret = str_from(row->secret ? row->secret : "");

	buf_init(&own, KEY_MAX);
	if (tls_key_of_secret(secret, pem ? pem : &own, ret->pin, err) < 0)
		return -1;
	hmac_sha256(secret.p, secret.n, "regatta token", 13, token);
	hex_encode(token, sizeof(token), ret->token);
	return 0;
}
