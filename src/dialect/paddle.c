#include "dialect/paddle.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "dialect/internal.h"
#include "fmt/doc.h"
#include "fmt/schema.h"

#define PSERVER_TYPE "c5.2xlarge"
#define TRAINER_TYPE "p2.8xlarge"
#define MAX_COUNT 10000
#define MAX_PORT 65535
#define GATHER "30m" /* with the pull of the training image; the tool had no limit */

struct paddle {
	const struct doc *flags;
	struct arena *a;
	struct problems *ps;
};

static const char *flag(const struct paddle *x, const char *name)
{
	struct str text = doc_str(x->flags, name, (struct str){0});

	return text.n ? text.p : NULL;
}

static void refuse(struct paddle *x, const char *name, const char *next)
{
	problems_add(x->ps, x->a, (struct doc_pos){0}, "--%s: %s", name, next);
}

static void set_text(struct paddle *x, struct doc *to, const char *key, const char *value)
{
	if (value)
		doc_set(x->a, to, str_from(key), doc_new_str(x->a, str_from(value)));
}

/* Sets key to the number that the flag gives, or leaves it out.  Its limits are the schema's, which would name
 * a key of the job file. */
static void set_number(struct paddle *x, struct doc *to, const char *key, const char *name,
		       int most)
{
	const char *text = flag(x, name);
	int64_t n;

	if (!text)
		return;
	if (!str_to_i64(str_from(text), &n) || n < 1 || n > most)
		refuse(x, name, arena_printf(x->a, "must be a whole number from 1 to %d", most));
	else
		doc_set(x->a, to, str_from(key), doc_new_int(x->a, n));
}

/* A table of one string. */
static void set_pair(struct paddle *x, struct doc *to, const char *table, const char *key,
		     const char *value)
{
	if (!value)
		return;
	struct doc *made = doc_new(x->a, DOC_TABLE);
	set_text(x, made, key, value);
	doc_set(x->a, to, str_from(table), made);
}

/* A list of one string. */
static void set_list(struct paddle *x, struct doc *to, const char *key, const char *value)
{
	if (!value)
		return;
	struct doc *list = doc_new(x->a, DOC_ARRAY);
	doc_append(x->a, list, doc_new_str(x->a, str_from(value)));
	doc_set(x->a, to, str_from(key), list);
}

/* ---- commands ---- */

struct words {
	struct doc *list;
	bool device; /* the user said which */
};

static void add_word(struct paddle *x, struct words *w, struct str word)
{
	if (word.n)
		doc_append(x->a, w->list, doc_new_str(x->a, word));
}

/* "batch_size:128" -> --batch_size 128.  The value may have colons. */
static void add_parameter(struct paddle *x, struct words *w, struct str seg)
{
	struct str value = seg, name = str_cut(&value, ':');

	w->device |= str_is(name, "device");
	add_word(x, w, str_from(arena_printf(x->a, "--%.*s", STR_ARG(name))));
	add_word(x, w, value);
}

/* "python,vgg.py,batch_size:128" -> python vgg.py --batch_size 128 --device GPU.  Words first, then
 * parameters, as the tool did. */
static struct doc *command_of(struct paddle *x, const char *text, const char *device)
{
	struct words w = {.list = doc_new(x->a, DOC_ARRAY)};

	for (int parameters = 0; parameters < 2; parameters++)
		for (struct str left = str_from(text ? text : ""); left.n;) {
			struct str seg = str_cut(&left, ',');
			bool is_parameter = memchr(seg.p, ':', seg.n) != NULL;

			if (is_parameter && parameters)
				add_parameter(x, &w, seg);
			else if (!is_parameter && !parameters)
				add_word(x, &w, seg);
		}
	if (!w.device)
		add_parameter(x, &w, str_from(arena_printf(x->a, "device:%s", device)));
	return w.list;
}

/* ---- images ---- */

static bool is_ami(const char *image)
{
	return image && strncmp(image, "ami-", 4) == 0;
}

/*
 * The tool's document gives --trainer_image_id as the training image, its code takes it as the machine
 * image: an id of a machine image is one, anything else is a container image.
 */
static void set_image(struct paddle *x, struct doc *role, const char *name)
{
	const char *id = flag(x, name), *docker = flag(x, "docker_image");
	const char *image = id && !is_ami(id) ? id : docker;

	if (is_ami(id))
		set_text(x, role, "ami", id);
	set_text(x, role, "image", image);
	if (!image)
		refuse(x, name,
		       "no training image: give it as --docker_image (or here, if it is no ami-...)");
}

/* ---- the tree ---- */

struct role_flags {
	const char *name, *count, *type, *image, *command, *port, *device, *fallback_type;
};

static const struct role_flags role_flags[] = {
	{"pserver", "pserver_count", "pserver_instance_type", "pserver_image_id", "pserver_command",
	 "pserver_port", "CPU", PSERVER_TYPE},
	{"trainer", "trainer_count", "trainer_instance_type", "trainer_image_id", "trainer_command",
	 NULL, "GPU", TRAINER_TYPE},
};

static struct doc *role_of(struct paddle *x, const struct role_flags *f)
{
	struct doc *role = doc_new(x->a, DOC_TABLE);
	const char *type = flag(x, f->type);

	doc_set(x->a, role, STR("count"), doc_new_int(x->a, 1));
	set_number(x, role, "count", f->count, MAX_COUNT);
	if (f->port)
		set_number(x, role, "port", f->port, MAX_PORT);
	set_text(x, role, "instance_type", type ? type : f->fallback_type);
	set_image(x, role, f->image);
	doc_set(x->a, role, STR("command"), command_of(x, flag(x, f->command), f->device));
	return role;
}

/* The region of "us-east-2a". */
static const char *region_of(struct paddle *x, const char *zone)
{
	size_t n = zone ? strlen(zone) : 0;

	while (n && isalpha((unsigned char)zone[n - 1]))
		n--;
	return n ? arena_strndup(x->a, zone, n) : NULL;
}

static struct doc *aws_of(struct paddle *x, const char *task)
{
	struct doc *aws = doc_new(x->a, DOC_TABLE);

	set_text(x, aws, "region", region_of(x, flag(x, "availability_zone")));
	set_text(x, aws, "vpc", flag(x, "vpc_id"));
	set_list(x, aws, "subnets", flag(x, "subnet_id"));
	set_list(x, aws, "zones", flag(x, "availability_zone"));
	set_list(x, aws, "security_groups", flag(x, "security_group_id"));
	set_text(x, aws, "key_name", flag(x, "key_name"));
	set_number(x, aws, "master_port", "master_server_port", MAX_PORT);
	set_text(x, aws, "task_name", task);
	return aws;
}

/* Flags without an effect here, and why. */
static void warn_of_unused(struct paddle *x)
{
	static const char *const unused[][2] = {
		{"pem_path", "nothing here logs in to a machine"},
		{"master_docker_image", "the master is this program, without a container"},
		{"no_clean_up",
		 "machines are always removed at the end; logs and outputs are kept in the bucket"},
	};

	for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++)
		if (flag(x, unused[i][0]))
			problems_warn(x->ps, x->a, (struct doc_pos){0},
				      arena_printf(x->a, "--%s has no effect: %s", unused[i][0],
						   unused[i][1]));
}

struct doc *paddle_job(struct doc *flags, struct arena *a, struct problems *ps)
{
	struct paddle x = {.flags = flags, .a = a, .ps = ps};
	struct doc *job = doc_new(a, DOC_TABLE), *roles = doc_new(a, DOC_TABLE);
	const char *task = flag(&x, "task_name"), *name;

	name = dialect_job_name(str_from(task ? task : ""), a);
	set_text(&x, job, "name", *name ? name : "paddle");
	set_text(&x, job, "engine", "aws.ec2");
	set_text(&x, job, "strategy", "pserver");
	set_text(&x, job, "metric_prefix", flag(&x, "metric_data_identifier"));
	set_pair(&x, job, "env", "TASK_NAME", task);
	set_pair(&x, job, "timeouts", "gather", GATHER);
	for (size_t i = 0; i < sizeof(role_flags) / sizeof(role_flags[0]); i++)
		doc_set(a, roles, str_from(role_flags[i].name), role_of(&x, &role_flags[i]));
	doc_set(a, job, STR("roles"), roles);
	doc_set(a, job, STR("aws"), aws_of(&x, task ? task : *name ? name : "paddle"));
	warn_of_unused(&x);
	return job;
}
