#pragma once
/* master_identity - who the master on a resource of a run is: key and token, made from the secret of its row. */
struct buf;
struct driver_master;
struct driver_row;
struct err;

/* Sets pin and token; appends the key to `pem` unless it is NULL. */
int master_identity(const struct driver_row *row, struct driver_master *ret, struct buf *pem,
		    struct err *err);
