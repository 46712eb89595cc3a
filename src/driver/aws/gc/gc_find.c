/* gc_find - everything that carries our tags, region by region and kind by kind. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "driver/aws/gc/gc.h"

/* Machines go first: interfaces, groups and subnets are free when they are gone. */
const struct gc_kind gc_kinds[] = {
	{.name = "ec2.instance",
	 .list = "DescribeInstances",
	 .items = "reservationSet/item",
	 .inner = "instancesSet/item",
	 .id = "instanceId",
	 .status = "instanceState/name",
	 .gone = "terminated",
	 .ending = "shutting-down"},
	{.name = "ec2.network_interface",
	 .list = "DescribeNetworkInterfaces",
	 .items = "networkInterfaceSet/item",
	 .id = "networkInterfaceId",
	 .status = "status",
	 .ready = "available",
	 .remove = "DeleteNetworkInterface",
	 .param = "NetworkInterfaceId"},
	{.name = "ec2.volume",
	 .list = "DescribeVolumes",
	 .items = "volumeSet/item",
	 .id = "volumeId",
	 .status = "status",
	 .gone = "deleted",
	 .ending = "deleting",
	 .ready = "available",
	 .remove = "DeleteVolume",
	 .param = "VolumeId"},
	{.name = "ec2.launch_template",
	 .list = "DescribeLaunchTemplates",
	 .items = "launchTemplates/item",
	 .id = "launchTemplateId",
	 .remove = "DeleteLaunchTemplate",
	 .param = "LaunchTemplateId"},
	{.name = "ec2.placement_group",
	 .list = "DescribePlacementGroups",
	 .items = "placementGroupSet/item",
	 .id = "groupName",
	 .status = "state",
	 .gone = "deleted",
	 .ending = "deleting",
	 .remove = "DeletePlacementGroup",
	 .param = "GroupName"},
	{.name = "ec2.security_group",
	 .list = "DescribeSecurityGroups",
	 .items = "securityGroupInfo/item",
	 .id = "groupId"},
	{.name = "ec2.subnet",
	 .list = "DescribeSubnets",
	 .items = "subnetSet/item",
	 .id = "subnetId",
	 .remove = "DeleteSubnet",
	 .param = "SubnetId"},
	{0},
};

struct gc_item *gc_add(struct gc *g, const struct gc_kind *kind, const char *region, const char *id)
{
	const char *key = arena_printf(g->a, "%s/%s/%s", region, kind->name, id);
	struct gc_item *item = map_get(g->by_id, str_from(key));

	if (!item) {
		item = arena_new_of(g->a, struct gc_item);
		*item = (struct gc_item){
			.kind = kind,
			.status = "",
			.is = {.kind = kind->name,
			       .id = arena_strdup(g->a, id),
			       .region = region,
			       .install = "",
			       .run = ""},
		};
		map_put(g->by_id, str_from(key), item);
		*vec_push(&g->items) = item;
	}
	item->seen = true;
	return item;
}

/* ---- one element of an answer ---- */

static const char *tag_of(const struct xml *x, const char *key)
{
	for (const struct xml *t = xml_at(x, "tagSet/item"); t; t = xml_next(t))
		if (strcmp(xml_text(t, "key"), key) == 0)
			return xml_text(t, "value");
	return "";
}

static bool is_status(const char *status, const char *wanted)
{
	return wanted && strcmp(status, wanted) == 0;
}

/* A page of one kind in one region. */
struct gc_page {
	struct gc *g;
	const struct gc_kind *kind;
	const char *region;
};

/* The tag is compared here once more: nothing depends on how a filter is read. */
static void add_element(const struct gc_page *p, const struct xml *x)
{
	const struct gc_kind *k = p->kind;
	const char *status = k->status ? xml_text(x, k->status) : "";
	const char *install = tag_of(x, "regatta:install");
	struct gc_item *item;

	if (!*install || is_status(status, k->gone))
		return;
	item = gc_add(p->g, k, p->region, xml_text(x, k->id));
	item->status = arena_strdup(p->g->a, status);
	item->ending = is_status(status, k->ending);
	item->is.install = arena_strdup(p->g->a, install);
	item->is.run = arena_strdup(p->g->a, tag_of(x, "regatta:run"));
	item->is.expires_ms = 0;
	clock_parse(str_from(tag_of(x, "regatta:expires")), &item->is.expires_ms);
}

static int add_page(void *ctx, const struct xml *root, struct err *err)
{
	const struct gc_page *p = ctx;

	(void)err;
	for (const struct xml *x = xml_at(root, p->kind->items); x; x = xml_next(x)) {
		if (!p->kind->inner)
			add_element(p, x);
		else
			for (const struct xml *y = xml_at(x, p->kind->inner); y; y = xml_next(y))
				add_element(p, y);
	}
	return 0;
}

static int look_for(struct gc *g, const struct gc_region *region, const struct gc_kind *kind,
		    struct err *err)
{
	struct gc_page p = {g, kind, region->name};
	struct aws_request r;
	int rc;

	aws_request_init(&r, "ec2", kind->list);
	aws_param(&r, "tag-key", "Filter.1.Name");
	aws_param(&r, "regatta:install", "Filter.1.Value.1");
	rc = aws_query_pages(region->s, &r, &g->d, add_page, &p, NULL, err);
	aws_request_release(&r);
	return rc < 0 ? err_wrap(err, "%s", region->name) : 0;
}

static int look_at(struct gc *g, const struct gc_region *region, struct err *err)
{
	for (const struct gc_kind *k = gc_kinds; k->name; k++)
		if (look_for(g, region, k, err) < 0)
			return -1;
	g->now_ms = aws_clock_ms(region->s);
	return 0;
}

int gc_find(struct gc *g, struct err *err)
{
	for (size_t i = 0; i < g->items.n; i++)
		g->items.v[i]->seen = false;
	for (size_t i = 0; i < g->regions.n; i++)
		if (look_at(g, &g->regions.v[i], err) < 0)
			return -1;
	return 0;
}

/* ---- regions ---- */

static int open_region(struct gc *g, const char *name, struct err *err)
{
	struct aws_config c = {.region = name};
	struct aws *s;

	if (aws_open(&c, &g->d, &s, err) < 0)
		return -1;
	*vec_push(&g->regions) =
		(struct gc_region){.name = arena_strdup(g->a, aws_region(s)), .s = s};
	return 0;
}

static bool is_open(const struct gc *g, const char *name)
{
	for (size_t i = 0; i < g->regions.n; i++)
		if (strcmp(g->regions.v[i].name, name) == 0)
			return true;
	return false;
}

static int open_all(struct gc *g, struct err *err)
{
	struct aws_answer ans = {0};
	struct aws_request r;
	int rc;

	aws_request_init(&r, "ec2", "DescribeRegions");
	rc = aws_query(g->regions.v[0].s, &r, &g->d, &ans, err);
	aws_request_release(&r);
	for (const struct xml *x = xml_at(ans.root, "regionInfo/item"); rc == 0 && x;
	     x = xml_next(x))
		if (!is_open(g, xml_text(x, "regionName")))
			rc = open_region(g, xml_text(x, "regionName"), err);
	aws_answer_release(&ans);
	return rc;
}

static void close_from(struct gc *g, size_t first)
{
	for (size_t i = first; i < g->regions.n; i++)
		if (!g->regions.v[i].borrowed)
			aws_free(g->regions.v[i].s);
	g->regions.n = first;
}

int gc_open(struct gc *g, struct err *err)
{
	g->by_id = map_new();
	if (open_region(g, g->in->region, err) < 0 ||
	    aws_account(g->regions.v[0].s, &g->d, g->account, err) < 0)
		return -1;
	return g->in->all_regions ? open_all(g, err) : 0;
}

int gc_use(struct gc *g, struct aws *s, struct err *err)
{
	g->by_id = map_new();
	*vec_push(&g->regions) = (struct gc_region){aws_region(s), s, .borrowed = true};
	return aws_account(s, &g->d, g->account, err);
}

void gc_close(struct gc *g)
{
	close_from(g, 0);
	vec_release(&g->regions);
	vec_release(&g->items);
	g->by_id = map_free(g->by_id);
}

/* What is found there is forgotten again: it is not in the scope. */
int gc_find_elsewhere(struct gc *g, const char **ret_region, struct err *err)
{
	struct gc other = *g;
	int rc;

	*ret_region = NULL;
	if (g->in->all_regions)
		return 0;
	other.items.v = NULL;
	other.items.n = other.items.cap = 0;
	other.regions.v = NULL;
	other.regions.n = other.regions.cap = 0;
	other.by_id = map_new();
	rc = open_region(&other, g->regions.v[0].name, err);
	if (rc == 0)
		rc = open_all(&other, err);
	for (size_t i = 1; rc == 0 && i < other.regions.n; i++)
		rc = look_at(&other, &other.regions.v[i], err);
	for (size_t i = 0; rc == 0 && !*ret_region && i < other.items.n; i++)
		if (strcmp(other.items.v[i]->is.install, g->in->install) == 0)
			*ret_region = other.items.v[i]->is.region;
	gc_close(&other);
	return rc;
}
