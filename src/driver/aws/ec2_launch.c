#include "driver/aws/ec2_launch.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "driver/aws/aws_kind.h"
#include "driver/aws/user_data.h"
#include "fmt/doc.h"
#include "net/digest.h"

#define TOKEN_BYTES 20

void ec2_token(const struct driver_row *row, char out[static EC2_TOKEN])
{
	struct sha256 *s = sha256_new();
	uint8_t digest[SHA256_BYTES];
	char batch[16], hex[2 * TOKEN_BYTES + 1];

	snprintf(batch, sizeof(batch), "%d", row->batch);
	/* with their NULs, so that two different rows never give the same bytes */
	sha256_add(s, row->install, strlen(row->install) + 1);
	sha256_add(s, row->run, strlen(row->run) + 1);
	/* Two masters count batches of one run: that which made the machine of the other, and that other. */
	sha256_add(s, row->kind, strlen(row->kind) + 1);
	sha256_add(s, batch, strlen(batch));
	sha256_end(s, digest);
	hex_encode(digest, TOKEN_BYTES, hex);
	snprintf(out, EC2_TOKEN, "regatta-%s", hex);
}

/* The subnet of the chosen zone: one that existed before the run, or the one that the run made. */
static const char *subnet_of(const struct aws_work *w)
{
	const char *zone = aws_choice(w, "zone");
	const char *id = doc_str(doc_table(w->spec, "subnets"), zone ? zone : "", STR("")).p;

	if (*id)
		return id;
	return aws_need(w->row, arena_printf(w->a, "subnet-%s", zone ? zone : ""));
}

static void add_network(struct aws_request *r, const struct aws_work *w)
{
	const struct doc *groups = doc_array(w->spec, "groups");
	size_t n = 0;

	aws_param_int(r, 0, "NetworkInterface.1.DeviceIndex");
	aws_param(r, subnet_of(w), "NetworkInterface.1.SubnetId");
	aws_param_bool(r, doc_bool(w->spec, "public_ip", true),
		       "NetworkInterface.1.AssociatePublicIpAddress");
	aws_param_bool(r, true, "NetworkInterface.1.DeleteOnTermination");
	if (aws_need(w->row, "group"))
		aws_param(r, aws_need(w->row, "group"), "NetworkInterface.1.SecurityGroupId.%zu",
			  ++n);
	for (size_t i = 0; groups && i < groups->array.n; i++)
		aws_param(r, groups->array.v[i]->s.p, "NetworkInterface.1.SecurityGroupId.%zu",
			  ++n);
}

static void add_volume(struct aws_request *r, const struct aws_work *w)
{
	aws_param(r, aws_spec(w, "root"), "BlockDeviceMapping.1.DeviceName");
	aws_param_int(r, doc_int(w->spec, "volume_gb", 8), "BlockDeviceMapping.1.Ebs.VolumeSize");
	aws_param(r, aws_spec(w, "volume_type"), "BlockDeviceMapping.1.Ebs.VolumeType");
	aws_param_bool(r, true, "BlockDeviceMapping.1.Ebs.DeleteOnTermination");
}

/* The instance profile: of a master the one among its needs, of a node the user's, by name or ARN. */
static void add_profile(struct aws_request *r, const struct aws_work *w)
{
	const char *own = aws_need(w->row, "profile");
	const char *profile = own ? own : aws_spec(w, "profile");

	if (profile)
		aws_param(r, profile, "IamInstanceProfile.%s",
			  strncmp(profile, "arn:", 4) == 0 ? "Arn" : "Name");
}

static void add_market(struct aws_request *r, const struct aws_work *w)
{
	if (!doc_bool(w->spec, "spot", false))
		return;
	aws_param(r, "spot", "InstanceMarketOptions.MarketType");
	aws_param(r, "one-time", "InstanceMarketOptions.SpotOptions.SpotInstanceType");
	aws_param(r, "terminate", "InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior");
}

static void add_tags(struct aws_request *r, const struct aws_work *w)
{
	static const char *const types[] = {"instance", "volume", "network-interface",
					    "spot-instances-request"};
	int n = doc_bool(w->spec, "spot", false) ? 4 : 3;

	for (int i = 0; i < n; i++)
		aws_tag_specification(r, w, i + 1, types[i]);
}

static void add_user_data(struct aws_request *r, const struct driver_row *rows, size_t n)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, USER_DATA_MAX);
	if (strcmp(rows[0].kind, "ec2.master") == 0)
		user_data_master(&rows[0], &text);
	else
		user_data_node(rows, n, &text);
	aws_param_base64(r, buf_str(&text), "UserData");
}

/* An instance terminates when it shuts down.  The hop limit keeps containers from the credentials of
 * its role. */
static void add_machine(struct aws_request *r, const struct aws_work *w)
{
	aws_param(r, aws_spec(w, "ami"), "ImageId");
	aws_param(r, aws_choice(w, "type"), "InstanceType");
	aws_param(r, aws_spec(w, "key_name"), "KeyName");
	aws_param(r, "terminate", "InstanceInitiatedShutdownBehavior");
	aws_param(r, "enabled", "MetadataOptions.HttpEndpoint");
	aws_param(r, "required", "MetadataOptions.HttpTokens");
	aws_param_int(r, 1, "MetadataOptions.HttpPutResponseHopLimit");
	aws_param_bool(r, true, "Monitoring.Enabled");
	aws_param(r, aws_need(w->row, "placement"), "Placement.GroupName");
	aws_param(r, aws_spec(w, "reservation"),
		  "CapacityReservationSpecification.CapacityReservationTarget."
		  "CapacityReservationId");
}

void ec2_render(const struct driver_row *rows, size_t n, struct buf *out)
{
	char token[EC2_TOKEN];
	struct aws_request r;
	struct aws_work w;

	if (aws_work_read(&rows[0], &w, NULL) < 0)
		return;
	ec2_token(&rows[0], token);
	aws_request_init(&r, "ec2", "RunInstances");
	aws_param(&r, token, "ClientToken");
	aws_param_int(&r, (int64_t)n, "MinCount");
	aws_param_int(&r, (int64_t)n, "MaxCount");
	add_machine(&r, &w);
	add_network(&r, &w);
	add_volume(&r, &w);
	add_profile(&r, &w);
	add_market(&r, &w);
	add_tags(&r, &w);
	add_user_data(&r, rows, n);
	buf_addstr(out, aws_request_bytes(&r));
	aws_request_release(&r);
	aws_work_close(&w);
}
