/* HTTPS to AWS: only a server that a CA of the right file vouches for. */
#include "rig.h"

#include "peer.h"

static bool say_vpcs(struct peer_conn *c, const char *head)
{
	(void)head;
	peer_ok(c, "<DescribeVpcsResponse><requestId>r</requestId></DescribeVpcsResponse>");
	return false;
}

struct https {
	struct peer_cert ca, cert;
	struct peer peer;
	char url[64];
};

static void start(struct https *h, struct rig *r)
{
	*h = (struct https){0};
	peer_cert_make(&h->ca, NULL, "CA", -1, 10);
	peer_cert_make(&h->cert, &h->ca, "IP:127.0.0.1", -1, 10);
	h->peer.tls = peer_tls(&h->cert, 0x0304, NULL);
	h->peer.answer = say_vpcs;
	peer_start(&h->peer);
	snprintf(h->url, sizeof(h->url), "https://127.0.0.1:%d", h->peer.port);
	rig_set(r, "AWS_ENDPOINT_URL", h->url);
	rig_write(r, "ca.pem", h->ca.cert);
}

static void stop(struct https *h)
{
	peer_stop(&h->peer);
	peer_tls_free(h->peer.tls);
	peer_cert_release(&h->cert);
	peer_cert_release(&h->ca);
}

static void a_bundle_is_named_by_variable_or_profile(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};
	char *bundle = xasprintf("%s/ca.pem", r->dir);
	struct https h;

	start(&h, r);
	rig_set(r, "AWS_CA_BUNDLE", bundle);
	rig_set(r, "SSL_CERT_FILE", "/nonexistent");
	rig_open(r);
	if (rig_ask(r, "ec2", "DescribeVpcs", &ans) < 0)
		fail_msg("%s", r->err.msg);
	assert_string_equal(ans.request_id, "r");
	rig_set(r, "AWS_CA_BUNDLE", NULL);
	rig_set(r, "SSL_CERT_FILE", bundle);
	rig_open(r);
	assert_int_equal(rig_ask(r, "ec2", "DescribeVpcs", &ans), 0);
	rig_set(r, "SSL_CERT_FILE", NULL);
	char *config = xasprintf("[default]\nca_bundle = %s\n", bundle);

	rig_write(r, ".aws/config", config);
	rig_open(r);
	assert_int_equal(rig_ask(r, "ec2", "DescribeVpcs", &ans), 0);
	aws_answer_release(&ans);
	free(config);
	free(bundle);
	stop(&h);
}

static void certificates_that_came_with_credentials_beat_a_file(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};
	struct https h;

	start(&h, r);
	rig_set(r, "AWS_CA_BUNDLE", "/nonexistent");
	if (rig_try_open(r, (struct aws_config){.ca_pem = str_from(h.ca.cert)}) < 0)
		fail_msg("%s", r->err.msg);
	assert_int_equal(rig_ask(r, "ec2", "DescribeVpcs", &ans), 0);
	aws_answer_release(&ans);
	stop(&h);
}

static void a_server_that_nobody_vouches_for_is_denied_at_once(void **state)
{
	struct rig *r = *state;
	struct aws_answer ans = {0};
	struct peer_cert other;
	struct https h;
	char *bundle = xasprintf("%s/other.pem", r->dir);

	start(&h, r);
	peer_cert_make(&other, NULL, "CA", -1, 10);
	rig_write(r, "other.pem", other.cert);
	rig_set(r, "AWS_CA_BUNDLE", bundle);
	rig_open(r);
	assert_int_equal(rig_ask(r, "ec2", "DescribeVpcs", &ans), -1);
	assert_int_equal(r->err.kind, ERR_DENIED);
	assert_true(ans.refused);
	assert_int_equal(h.peer.requests, 0);
	assert_int_equal(h.peer.conns, 1);
	aws_answer_release(&ans);
	peer_cert_release(&other);
	free(bundle);
	stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(a_bundle_is_named_by_variable_or_profile),
		rig_test(certificates_that_came_with_credentials_beat_a_file),
		rig_test(a_server_that_nobody_vouches_for_is_denied_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
