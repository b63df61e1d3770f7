/* norma data make: data sets that are drawn, not downloaded. */
#include <stdio.h>
#include <string.h>

#include "data.h"
#include "data/dataset.h"
#include "data/listops.h"
#include "data/shapes.h"

static void draw(void *bar, int64_t rows) { nr_progress_update(bar, rows, "expressions"); }
static void draw_pictures(void *bar, int64_t pictures) { nr_progress_update(bar, pictures, "pictures"); }

/* "500:2000" as n whole numbers of at least `least`. */
static int numbers(struct cli *c, const char *flag, const char *text, const char *example, int64_t least, int n, int64_t *out)
{
	char *copy = nr_arena_strdup(c->arena, text), *word;
	int found = 0;
	bool good = copy != NULL;
	while (good && (word = strsep(&copy, ":"))) good = found < n && nr_parse_int(word, &out[found]) && out[found++] >= least;
	if (good && found == n) return NR_OK;
	cli_usage(c, "--%s '%s' is not %d whole numbers with colons between them", flag, text, n);
	return nr_hint(c->err, "as in --%s %s", flag, example);
}

static int make_listops(struct cli *c, const struct data *o, const char *dir)
{
	const char *samples = *o->samples ? o->samples : "96000:2000:2000";
	struct nr_listops_files f = { .how = { .depth = o->depth, .arguments = o->arguments, .seed = (uint64_t)o->seed } };
	int64_t length[2];
	struct nr_progress bar;
	if (numbers(c, "length", o->length, "500:2000", 0, 2, length) || numbers(c, "samples", samples, "96000:2000:2000", 0, 3, f.count))
		return c->err->code;
	if (length[1] < length[0] + 2)
		return cli_usage(c, "--length %s leaves no length in between", o->length);
	f.how.shortest = length[0], f.how.longest = length[1];
	nr_progress_init(&bar, stderr, "listops", f.count[0] + f.count[1] + f.count[2], 0);
	f.watch = draw, f.context = &bar;
	const int code = nr_listops_write(&f, dir, c->err);
	nr_progress_release(&bar);
	if (code) return code;
	if (o->json)
		return nr_json_line(stdout, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "name", "listops", "dir", dir, "train",
			(json_int_t)f.count[0], "val", (json_int_t)f.count[1], "test", (json_int_t)f.count[2], "drawn",
			(json_int_t)f.drawn), c->err);
	printf("listops: %lld + %lld + %lld expressions of %lld trees, in '%s'\n", (long long)f.count[0], (long long)f.count[1],
		(long long)f.count[2], (long long)f.drawn, dir);
	if (*o->output) printf("use: --data listops:path=%s\n", dir);
	return NR_OK;
}

static int make_shapes(struct cli *c, const struct data *o, const char *dir)
{
	const char *samples = *o->samples ? o->samples : "2000:200";
	struct nr_shapes_files f = { .how = { .size = o->size, .seed = (uint64_t)o->seed } };
	int64_t most[2];
	struct nr_progress bar;
	if (numbers(c, "shapes", o->shapes, "1:6", 0, 2, most) || numbers(c, "samples", samples, "2000:200", 0, 2, f.count))
		return c->err->code;
	if (most[1] < most[0] || most[1] < 1 || most[1] > NR_SHAPES_MOST)
		return cli_usage(c, "--shapes %s is not a range up to %d", o->shapes, NR_SHAPES_MOST);
	f.how.fewest = most[0], f.how.most = most[1];
	nr_progress_init(&bar, stderr, "shapes", f.count[0] + f.count[1], 0);
	f.watch = draw_pictures, f.context = &bar;
	const int code = nr_shapes_write(&f, dir, c->err);
	nr_progress_release(&bar);
	if (code) return code;
	if (o->json)
		return nr_json_line(stdout, json_pack("{s:s, s:s, s:I, s:I, s:I}", "name", "shapes", "dir", dir, "train",
			(json_int_t)f.count[0], "val", (json_int_t)f.count[1], "shapes", (json_int_t)f.shapes), c->err);
	printf("shapes: %lld + %lld pictures with %lld shapes, in '%s'\nuse: --data coco:path=%s\n", (long long)f.count[0],
		(long long)f.count[1], (long long)f.shapes, dir, *o->output ? dir : "shapes");
	return NR_OK;
}

static const struct made { const char *name; int (*make)(struct cli *, const struct data *, const char *dir); } made[] = {
	{ "listops", make_listops },
	{ "shapes", make_shapes },
};

int data_make(struct cli *c, const struct data *o, const char *name, const char *root)
{
	struct nr_near near = { .word = name };
	for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
		const char *dir = *o->output ? o->output : nr_arena_printf(c->arena, "%s/%s", root, made[i].name);
		if (!dir) return nr_fail(c->err, NR_EMEMORY, "cannot make", name, "out of memory");
		if (!strcmp(name, made[i].name)) return made[i].make(c, o, dir);
		nr_near_try(&near, made[i].name);
	}
	nr_fail(c->err, NR_ENAME, "cannot make", name, "only listops and shapes are drawn");
	return nr_hint(c->err, "norma data make %s", near.best ? near.best : "shapes");
}
