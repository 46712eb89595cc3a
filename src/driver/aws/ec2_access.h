#pragma once
/*
 * ec2_access - how the master on an instance is known and spoken to, left in the bucket of its run as
 * masters/<run>.json: {run, install, url, pin, token, expires}.  Whoever may read the bucket, which is
 * private and encrypted, may act for the install, and so may read this.
 */
struct arena;
struct aws;
struct aws_work;
struct deadline;
struct driver_master;
struct err;

int ec2_access_put(const struct aws_work *w, const struct driver_master *at, struct err *err);
/* One that is not there is a success. */
int ec2_access_remove(const struct aws_work *w, struct err *err);
/* ERR_NOT_FOUND; ERR_INVALID if it is not the record of that run and install. */
int ec2_access_get(struct aws *s, const char *bucket, const char *account, const char *install,
		   const char *run, const struct deadline *d, struct driver_master *ret,
		   struct err *err);
