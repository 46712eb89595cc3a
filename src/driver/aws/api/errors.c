#include "driver/aws/api/errors.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* The core keeps 159 bytes of a reason, and the request id is at its end. */
#define LINE 140
#define LEAST 48 /* bytes that the message always gets */

enum match { WHOLE, PREFIX, SUFFIX };

enum {
	AGAIN = 1,
	OPEN = 2, /* the service may have done something */
	CLOCK = 4,
	EXPIRY = 8,
	PERMISSION = 16,
};

struct rule {
	const char *code;
	enum match match;
	enum err_kind kind;
	int flags;
	const char *message; /* only if the message has this in it */
};

/* The first row that matches counts. */
static const struct rule rules[] = {
	/* too fast */
	{"RequestLimitExceeded", WHOLE, ERR_THROTTLED, AGAIN, NULL},
	{"Throttl", PREFIX, ERR_THROTTLED, AGAIN, NULL}, /* Throttling, ThrottledException, ... */
	{"RequestThrottled", PREFIX, ERR_THROTTLED, AGAIN, NULL},
	{"EC2ThrottledException", WHOLE, ERR_THROTTLED, AGAIN, NULL},
	{"TooManyRequestsException", WHOLE, ERR_THROTTLED, AGAIN, NULL},
	{"ProvisionedThroughputExceededException", WHOLE, ERR_THROTTLED, AGAIN, NULL},
	{"BandwidthLimitExceeded", WHOLE, ERR_THROTTLED, AGAIN, NULL},
	{"SlowDown", WHOLE, ERR_THROTTLED, AGAIN, NULL},
	{"PriorRequestNotComplete", WHOLE, ERR_THROTTLED, AGAIN, NULL},

	/* nothing left here and now: another zone or type may have it */
	{"InsufficientInstanceCapacity", WHOLE, ERR_CAPACITY, 0, NULL},
	{"InsufficientHostCapacity", WHOLE, ERR_CAPACITY, 0, NULL},
	{"InsufficientReservedInstanceCapacity", WHOLE, ERR_CAPACITY, 0, NULL},
	{"InsufficientCapacity", PREFIX, ERR_CAPACITY, 0, NULL},
	{"InsufficientVolumeCapacity", WHOLE, ERR_CAPACITY, 0, NULL},
	{"InsufficientFreeAddressesInSubnet", WHOLE, ERR_CAPACITY, 0, NULL},
	{"UnfulfillableCapacity", WHOLE, ERR_CAPACITY, 0, NULL},
	{"ReservationCapacityExceeded", WHOLE, ERR_CAPACITY, 0, NULL},
	{"SpotMaxPriceTooLow", WHOLE, ERR_CAPACITY, 0, NULL},
	{"capacity-not-available", WHOLE, ERR_CAPACITY, 0, NULL},
	{"Unsupported", WHOLE, ERR_CAPACITY, 0, "Availability Zone"},
	{"Unsupported", PREFIX, ERR_INVALID, 0, NULL},

	/* the account may not have more */
	{"MaxSpotInstanceCountExceeded", WHOLE, ERR_QUOTA, 0, NULL},
	{"MaxFleetCountExceeded", WHOLE, ERR_QUOTA, 0, NULL},
	{"TooManyBuckets", WHOLE, ERR_QUOTA, 0, NULL},
	{"ServiceQuotaExceeded", PREFIX, ERR_QUOTA, 0, NULL},
	{"LimitExceeded", SUFFIX, ERR_QUOTA, 0,
	 NULL}, /* VcpuLimitExceeded, InstanceLimitExceeded */
	{"LimitExceededException", SUFFIX, ERR_QUOTA, 0, NULL},
	{"ResourceLimitExceeded", PREFIX, ERR_QUOTA, 0, NULL},

	/* who asks, and when */
	{"RequestTimeTooSkewed", WHOLE, ERR_DENIED, CLOCK, NULL},
	{"RequestInTheFuture", WHOLE, ERR_DENIED, CLOCK, NULL},
	{"RequestExpired", WHOLE, ERR_DENIED, CLOCK | EXPIRY, NULL},
	{"SignatureDoesNotMatch", WHOLE, ERR_DENIED, CLOCK, NULL},
	{"InvalidSignatureException", WHOLE, ERR_DENIED, CLOCK, NULL},
	{"AuthFailure", WHOLE, ERR_DENIED, CLOCK | EXPIRY, NULL},
	{"ExpiredToken", PREFIX, ERR_DENIED, EXPIRY, NULL},
	{"TokenRefreshRequired", WHOLE, ERR_DENIED, EXPIRY, NULL},
	{"InvalidToken", WHOLE, ERR_DENIED, EXPIRY, NULL},
	{"InvalidClientTokenId", WHOLE, ERR_DENIED, EXPIRY, NULL},
	{"UnrecognizedClientException", WHOLE, ERR_DENIED, EXPIRY, NULL},
	{"InvalidAccessKeyId", WHOLE, ERR_DENIED, EXPIRY, NULL},
	{"UnauthorizedOperation", WHOLE, ERR_DENIED, PERMISSION, NULL},
	{"AccessDenied", PREFIX, ERR_DENIED, PERMISSION, NULL},
	{"NotAuthorized", PREFIX, ERR_DENIED, PERMISSION, NULL},
	{"OperationNotPermitted", WHOLE, ERR_DENIED, 0, NULL}, /* termination protection */
	{"MissingAuthenticationToken", PREFIX, ERR_DENIED, 0, NULL},
	{"IncompleteSignature", PREFIX, ERR_DENIED, 0, NULL},
	{"OptInRequired", WHOLE, ERR_DENIED, 0, NULL},
	{"PendingVerification", WHOLE, ERR_DENIED, 0, NULL},
	{"AllAccessDisabled", WHOLE, ERR_DENIED, 0, NULL},
	{"AccountProblem", WHOLE, ERR_DENIED, 0, NULL},
	{"NotSignedUp", WHOLE, ERR_DENIED, 0, NULL},
	{"Blocked", WHOLE, ERR_DENIED, 0, NULL},
	{"IDPCommunicationError", WHOLE, ERR_UNAVAILABLE, AGAIN, NULL},

	/* not there */
	{".NotFound", SUFFIX, ERR_NOT_FOUND, 0, NULL},
	{"NotFoundException", SUFFIX, ERR_NOT_FOUND, 0, NULL},
	{"NotFoundError", SUFFIX, ERR_NOT_FOUND, 0, NULL},
	{"NoSuch", PREFIX, ERR_NOT_FOUND, 0, NULL}, /* NoSuchEntity, NoSuchBucket, NoSuchKey, ... */
	{"NotFound", WHOLE, ERR_NOT_FOUND, 0, NULL},
	{"ParameterNotFound", WHOLE, ERR_NOT_FOUND, 0, NULL},
	{"InvalidPlacementGroup.Unknown", WHOLE, ERR_NOT_FOUND, 0, NULL},

	/* there already, in use, or in a state that forbids it */
	{".Duplicate", SUFFIX, ERR_CONFLICT, 0, NULL},
	{".Conflict", SUFFIX, ERR_CONFLICT, 0, NULL},
	{".InUse", SUFFIX, ERR_CONFLICT, 0, NULL},
	{"InUse", SUFFIX, ERR_CONFLICT, 0, NULL},
	{"AlreadyExists", SUFFIX, ERR_CONFLICT, 0, NULL},
	{"AlreadyExistsException", SUFFIX, ERR_CONFLICT, 0, NULL},
	{"AlreadyExistsFault", SUFFIX, ERR_CONFLICT, 0, NULL},
	{"BucketAlreadyOwnedByYou", WHOLE, ERR_CONFLICT, 0, NULL},
	{"IdempotentParameterMismatch", PREFIX, ERR_CONFLICT, 0, NULL},
	{"DependencyViolation", WHOLE, ERR_CONFLICT, 0, NULL},
	{"DeleteConflict", PREFIX, ERR_CONFLICT, 0, NULL},
	{"ResourceInUse", PREFIX, ERR_CONFLICT, 0, NULL},
	{"BucketNotEmpty", WHOLE, ERR_CONFLICT, 0, NULL},
	{"Incorrect", PREFIX, ERR_CONFLICT, 0, NULL}, /* IncorrectInstanceState, IncorrectState */
	{"PreconditionFailed", WHOLE, ERR_CONFLICT, 0, NULL},
	{"ConditionalRequestConflict", WHOLE, ERR_CONFLICT, 0, NULL},
	{"ScalingActivityInProgress", PREFIX, ERR_CONFLICT, 0, NULL},
	{"OperationAborted", WHOLE, ERR_CONFLICT, AGAIN, NULL},
	{"EntityTemporarilyUnmodifiable", PREFIX, ERR_CONFLICT, AGAIN, NULL},
	{"ConcurrentModification", PREFIX, ERR_CONFLICT, AGAIN, NULL},

	/* the service itself */
	{"TemporaryRedirect", WHOLE, ERR_UNAVAILABLE, AGAIN, NULL}, /* of a new bucket */
	{"RequestTimeout", PREFIX, ERR_TIMEOUT, AGAIN, NULL},
	{"Internal", PREFIX, ERR_UNAVAILABLE, AGAIN | OPEN, NULL},
	{"ServerInternal", WHOLE, ERR_UNAVAILABLE, AGAIN | OPEN, NULL},
	{"ServiceUnavailable", PREFIX, ERR_UNAVAILABLE, AGAIN | OPEN, NULL},
	{"Unavailable", WHOLE, ERR_UNAVAILABLE, AGAIN | OPEN, NULL},
	{"ServiceFailure", PREFIX, ERR_UNAVAILABLE, AGAIN | OPEN, NULL},
};

static bool fits(const struct rule *r, const char *code, const char *message)
{
	struct str c = str_from(code), word = str_from(r->code);

	if (r->message && !strstr(message, r->message))
		return false;
	switch (r->match) {
	case WHOLE:
		return str_eq(c, word);
	case PREFIX:
		return str_starts(c, word);
	case SUFFIX:
		return str_ends(c, word);
	}
	return false;
}

static struct aws_fault fault(enum err_kind kind, int flags)
{
	return (struct aws_fault){
		.kind = kind,
		.again = flags & AGAIN,
		.sure = !(flags & OPEN),
		.by_clock = flags & CLOCK,
		.by_expiry = flags & EXPIRY,
		.permission = flags & PERMISSION,
	};
}

/* A code that is not in the table, or none at all. */
static struct aws_fault by_status(int status)
{
	if (status >= 500 || status < 300)
		return fault(ERR_UNAVAILABLE, AGAIN | OPEN);
	switch (status) {
	case 401:
	case 403:
		return fault(ERR_DENIED, status == 403 ? PERMISSION : 0);
	case 404:
	case 410:
		return fault(ERR_NOT_FOUND, 0);
	case 408:
		return fault(ERR_TIMEOUT, AGAIN);
	case 409:
	case 412:
		return fault(ERR_CONFLICT, 0);
	case 429:
		return fault(ERR_THROTTLED, AGAIN);
	default:
		return fault(ERR_INVALID, 0);
	}
}

struct aws_fault aws_fault_of(int status, const char *code, const char *message)
{
	for (size_t i = 0; *code && i < sizeof(rules) / sizeof(rules[0]); i++)
		if (fits(&rules[i], code, message))
			return fault(rules[i].kind, rules[i].flags);
	return by_status(status);
}

/* The message on one line, without the encoded authorization message at its end. */
static void shorten(const char *message, char *out, size_t size)
{
	const char *end = strstr(message, " Encoded authorization failure message");
	size_t n = end ? (size_t)(end - message) : strlen(message);

	if (n >= size) {
		n = size - 4;
		while (n > 0 && (message[n] & 0xc0) == 0x80)
			n--; /* not in the middle of a character */
		snprintf(out, size, "%.*s...", (int)n, message);
	} else {
		snprintf(out, size, "%.*s", (int)n, message);
	}
	for (char *p = out; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
}

/* A call may need more than its own action (tags, a role that is passed): AWS says which is missing. */
static void name_action(const char *message, const char *action, char *text, size_t size)
{
	static const char words[] = "not authorized to perform: ";
	const char *missing = strstr(message, words);

	if (missing) {
		missing += strlen(words);
		snprintf(text, size, "not authorized to perform %.*s", (int)strcspn(missing, " ,"),
			 missing);
	} else if (!strstr(text, action)) {
		snprintf(text, size, "not authorized to perform %.90s", action);
	}
}

int aws_fault_err(struct err *err, const struct aws_fault *f, const char *code, const char *message,
		  const char *request_id, const char *action)
{
	char text[128], id[80] = "";
	size_t taken, room;

	if (*request_id)
		snprintf(id, sizeof(id), " (request id %.60s)", request_id);
	taken = strlen(code) + strlen(id);
	room = taken + LEAST < LINE ? LINE - taken : LEAST;
	shorten(message, text, room < sizeof(text) ? room : sizeof(text));
	if (f->permission)
		name_action(message, action, text, sizeof(text));
	return err_set(err, f->kind, "%.60s%s%s%s", *code ? code : action, *text ? ": " : "", text,
		       id);
}
