/* Machine images: from the words of the job file to the id of the newest one that fits. */
#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "driver/aws/aws_resolve.h"

#define MASTER_IMAGE "al2023"
#define MAX_PARAMETER 4096

/* A "g" after the digit of the generation ("c7g", "is4gen") names a Graviton (arm64) type. */
const char *aws_type_architecture(const char *type)
{
	size_t family = strcspn(type, "."), digit = strcspn(type, "0123456789");

	if (strncmp(type, "a1.", 3) == 0)
		return "arm64";
	while (digit < family && isdigit((unsigned char)type[digit]))
		digit++;
	for (; digit < family; digit++)
		if (type[digit] == 'g')
			return "arm64";
	return "x86_64";
}

bool aws_type_has_gpus(const char *type)
{
	size_t letters = strcspn(type, "0123456789.");

	return (letters == 1 && (type[0] == 'p' || type[0] == 'g')) ||
	       (letters == 2 && strncmp(type, "gr", 2) == 0);
}

/* {a} is x86_64 or arm64, {d} amd64 or arm64. */
struct image_name {
	const char *name, *parameter;
	const char *gpu,
		*arm; /* parameters for GPU and for arm64 types; NULL: the same as for others */
};

static const struct image_name image_names[] = {
	{"al2023", "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{a}", NULL,
	 NULL},
	{"ecs", "/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_id",
	 "/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id",
	 "/aws/service/ecs/optimized-ami/amazon-linux-2023/arm64/recommended/image_id"},
	{"ubuntu-24.04",
	 "/aws/service/canonical/ubuntu/server/24.04/stable/current/{d}/hvm/ebs-gp3/ami-id", NULL,
	 NULL},
	{"debian-12", "/aws/service/debian/release/12/latest/{d}", NULL, NULL},
	{"dlami",
	 "/aws/service/deeplearning/ami/{a}/base-oss-nvidia-driver-gpu-al2023/latest/ami-id", NULL,
	 NULL},
};

static const char *parameter_of(const struct image_name *i, const char *type, struct arena *a)
{
	const char *architecture = aws_type_architecture(type);
	bool arm = strcmp(architecture, "arm64") == 0;
	const char *text = i->parameter, *at;

	if (i->gpu && aws_type_has_gpus(type))
		text = i->gpu;
	else if (i->arm && arm)
		text = i->arm;
	at = strchr(text, '{');
	if (!at)
		return text;
	return arena_printf(a, "%.*s%s%s", (int)(at - text), text,
			    at[1] == 'd' && !arm ? "amd64" : architecture, at + 3);
}

/* The value of an SSM parameter is the image id itself, or a JSON document that contains it. */
static int by_parameter(struct aws_inquiry *q, const char *name, const char **ret_id,
			struct err *err)
{
	CLEANUP(buf_release) struct buf value = {0};
	struct doc *d;

	buf_init(&value, MAX_PARAMETER);
	if (aws_ssm_parameter(q->s, name, &q->d, &value, err) < 0)
		return -1;
	*ret_id = arena_strdup(q->a, value.p ? value.p : "");
	if (**ret_id == '{' && json_parse(str_from(*ret_id), q->a, &d, NULL) == 0)
		*ret_id = doc_str(d, "image_id", STR("")).p;
	return 0;
}

/* ---- what is asked for ---- */

struct image_search {
	const char *id, *owner, *pattern, *architecture; /* by id, or by owner and pattern */
	const struct xml *best;
};

static void keep_newest(struct image_search *s, const struct xml *root)
{
	for (const struct xml *x = xml_at(root, "imagesSet/item"); x; x = xml_next(x))
		if (!s->best ||
		    strcmp(xml_text(x, "creationDate"), xml_text(s->best, "creationDate")) > 0)
			s->best = x;
}

static int search(struct aws_inquiry *q, struct image_search *s, struct aws_answer *ans,
		  struct err *err)
{
	struct aws_request r;
	int rc;

	aws_request_init(&r, "ec2", "DescribeImages");
	aws_param(&r, s->id, "ImageId.1");
	if (s->owner) {
		aws_param(&r, s->owner, "Owner.1");
		aws_param(&r, "name", "Filter.1.Name");
		aws_param(&r, s->pattern, "Filter.1.Value.1");
		aws_param(&r, "state", "Filter.2.Name");
		aws_param(&r, "available", "Filter.2.Value.1");
		aws_param(&r, "architecture", "Filter.3.Name");
		aws_param(&r, s->architecture, "Filter.3.Value.1");
	}
	rc = aws_query(q->s, &r, &q->d, ans, err);
	aws_request_release(&r);
	if (rc == 0)
		keep_newest(s, ans->root);
	return rc;
}

static int read_word(struct aws_inquiry *q, const char *word, const char *type,
		     struct image_search *s, struct err *err)
{
	const char *slash = strchr(word, '/');

	for (size_t i = 0; i < sizeof(image_names) / sizeof(image_names[0]); i++)
		if (strcmp(image_names[i].name, word) == 0)
			return by_parameter(q, parameter_of(&image_names[i], type, q->a), &s->id,
					    err);
	if (strncmp(word, "ssm:", 4) == 0)
		return by_parameter(q, word + 4, &s->id, err);
	if (strncmp(word, "ami-", 4) == 0) {
		s->id = word;
		return 0;
	}
	if (!slash)
		return err_set(err, ERR_INVALID,
			       "it is neither an id, ssm:NAME, OWNER/name pattern, nor one of "
			       "al2023, ecs, ubuntu-24.04, debian-12, dlami");
	s->owner = arena_strndup(q->a, word, (size_t)(slash - word));
	s->pattern = slash + 1;
	return 0;
}

static int64_t size_of_root(const struct xml *image)
{
	int64_t gb = 8;

	for (const struct xml *x = xml_at(image, "blockDeviceMapping/item"); x; x = xml_next(x))
		if (strcmp(xml_text(x, "deviceName"), xml_text(image, "rootDeviceName")) == 0)
			str_to_i64(str_from(xml_text(x, "ebs/volumeSize")), &gb);
	return gb;
}

static struct doc *image_fact(struct aws_inquiry *q, const struct xml *image)
{
	struct doc *d = doc_new(q->a, DOC_TABLE);

	inquiry_set(q, d, "ami", xml_text(image, "imageId"));
	inquiry_set(q, d, "root", xml_text(image, "rootDeviceName"));
	doc_set(q->a, d, STR("gb"), doc_new_int(q->a, size_of_root(image)));
	return d;
}

static int check_image(const struct image_search *s, const char *type, struct err *err)
{
	const char *has = s->best ? xml_text(s->best, "architecture") : "";

	if (!s->best)
		return err_set(err, ERR_NOT_FOUND, "there is no such image in this region");
	if (strcmp(has, s->architecture) != 0)
		return err_set(err, ERR_INVALID, "%s is an image for %s, and %s has %s",
			       xml_text(s->best, "imageId"), has, type, s->architecture);
	return 0;
}

static int find_image(struct aws_inquiry *q, const char *word, const char *type, struct doc **ret,
		      struct err *err)
{
	struct image_search s = {.architecture = aws_type_architecture(type)};
	struct aws_answer ans = {0};
	int rc = -1;

	if (read_word(q, word, type, &s, err) == 0 && search(q, &s, &ans, err) == 0)
		rc = check_image(&s, type, err);
	if (rc == 0)
		*ret = image_fact(q, s.best);
	aws_answer_release(&ans);
	return rc < 0 ? err_wrap(err, "ami '%.80s'", word) : 0;
}

/* One image must fit all types of a role. */
static int check_types(const struct doc *types, struct str role, struct err *err)
{
	for (size_t i = 1; i < types->array.n; i++) {
		const char *first = types->array.v[0]->s.p, *other = types->array.v[i]->s.p;

		if (strcmp(aws_type_architecture(first), aws_type_architecture(other)) != 0)
			return err_set(
				err, ERR_INVALID,
				"role '%.*s': %s and %s have different processors, so that no "
				"image fits both",
				STR_ARG(role), first, other);
	}
	return 0;
}

static int add_role(struct aws_inquiry *q, struct doc *images, const struct doc_entry *role,
		    struct err *err)
{
	const struct doc *types = doc_array(role->value, "types");
	const char *word = doc_str(role->value, "ami", STR(MASTER_IMAGE)).p;
	struct doc *found;

	if (!types || !types->array.n)
		return 0;
	if (check_types(types, role->key, err) < 0 ||
	    find_image(q, word, types->array.v[0]->s.p, &found, err) < 0)
		return -1;
	doc_set(q->a, images, role->key, found);
	return 0;
}

int inquiry_images(struct aws_inquiry *q, struct err *err)
{
	const struct doc *roles = doc_table(q->in->options, "roles");
	const char *type = inquiry_option(q, "master_type");
	struct doc *images = doc_new(q->a, DOC_TABLE), *found;

	for (size_t i = 0; roles && i < roles->table.n; i++)
		if (add_role(q, images, &roles->table.v[i], err) < 0)
			return -1;
	if (type && inquiry_master_is_apart(q)) {
		if (find_image(q, MASTER_IMAGE, type, &found, err) < 0)
			return err_wrap(err, "the master's image");
		doc_set(q->a, images, STR(""), found);
	}
	doc_set(q->a, q->facts, STR("images"), images);
	return 0;
}
