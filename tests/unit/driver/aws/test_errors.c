#include "unit.h"

#include <string.h>

#include "driver/aws/api/errors.h"

static void codes_have_the_kinds_that_the_core_knows(void **state)
{
	static const struct {
		const char *code;
		enum err_kind kind;
		bool again;
	} cases[] = {
		{"InsufficientInstanceCapacity", ERR_CAPACITY, false},
		{"InsufficientHostCapacity", ERR_CAPACITY, false},
		{"InsufficientReservedInstanceCapacity", ERR_CAPACITY, false},
		{"InsufficientFreeAddressesInSubnet", ERR_CAPACITY, false},
		{"UnfulfillableCapacity", ERR_CAPACITY, false},
		{"SpotMaxPriceTooLow", ERR_CAPACITY, false},
		{"VcpuLimitExceeded", ERR_QUOTA, false},
		{"InstanceLimitExceeded", ERR_QUOTA, false},
		{"MaxSpotInstanceCountExceeded", ERR_QUOTA, false},
		{"SecurityGroupLimitExceeded", ERR_QUOTA, false},
		{"AddressLimitExceeded", ERR_QUOTA, false},
		{"LimitExceeded", ERR_QUOTA, false},
		{"ServiceQuotaExceededException", ERR_QUOTA, false},
		{"TooManyBuckets", ERR_QUOTA, false},
		{"RequestLimitExceeded", ERR_THROTTLED, true},
		{"Throttling", ERR_THROTTLED, true},
		{"ThrottlingException", ERR_THROTTLED, true},
		{"TooManyRequestsException", ERR_THROTTLED, true},
		{"SlowDown", ERR_THROTTLED, true},
		{"UnauthorizedOperation", ERR_DENIED, false},
		{"AccessDenied", ERR_DENIED, false},
		{"AccessDeniedException", ERR_DENIED, false},
		{"AuthFailure", ERR_DENIED, false},
		{"ExpiredToken", ERR_DENIED, false},
		{"ExpiredTokenException", ERR_DENIED, false},
		{"RequestExpired", ERR_DENIED, false},
		{"RequestTimeTooSkewed", ERR_DENIED, false},
		{"SignatureDoesNotMatch", ERR_DENIED, false},
		{"InvalidClientTokenId", ERR_DENIED, false},
		{"OptInRequired", ERR_DENIED, false},
		{"OperationNotPermitted", ERR_DENIED, false},
		{"InvalidInstanceID.NotFound", ERR_NOT_FOUND, false},
		{"InvalidGroup.NotFound", ERR_NOT_FOUND, false},
		{"InvalidLaunchTemplateName.NotFoundException", ERR_NOT_FOUND, false},
		{"NoSuchEntity", ERR_NOT_FOUND, false},
		{"NoSuchBucket", ERR_NOT_FOUND, false},
		{"NoSuchKey", ERR_NOT_FOUND, false},
		{"ParameterNotFound", ERR_NOT_FOUND, false},
		{"InvalidPlacementGroup.Unknown", ERR_NOT_FOUND, false},
		{"InvalidGroup.Duplicate", ERR_CONFLICT, false},
		{"InvalidPermission.Duplicate", ERR_CONFLICT, false},
		{"InvalidSubnet.Conflict", ERR_CONFLICT, false},
		{"InvalidGroup.InUse", ERR_CONFLICT, false},
		{"InvalidLaunchTemplateName.AlreadyExistsException", ERR_CONFLICT, false},
		{"EntityAlreadyExists", ERR_CONFLICT, false},
		{"BucketAlreadyExists", ERR_CONFLICT, false},
		{"BucketAlreadyOwnedByYou", ERR_CONFLICT, false},
		{"IdempotentParameterMismatch", ERR_CONFLICT, false},
		{"DependencyViolation", ERR_CONFLICT, false},
		{"DeleteConflict", ERR_CONFLICT, false},
		{"IncorrectInstanceState", ERR_CONFLICT, false},
		{"BucketNotEmpty", ERR_CONFLICT, false},
		{"OperationAborted", ERR_CONFLICT, true},
		{"InternalError", ERR_UNAVAILABLE, true},
		{"InternalFailure", ERR_UNAVAILABLE, true},
		{"Unavailable", ERR_UNAVAILABLE, true},
		{"ServiceUnavailable", ERR_UNAVAILABLE, true},
		{"TemporaryRedirect", ERR_UNAVAILABLE, true},
		{"RequestTimeout", ERR_TIMEOUT, true},
		{"InvalidParameterValue", ERR_INVALID, false},
		{"InvalidAMIID.Malformed", ERR_INVALID, false},
		{"MissingParameter", ERR_INVALID, false},
		{"VPCIdNotSpecified", ERR_INVALID, false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct aws_fault f = aws_fault_of(400, cases[i].code, "");

		if (f.kind != cases[i].kind || f.again != cases[i].again)
			fail_msg("%s is %s", cases[i].code, err_kind_name(f.kind));
	}
}

static void a_type_that_a_zone_lacks_is_capacity_and_otherwise_a_mistake(void **state)
{
	(void)state;
	assert_int_equal(aws_fault_of(400, "Unsupported",
				      "Your requested instance type (x) is not supported in your "
				      "requested Availability Zone (us-east-1e).")
				 .kind,
			 ERR_CAPACITY);
	assert_int_equal(aws_fault_of(400, "Unsupported", "The requested configuration").kind,
			 ERR_INVALID);
	assert_int_equal(aws_fault_of(400, "UnsupportedOperation", "").kind, ERR_INVALID);
}

static void the_status_decides_without_a_known_code(void **state)
{
	static const struct {
		int status;
		enum err_kind kind;
		bool again, sure;
	} cases[] = {
		{400, ERR_INVALID, false, true},     {401, ERR_DENIED, false, true},
		{403, ERR_DENIED, false, true},	     {404, ERR_NOT_FOUND, false, true},
		{408, ERR_TIMEOUT, true, true},	     {409, ERR_CONFLICT, false, true},
		{412, ERR_CONFLICT, false, true},    {429, ERR_THROTTLED, true, true},
		{500, ERR_UNAVAILABLE, true, false}, {503, ERR_UNAVAILABLE, true, false},
		{200, ERR_UNAVAILABLE, true, false}, {301, ERR_INVALID, false, true},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct aws_fault f = aws_fault_of(cases[i].status, "SomethingNew", "");

		assert_int_equal(f.kind, cases[i].kind);
		assert_int_equal(f.again, cases[i].again);
		assert_int_equal(f.sure, cases[i].sure);
	}
	/* The service broke down: perhaps after it had done it. */
	assert_false(aws_fault_of(500, "InternalError", "").sure);
	assert_true(aws_fault_of(503, "RequestLimitExceeded", "").sure);
}

static void the_text_has_code_message_and_the_whole_request_id(void **state)
{
	struct aws_fault f = aws_fault_of(403, "UnauthorizedOperation", "");
	struct err err = {0};
	char longest[600];

	(void)state;
	aws_fault_err(&err, &f, "UnauthorizedOperation",
		      "You are not authorized to perform this operation. Encoded authorization "
		      "failure message: AbCdEf",
		      "1234-5678", "ec2:RunInstances");
	assert_string_equal(err.msg, "UnauthorizedOperation: not authorized to perform "
				     "ec2:RunInstances (request id 1234-5678)");
	assert_int_equal(err.kind, ERR_DENIED);
	aws_fault_err(&err, &f, "UnauthorizedOperation",
		      "User: arn:aws:iam::123456789012:user/u is not authorized to perform: "
		      "ec2:CreateTags on resource: arn:aws:ec2:us-east-1:123456789012:instance/* "
		      "because no identity-based policy allows the ec2:CreateTags action",
		      "r", "ec2:RunInstances");
	assert_string_equal(err.msg, "UnauthorizedOperation: not authorized to perform "
				     "ec2:CreateTags (request id r)");

	f = aws_fault_of(400, "InvalidParameterValue", "");
	aws_fault_err(&err, &f, "InvalidParameterValue", "Value (x)\nis invalid", "r", "ec2:A");
	assert_string_equal(err.msg, "InvalidParameterValue: Value (x) is invalid (request id r)");
	aws_fault_err(&err, &f, "", "", "", "ec2:A");
	assert_string_equal(err.msg, "ec2:A");

	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	aws_fault_err(&err, &f, "InvalidParameterValue", longest,
		      "0a1b2c3d-0000-1111-2222-333344445555", "ec2:A");
	assert_non_null(
		strstr(err.msg, "xxx... (request id 0a1b2c3d-0000-1111-2222-333344445555)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_have_the_kinds_that_the_core_knows),
		cmocka_unit_test(a_type_that_a_zone_lacks_is_capacity_and_otherwise_a_mistake),
		cmocka_unit_test(the_status_decides_without_a_known_code),
		cmocka_unit_test(the_text_has_code_message_and_the_whole_request_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
