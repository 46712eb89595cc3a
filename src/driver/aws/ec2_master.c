/*
 * ec2.master - the machine of a master that a run is handed to; as ec2.instance, and two things more.
 *
 * reach says where the master is: the address that EC2 shows, the port of the spec, and the key and the
 * token that its user data gave it.  publish leaves that in the bucket (ec2_access.h), and destroy removes
 * it from there.
 *
 * The master on the machine ends it as the last thing that it does.  It cannot delete its security group
 * afterwards, and EC2 does not delete a group that is in use: so detach moves its own interface to the
 * default group of the VPC.  destroy switches the machine off, which terminates it; it asks nobody, so that
 * a master whose role is gone can end its machine too.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/env.h"
#include "driver/aws/aws_kind.h"
#include "driver/aws/ec2_access.h"
#include "driver/aws/ec2_extend.h"
#include "driver/aws/ec2_launch.h"
#include "driver/aws/gc/gc.h"
#include "driver/aws/user_data.h"
#include "driver/master_identity.h"
#include "fmt/doc.h"
#include "net/imds.h"
#include "sys/off_timer.h"

/* ---- where it is ---- */

static const struct xml *instance_of(const struct aws_answer *ans)
{
	return xml_at(ans->root, "reservationSet/item/instancesSet/item");
}

static int look(const struct aws_work *w, struct aws_answer *ans, struct err *err)
{
	struct aws_request r;

	aws_request_init(&r, "ec2", "DescribeInstances");
	aws_param(&r, "instance-id", "Filter.1.Name");
	aws_param(&r, w->row->id, "Filter.1.Value.1");
	if (aws_kind_call(w, &r, ans, err) < 0)
		return -1;
	return instance_of(ans) ? 0
				: err_set(err, ERR_UNAVAILABLE, "EC2 does not show instance %s yet",
					  w->row->id);
}

static int find_address(const struct aws_work *w, struct driver_master *ret, struct err *err)
{
	struct aws_answer ans = {0};
	int rc = look(w, &ans, err);

	if (rc == 0) {
		const char *outside = xml_text(instance_of(&ans), "ipAddress");
		const char *inside = xml_text(instance_of(&ans), "privateIpAddress");
		const char *address = *outside ? outside : inside;

		rc = *address ? 0
			      : err_set(err, ERR_UNAVAILABLE, "instance %s has no address yet",
					w->row->id);
		snprintf(ret->url, sizeof(ret->url), "https://%.40s:%d", address,
			 (int)doc_int(w->spec, "port", 0));
	}
	aws_answer_release(&ans);
	return rc;
}

static int reach(struct driver_row *row, struct driver_master *ret)
{
	struct aws_work w;
	int rc;

	if (master_identity(row, ret, NULL, &row->err) < 0 || aws_work_open(row, &w, &row->err) < 0)
		return -1;
	rc = find_address(&w, ret, &row->err);
	aws_work_close(&w);
	return rc;
}

static int publish(struct driver_row *row, const struct driver_master *at)
{
	struct aws_work w;
	int rc;

	if (aws_work_open(row, &w, &row->err) < 0)
		return -1;
	rc = ec2_access_put(&w, at, &row->err);
	aws_work_close(&w);
	return rc;
}

/* A record that stays expires by its tag: the machine does not wait for it. */
static void retract(const struct driver_row *row)
{
	struct aws_work w;
	struct err ignored = {0};

	if (aws_work_open(row, &w, &ignored) < 0)
		return;
	(void)ec2_access_remove(&w, &ignored);
	aws_work_close(&w);
}

/* ---- the end of the machine that this master runs on ---- */

static bool is_this_machine(const struct driver_row *row)
{
	CLEANUP(buf_release) struct buf id = {0};
	struct deadline soon = row->deadline ? *row->deadline : deadline_in(2000, NULL);
	const struct env_lookup env = {0};

	buf_init(&id, 256);
	return row->id[0] && imds_get(&env, "instance-id", &soon, &id, NULL) == 0 &&
	       str_is(str_trim(buf_str(&id)), row->id);
}

static int default_group(const struct aws_work *w, const char *vpc, const char **ret,
			 struct err *err)
{
	struct aws_answer ans = {0};
	struct aws_request r;
	int rc;

	aws_request_init(&r, "ec2", "DescribeSecurityGroups");
	aws_param(&r, "vpc-id", "Filter.1.Name");
	aws_param(&r, vpc, "Filter.1.Value.1");
	aws_param(&r, "group-name", "Filter.2.Name");
	aws_param(&r, "default", "Filter.2.Value.1");
	rc = aws_kind_call(w, &r, &ans, err);
	if (rc == 0)
		*ret = arena_strdup(w->a, xml_text(ans.root, "securityGroupInfo/item/groupId"));
	aws_answer_release(&ans);
	return rc;
}

static int move_interface(const struct aws_work *w, struct err *err)
{
	struct aws_answer ans = {0};
	const char *group = "";
	struct aws_request r;
	int rc = look(w, &ans, err);

	if (rc == 0)
		rc = default_group(w, xml_text(instance_of(&ans), "vpcId"), &group, err);
	if (rc == 0) {
		aws_request_init(&r, "ec2", "ModifyNetworkInterfaceAttribute");
		aws_param(
			&r,
			xml_text(instance_of(&ans), "networkInterfaceSet/item/networkInterfaceId"),
			"NetworkInterfaceId");
		aws_param(&r, group, "SecurityGroupId.1");
		struct aws_answer moved = {0};

		rc = aws_kind_call(w, &r, &moved, err);
		aws_answer_release(&moved);
	}
	aws_answer_release(&ans);
	return rc;
}

static int detach(struct driver_row *row)
{
	struct aws_work w;
	int rc;

	retract(row);
	if (aws_work_open(row, &w, &row->err) < 0)
		return -1;
	rc = move_interface(&w, &row->err);
	aws_work_close(&w);
	return rc;
}

static void end_this_machine(struct driver_row *row)
{
	row->outcome = OUTCOME_HELD;
	if (off_now(&row->err) == 0)
		err_set(&row->err, ERR_UNAVAILABLE, "this machine is being switched off");
}

static void destroy_many(struct driver_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (is_this_machine(&rows[i])) {
			end_this_machine(&rows[i]);
			continue;
		}
		retract(&rows[i]);
		ec2_instance_driver.destroy_many(&rows[i], 1);
	}
}

static enum outcome sweep(struct driver_row *row)
{
	return aws_kind_ask(row, AWS_DESTROY, gc_sweep_run);
}

/* The timer of another machine is moved on by the master that lives there. */
static void extend_many(struct driver_row *rows, size_t n)
{
	ec2_extend_many(rows, n);
	for (size_t i = 0; i < n; i++)
		if (is_this_machine(&rows[i]) &&
		    off_timer_set(USER_DATA_EXPIRES, rows[i].expires_ms, &rows[i].err) < 0)
			rows[i].outcome = OUTCOME_UNSURE;
}

static void create_many(struct driver_row *rows, size_t n)
{
	ec2_instance_driver.create_many(rows, n);
}

static void find_many(struct driver_row *rows, size_t n)
{
	ec2_instance_driver.find_many(rows, n);
}

static void observe_many(struct driver_row *rows, size_t n)
{
	ec2_instance_driver.observe_many(rows, n);
}

const struct driver ec2_master_driver = {
	.kind = "ec2.master",
	.pool = "aws",
	.render = ec2_render,
	.create_many = create_many,
	.find_many = find_many,
	.observe_many = observe_many,
	.extend_many = extend_many,
	.destroy_many = destroy_many,
	.reach = reach,
	.publish = publish,
	.detach = detach,
	.sweep = sweep,
};
