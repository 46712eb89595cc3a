/* Where the machines of a run can be: VPC, zones that offer their types, subnets. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/rand.h"
#include "base/vec.h"
#include "driver/aws/aws_resolve.h"
#include "driver/aws/cidr.h"

#define MOST_ZONES 3	/* that a run makes subnets in */
#define SPARE_RANGES 3	/* for each of them */
#define MOST_TYPES 100	/* of all roles */
#define MOST_BLOCKS 200 /* ranges of a VPC and of its subnets */

struct vpc_subnet {
	const char *id, *zone, *vpc;
	bool public_; /* its machines get public addresses by default */
};

struct zone_count {
	const char *zone;
	int types; /* that it offers */
};

struct vpc_inquiry {
	struct aws_inquiry *q;
	const char *vpc;
	const char *types[MOST_TYPES];
	size_t ntypes;
	struct cidr spaces[MOST_BLOCKS];
	size_t nspaces;
	VEC(struct cidr) taken;
	VEC(struct vpc_subnet) subnets; /* of the VPC, or those that were asked for */
	VEC(struct zone_count) zones;	/* the best first */
};

static const struct doc *option_list(const struct vpc_inquiry *n, const char *key)
{
	const struct doc *list = doc_array(n->q->in->options, key);

	return list && list->array.n ? list : NULL;
}

/* ---- the VPC ---- */

static void take_spaces(struct vpc_inquiry *n, const struct xml *vpc)
{
	for (const struct xml *x = xml_at(vpc, "cidrBlockAssociationSet/item");
	     x && n->nspaces < MOST_BLOCKS; x = xml_next(x))
		if (cidr_parse(str_from(xml_text(x, "cidrBlock")), &n->spaces[n->nspaces]))
			n->nspaces++;
	if (!n->nspaces && cidr_parse(str_from(xml_text(vpc, "cidrBlock")), &n->spaces[0]))
		n->nspaces++;
}

static int find_vpc(struct vpc_inquiry *n, struct err *err)
{
	const char *wanted = n->vpc ? n->vpc : inquiry_option(n->q, "vpc");
	struct aws_request r;
	struct aws_answer ans = {0};
	const struct xml *vpc;

	aws_request_init(&r, "ec2", "DescribeVpcs");
	if (wanted) {
		aws_param(&r, wanted, "VpcId.1");
	} else {
		aws_param(&r, "is-default", "Filter.1.Name");
		aws_param(&r, "true", "Filter.1.Value.1");
	}
	int rc = aws_query(n->q->s, &r, &n->q->d, &ans, err);

	vpc = rc == 0 ? xml_at(ans.root, "vpcSet/item") : NULL;
	if (vpc) {
		n->vpc = arena_strdup(n->q->a, xml_text(vpc, "vpcId"));
		take_spaces(n, vpc);
	} else if (rc == 0) {
		rc = err_set(
			err, ERR_INVALID,
			"region %s has no default VPC: name one with `vpc` or `subnets` in [aws]",
			aws_region(n->q->s));
	}
	aws_answer_release(&ans);
	aws_request_release(&r);
	return rc;
}

static int take_subnets(void *ctx, const struct xml *root, struct err *err)
{
	struct vpc_inquiry *n = ctx;
	struct arena *a = n->q->a;
	struct cidr c;

	(void)err;
	for (const struct xml *x = xml_at(root, "subnetSet/item"); x; x = xml_next(x)) {
		if (cidr_parse(str_from(xml_text(x, "cidrBlock")), &c))
			*vec_push(&n->taken) = c;
		*vec_push(&n->subnets) = (struct vpc_subnet){
			.id = arena_strdup(a, xml_text(x, "subnetId")),
			.zone = arena_strdup(a, xml_text(x, "availabilityZone")),
			.vpc = arena_strdup(a, xml_text(x, "vpcId")),
			.public_ = strcmp(xml_text(x, "mapPublicIpOnLaunch"), "true") == 0 ||
				   strcmp(xml_text(x, "defaultForAz"), "true") == 0,
		};
	}
	return 0;
}

static int list_subnets(struct vpc_inquiry *n, const struct doc *ids, struct err *err)
{
	struct aws_request r;
	int rc;

	aws_request_init(&r, "ec2", "DescribeSubnets");
	for (size_t i = 0; ids && i < ids->array.n; i++)
		aws_param(&r, ids->array.v[i]->s.p, "SubnetId.%zu", i + 1);
	if (!ids) {
		aws_param(&r, "vpc-id", "Filter.1.Name");
		aws_param(&r, n->vpc, "Filter.1.Value.1");
	}
	rc = aws_query_pages(n->q->s, &r, &n->q->d, take_subnets, n, NULL, err);
	aws_request_release(&r);
	return rc;
}

/* The subnets that the user named say which VPC it is. */
static int check_given(struct vpc_inquiry *n, struct err *err)
{
	const char *wanted = inquiry_option(n->q, "vpc");

	for (size_t i = 0; i < n->subnets.n; i++) {
		const char *vpc = n->subnets.v[i].vpc;

		if (strcmp(vpc, wanted ? wanted : n->subnets.v[0].vpc) != 0)
			return err_set(err, ERR_INVALID, "subnet %s is in %s, not in %s",
				       n->subnets.v[i].id, vpc,
				       wanted ? wanted : n->subnets.v[0].vpc);
	}
	n->vpc = n->subnets.n ? n->subnets.v[0].vpc : NULL;
	return 0;
}

/* ---- types and zones ---- */

static void add_type(struct vpc_inquiry *n, const char *type)
{
	for (size_t i = 0; i < n->ntypes; i++)
		if (strcmp(n->types[i], type) == 0)
			return;
	if (n->ntypes < MOST_TYPES)
		n->types[n->ntypes++] = type;
}

static void list_types(struct vpc_inquiry *n)
{
	const struct doc *roles = doc_table(n->q->in->options, "roles");
	const char *master = inquiry_option(n->q, "master_type");

	for (size_t i = 0; roles && i < roles->table.n; i++) {
		const struct doc *types = doc_array(roles->table.v[i].value, "types");

		for (size_t k = 0; types && k < types->array.n; k++)
			add_type(n, types->array.v[k]->s.p);
	}
	if (master && inquiry_master_is_apart(n->q))
		add_type(n, master);
}

static int take_offers(void *ctx, const struct xml *root, struct err *err)
{
	struct vpc_inquiry *n = ctx;
	struct arena *a = n->q->a;
	struct doc *all = (struct doc *)doc_table(n->q->facts, "zones_of");

	(void)err;
	for (const struct xml *x = xml_at(root, "instanceTypeOfferingSet/item"); x;
	     x = xml_next(x)) {
		const char *type = xml_text(x, "instanceType");
		struct doc *zones = (struct doc *)doc_array(all, type);

		if (!zones) {
			zones = doc_new(a, DOC_ARRAY);
			doc_set(a, all, str_from(arena_strdup(a, type)), zones);
		}
		doc_append(a, zones, doc_new_str(a, str_from(xml_text(x, "location"))));
	}
	return 0;
}

static int ask_offers(struct vpc_inquiry *n, struct err *err)
{
	struct aws_request r;
	int rc;

	doc_set(n->q->a, n->q->facts, STR("zones_of"), doc_new(n->q->a, DOC_TABLE));
	aws_request_init(&r, "ec2", "DescribeInstanceTypeOfferings");
	aws_param(&r, "availability-zone", "LocationType");
	aws_param(&r, "instance-type", "Filter.1.Name");
	for (size_t i = 0; i < n->ntypes; i++)
		aws_param(&r, n->types[i], "Filter.1.Value.%zu", i + 1);
	rc = aws_query_pages(n->q->s, &r, &n->q->d, take_offers, n, NULL, err);
	aws_request_release(&r);
	for (size_t i = 0; rc == 0 && i < n->ntypes; i++)
		if (!doc_array(doc_table(n->q->facts, "zones_of"), n->types[i]))
			rc = err_set(
				err, ERR_INVALID,
				"region %s does not offer the type '%s': choose another instance type",
				aws_region(n->q->s), n->types[i]);
	return rc;
}

static bool offers(const struct vpc_inquiry *n, const char *type, const char *zone)
{
	const struct doc *zones = doc_array(doc_table(n->q->facts, "zones_of"), type);

	for (size_t i = 0; zones && i < zones->array.n; i++)
		if (str_is(zones->array.v[i]->s, zone))
			return true;
	return false;
}

static void count_zone(struct vpc_inquiry *n, const char *zone)
{
	for (size_t i = 0; i < n->zones.n; i++)
		if (strcmp(n->zones.v[i].zone, zone) == 0) {
			n->zones.v[i].types++;
			return;
		}
	*vec_push(&n->zones) = (struct zone_count){zone, 1};
}

static int compare_zones(const void *a, const void *b)
{
	const struct zone_count *x = a, *y = b;

	return x->types != y->types ? y->types - x->types : strcmp(x->zone, y->zone);
}

/* Those that the user wants, in this order; else those that offer the most types. */
static void rank_zones(struct vpc_inquiry *n)
{
	const struct doc *given = option_list(n, "zones");

	for (size_t i = 0; given && i < given->array.n; i++)
		count_zone(n, given->array.v[i]->s.p);
	if (given)
		return;
	for (size_t i = 0; i < n->ntypes; i++) {
		const struct doc *zones =
			doc_array(doc_table(n->q->facts, "zones_of"), n->types[i]);

		for (size_t k = 0; zones && k < zones->array.n; k++)
			count_zone(n, zones->array.v[k]->s.p);
	}
	if (n->zones.n)
		qsort(n->zones.v, n->zones.n, sizeof(*n->zones.v), compare_zones);
}

/* ---- subnets of the run ---- */

static struct doc *place(const struct vpc_inquiry *n, const char *zone, const char *key,
			 const char *value)
{
	struct doc *d = doc_new(n->q->a, DOC_TABLE);

	inquiry_set(n->q, d, "zone", zone);
	inquiry_set(n->q, d, key, value);
	return d;
}

static int most_nodes(const struct vpc_inquiry *n)
{
	const struct doc *roles = doc_table(n->q->in->options, "roles");
	int64_t sum = 0;

	for (size_t i = 0; roles && i < roles->table.n; i++)
		sum += doc_int(roles->table.v[i].value, "max", 0);
	return sum > n->q->in->nodes ? (int)sum : n->q->in->nodes;
}

/* A free range that no other subnet of the run has, anywhere in the VPC: runs that are resolved at the same
 * time see the same ranges as free. */
static bool take_range(struct vpc_inquiry *n, int bits, char out[static CIDR_TEXT])
{
	struct cidr c;

	if (!cidr_free(n->spaces, n->nspaces, n->taken.v, n->taken.n, bits, rand_u64(), &c))
		return false;
	*vec_push(&n->taken) = c;
	cidr_text(c, out);
	return true;
}

/* For the case that somebody else has taken the range before the subnet is made. */
static void add_spare(struct vpc_inquiry *n, int bits, struct doc *place)
{
	struct doc *spare = doc_new(n->q->a, DOC_ARRAY);
	char text[CIDR_TEXT];

	while (spare->array.n < SPARE_RANGES && take_range(n, bits, text))
		doc_append(n->q->a, spare, doc_new_str(n->q->a, str_from(text)));
	doc_set(n->q->a, place, STR("spare"), spare);
}

static int make_places(struct vpc_inquiry *n, struct doc *list, struct err *err)
{
	int bits = cidr_bits_for(most_nodes(n));

	for (size_t i = 0; i < n->zones.n && i < MOST_ZONES; i++) {
		char text[CIDR_TEXT];

		if (take_range(n, bits, text))
			doc_append(n->q->a, list, place(n, n->zones.v[i].zone, "cidr", text));
		else if (!list->array.n)
			return err_set(
				err, ERR_CAPACITY,
				"%s has no free range of /%d for the subnet of %d node%s: name "
				"subnets of yours with `subnets` in [aws], or another `vpc`",
				n->vpc, bits, most_nodes(n), most_nodes(n) == 1 ? "" : "s");
	}
	for (size_t i = 0; i < list->array.n; i++)
		add_spare(n, bits, list->array.v[i]);
	return 0;
}

/* In the order of the zones; those in other zones are left out if the user named zones. */
static void use_given(struct vpc_inquiry *n, struct doc *list)
{
	for (size_t z = 0; z < n->zones.n; z++)
		for (size_t i = 0; i < n->subnets.n; i++)
			if (strcmp(n->subnets.v[i].zone, n->zones.v[z].zone) == 0) {
				doc_append(n->q->a, list,
					   place(n, n->zones.v[z].zone, "id", n->subnets.v[i].id));
				break; /* one subnet per zone */
			}
}

/* Each role needs a zone with a subnet that offers one of its types. */
static int check_roles(const struct vpc_inquiry *n, const struct doc *places, struct err *err)
{
	const struct doc *roles = doc_table(n->q->in->options, "roles");

	for (size_t i = 0; roles && i < roles->table.n; i++) {
		const struct doc *types = doc_array(roles->table.v[i].value, "types");
		bool found = false;

		for (size_t p = 0; p < places->array.n; p++)
			for (size_t k = 0; types && k < types->array.n; k++)
				found |= offers(n, types->array.v[k]->s.p,
						doc_str(places->array.v[p], "zone", STR("")).p);
		if (!found)
			return err_set(
				err, ERR_INVALID,
				"role '%.*s': no zone of this run's subnets offers %s: choose "
				"other zones, subnets or another type",
				STR_ARG(roles->table.v[i].key),
				types && types->array.n ? types->array.v[0]->s.p : "its type");
	}
	return 0;
}

static int choose_subnets(struct vpc_inquiry *n, struct err *err)
{
	struct doc *list = doc_new(n->q->a, DOC_ARRAY);

	rank_zones(n);
	if (option_list(n, "subnets"))
		use_given(n, list);
	else if (make_places(n, list, err) < 0)
		return -1;
	if (check_roles(n, list, err) < 0)
		return -1;
	doc_set(n->q->a, n->q->facts, STR("subnets"), list);
	inquiry_set(n->q, n->q->facts, "vpc", n->vpc);
	return 0;
}

/* The master lives in a subnet that was there before the run, and outlives the run's own. */
static int choose_master(struct vpc_inquiry *n, struct err *err)
{
	const char *type = inquiry_option(n->q, "master_type");
	const struct vpc_subnet *best = NULL;

	if (!inquiry_master_is_apart(n->q))
		return 0;
	for (size_t i = 0; i < n->subnets.n; i++) {
		const struct vpc_subnet *s = &n->subnets.v[i];

		if (type && offers(n, type, s->zone) && (!best || (s->public_ && !best->public_)))
			best = s;
	}
	if (!best)
		return err_set(err, ERR_INVALID,
			       "%s has no subnet in which the master can live (%s): name one with "
			       "`subnets` in [aws], or set master = \"here\"",
			       n->vpc, type ? type : "no type");
	doc_set(n->q->a, n->q->facts, STR("master"), place(n, best->zone, "subnet", best->id));
	return 0;
}

static int ask_network(struct vpc_inquiry *n, struct err *err)
{
	const struct doc *given = option_list(n, "subnets");

	if (given && (list_subnets(n, given, err) < 0 || check_given(n, err) < 0))
		return -1;
	if (find_vpc(n, err) < 0 || (!given && list_subnets(n, NULL, err) < 0))
		return -1;
	list_types(n);
	if (ask_offers(n, err) < 0 || choose_subnets(n, err) < 0)
		return -1;
	return choose_master(n, err);
}

int inquiry_network(struct aws_inquiry *q, struct err *err)
{
	struct vpc_inquiry n = {.q = q};
	int rc = ask_network(&n, err);

	vec_release(&n.taken);
	vec_release(&n.subnets);
	vec_release(&n.zones);
	return rc;
}
