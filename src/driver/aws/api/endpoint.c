#include "driver/aws/api/endpoint.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/str.h"
#include "driver/aws/api/profile.h"

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

static const struct aws_service services[] = {
	{"ec2", "EC2", "ec2", "2016-11-15", NULL, false},
	{"sts", "STS", "sts", "2011-06-15", NULL, false},
	{"iam", "IAM", "iam", "2010-05-08", NULL, true},
	{"autoscaling", "AUTO_SCALING", "auto_scaling", "2011-01-01", NULL, false},
	{"monitoring", "CLOUDWATCH", "cloudwatch", "2010-08-01", NULL, false},
	{"s3", "S3", "s3", NULL, NULL, false},
	{"ssm", "SSM", "ssm", NULL, "AmazonSSM", false},
	{"servicequotas", "SERVICE_QUOTAS", "service_quotas", NULL, "ServiceQuotasV20190624",
	 false},
	{"api.ecr", "ECR", "ecr", NULL, "AmazonEC2ContainerRegistry_V20150921", false},
	{"portal.sso", "SSO", "sso", NULL, NULL, false},
};

/* The last row is for regions of no other partition. */
static const struct aws_partition partitions[] = {
	{"aws-cn", "cn-", "amazonaws.com.cn", "cn-north-1"},
	{"aws-us-gov", "us-gov-", "amazonaws.com", "us-gov-west-1"},
	{"aws-iso", "us-iso-", "c2s.ic.gov", "us-iso-east-1"},
	{"aws-iso-b", "us-isob-", "sc2s.sgov.gov", "us-isob-east-1"},
	{"aws-iso-e", "eu-isoe-", "cloud.adc-e.uk", "eu-isoe-west-1"},
	{"aws-iso-f", "us-isof-", "csp.hci.ic.gov", "us-isof-south-1"},
	{"aws", "", "amazonaws.com", "us-east-1"},
};

const struct aws_service *aws_service_named(const char *name)
{
	for (size_t i = 0; i < COUNT(services); i++)
		if (strcmp(services[i].name, name) == 0)
			return &services[i];
	return NULL;
}

const struct aws_partition *aws_partition_of(const char *region)
{
	const struct aws_partition *p = partitions;

	while (!str_starts(str_from(region), str_from(p->prefix)))
		p++;
	return p;
}

bool aws_region_is_proper(const char *region)
{
	size_t n = strlen(region);

	return n > 0 && n < sizeof(((struct aws_endpoint *)0)->region) &&
	       strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

/* True if endpoint URLs in variables and files are to be ignored. */
static bool ignores(const struct aws_places *p)
{
	const char *word = env_get(&p->env, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");

	if (!word)
		word = profile_get(p->profiles, p->profile, "ignore_configured_endpoint_urls");
	return word && strcasecmp(word, "true") == 0;
}

/* The URL that was given for the service, and by which setting; NULL: none. */
static const char *given_url(const struct aws_places *p, const struct aws_service *service,
			     const char **ret_by)
{
	char name[80];
	const char *url, *set;

	*ret_by = "endpoint_url";
	if (p->endpoint_url)
		return p->endpoint_url;
	if (ignores(p))
		return NULL;
	*ret_by = "AWS_ENDPOINT_URL";
	snprintf(name, sizeof(name), "AWS_ENDPOINT_URL_%s", service->env);
	url = env_get(&p->env, name);
	if (!url)
		url = env_get(&p->env, "AWS_ENDPOINT_URL");
	if (url)
		return url;
	*ret_by = "endpoint_url of the profile";
	set = profile_get(p->profiles, p->profile, "services");
	snprintf(name, sizeof(name), "%s.endpoint_url", service->id);
	url = set ? profiles_get(p->profiles, "services", set, name) : NULL;
	return url ? url : profile_get(p->profiles, p->profile, "endpoint_url");
}

static int take_url(const char *url, const char *by, struct aws_endpoint *ret, struct err *err)
{
	struct http_url u;

	if (http_url_parse(&u, str_from(url), false, err) < 0)
		return err_wrap(err, "%s", by);
	if (u.user.n > 0 || (u.path.n > 0 && memchr(u.path.p, '?', u.path.n)) ||
	    u.path.n >= sizeof(ret->base))
		return err_set(err, ERR_INVALID,
			       "%s: '%.100s' must be http(s)://host[:port][/path]", by, url);
	while (u.path.n > 0 && u.path.p[u.path.n - 1] == '/')
		u.path.n--;
	ret->given = true;
	ret->tls = u.tls;
	ret->port = u.port;
	memcpy(ret->host, u.host, sizeof(ret->host));
	snprintf(ret->base, sizeof(ret->base), "%.*s", STR_ARG(u.path));
	return 0;
}

static void host_of(const struct aws_service *service, const char *region,
		    const struct aws_partition *part, char out[static HTTP_HOST_MAX])
{
	if (!service->global)
		snprintf(out, HTTP_HOST_MAX, "%s.%s.%s", service->name, region, part->suffix);
	else if (strcmp(part->name, "aws") == 0)
		snprintf(out, HTTP_HOST_MAX, "%s.%s", service->name, part->suffix);
	else if (strcmp(part->name, "aws-us-gov") == 0)
		snprintf(out, HTTP_HOST_MAX, "%s.us-gov.%s", service->name, part->suffix);
	else
		snprintf(out, HTTP_HOST_MAX, "%s.%s.%s", service->name, part->home, part->suffix);
}

int aws_endpoint_find(const struct aws_places *p, const struct aws_service *service,
		      const char *region, struct aws_endpoint *ret, struct err *err)
{
	const struct aws_partition *part;
	const char *by, *url = given_url(p, service, &by);

	if (!region)
		region = p->region;
	if (!aws_region_is_proper(region))
		return err_set(err, ERR_INVALID, "'%.40s' is not the name of a region", region);
	part = aws_partition_of(region);
	*ret = (struct aws_endpoint){.tls = true, .port = 443};
	snprintf(ret->region, sizeof(ret->region), "%s", service->global ? part->home : region);
	if (url)
		return take_url(url, by, ret, err);
	host_of(service, region, part, ret->host);
	return 0;
}
