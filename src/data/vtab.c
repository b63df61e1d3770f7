/* vtab: the tasks of VTAB-1k (Zhai et al. 2019, arXiv:1910.04867): 800 pictures to train on, 200 to choose with, and the whole test split.
 *
 * A task is looked for below the data root, in this order:
 *   vtab-1k/FOLDER/train800.txt, val200.txt, test.txt    published splits, lines "path label"
 *   vtab/ID/train/CLASS/..., test/CLASS/...              folders of classes
 *   the data set of ours that has it                     such as cifar100
 * In the latter two, 800 and 200 are drawn here, always the same ones: from train and val where both are there, else both from train. A set
 * that has fewer gives 80 % and 20 % of them. `of=` takes any other data set in the place of a task.
 *
 * Pixels are from -1 to 1, as in the benchmark's own code (pixels=half), or normalised by ImageNet's statistics (pixels=imagenet): tables
 * in the literature mix the two. */
#include "data/vtab.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/dataset.h"
#include "data/listed.h"

#define VTAB(group, ...) { NR_VTAB_##group, __VA_ARGS__ },
const struct nr_vtab_task nr_vtab_tasks[] = {
#include "data/vtab.def"
	{ .id = NULL },
};
#undef VTAB

static const char published[] = "the published 800 + 200 samples and test split";
enum { STREAM = 0x56544142, HALF = 0, IMAGENET };
static const char *const pixel_choices[] = { "half", "imagenet", NULL };

struct vtab { char *task, *of; int64_t train, val; int32_t pixels; };
static const struct nr_option options[] = {
	NR_OPT_STRING(struct vtab, task, "", "one of the 19 tasks: norma vtab --list"),
	NR_OPT_STRING(struct vtab, of, "", "instead of a task: any data set, without commas"),
	NR_OPT_INT(struct vtab, train, 800, 1, 1e9, "samples to train on"),
	NR_OPT_INT(struct vtab, val, 200, 1, 1e9, "samples to choose settings with"),
	NR_OPT_ENUM(struct vtab, pixels, "half", pixel_choices, "half: from -1 to 1; imagenet: by its mean and standard deviation"),
	NR_OPT_END
};

struct drawn {
	struct nr_source *inner;
	int32_t *sample[2];                     /* of training and validation */
	enum nr_split from[2];
	const struct nr_vtab_task *task;        /* NULL: `of` */
	bool partial;
};

const char *nr_vtab_group_name(enum nr_vtab_group g)
{
	static const char *const names[] = { "natural", "specialized", "structured" };
	return names[g];
}

static const struct nr_vtab_task *find_task(const char *id, struct nr_error *err)
{
	struct nr_near near = { .word = id };
	for (const struct nr_vtab_task *t = nr_vtab_tasks; t->id; t++) {
		if (!strcmp(t->id, id)) return t;
		nr_near_try(&near, t->id);
	}
	nr_fail(err, NR_ENAME, "no such task of VTAB", id, "`norma vtab --list` lists them");
	if (near.best) nr_hint(err, "did you mean '%s'?", near.best);
	return NULL;
}

static void set_pixels(struct nr_source *s, int32_t pixels)
{
	static const float mean[] = { .485F, .456F, .406F }, std[] = { .229F, .224F, .225F };
	for (int i = 0; i < 3; i++) s->mean[i] = pixels == HALF ? .5F : mean[i], s->std[i] = pixels == HALF ? .5F : std[i];
}

/* ---- published splits ------------------------------------------------------------------------------------------------------------ */

/* "images/train/000001.jpg 12": the label is the last word. */
static int read_list(struct nr_source *s, enum nr_split split, const char *path, struct nr_error *err)
{
	char **line;
	int64_t *number, count;
	if (nr_listed_lines(s, path, &line, &number, &count, err)) return err->code;
	for (int64_t i = 0; i < count; i++) {
		char *space = strrchr(line[i], ' '), *end = NULL;
		const long label = space ? strtol(space + 1, &end, 10) : -1;
		if (!space || end == space + 1 || *end || label < 0 || label >= s->classes)
			return nr_fail(err, NR_EFORMAT, "cannot read", path, "line %lld is not a path and a class from 0 to %d",
				(long long)number[i], s->classes - 1);
		*space = 0;
		if (nr_listed_add(s, split, line[i], (int32_t)label, err)) return err->code;
	}
	return count ? NR_OK : nr_fail(err, NR_EFORMAT, "cannot read", path, "it is empty");
}

static int open_lists(struct nr_source *s, const char *dir, const struct nr_vtab_task *task, struct nr_error *err)
{
	static const char *const names[] = { "train800.txt", "val200.txt", "test.txt" };
	s->said = published;
	s->dir = dir;
	s->channels = 3;
	s->classes = task->classes;
	for (int i = 0; i < 3; i++) {
		const char *path = nr_arena_printf(s->arena, "%s/%s", dir, names[i]);
		if (!path) return nr_fail(err, NR_EMEMORY, "cannot open", dir, "out of memory");
		if (read_list(s, (enum nr_split)i, path, err)) return err->code;
	}
	return nr_listed_probe(s, err);
}

/* ---- drawn here ------------------------------------------------------------------------------------------------------------------- */

/* The first n of a fixed order of `count`, after `skip` of them. */
static int32_t *draw(struct nr_source *s, int64_t count, int64_t skip, int64_t n)
{
	int32_t *all = nr_arena_alloc(s->arena, (size_t)count * sizeof *all);
	if (!all || skip + n > count) return NULL;
	nr_rng_shuffle(nr_rng_make(0, STREAM, 0), 0, all, (int32_t)count);
	return all + skip;
}

static int open_drawn(struct nr_source *s, const struct vtab *c, struct drawn *o, const char *name, struct nr_error *err)
{
	const struct nr_source *in = o->inner;
	const bool own_val = in->count[NR_VAL] > 0 && in->count[NR_TEST] > 0;
	const enum nr_split test = in->count[NR_TEST] ? NR_TEST : NR_VAL;
	const int64_t train = in->count[NR_TRAIN], val = own_val ? in->count[NR_VAL] : train;
	if (in->of->kind != NR_PICTURES || in->classes < 2 || train < 5 || !in->count[test])
		return nr_fail(err, NR_EVALUE, "cannot draw a task from", name,
			"it needs pictures with classes, at least five for training, and a split to test with");
	int64_t n = c->train, m = c->val;
	const bool few = own_val ? train < n || val < m : train < n + m;
	if (few) {
		n = own_val ? (train < n ? train : n) : train * 4 / 5;
		m = own_val ? (val < m ? val : m) : train - n;
	}
	o->from[0] = NR_TRAIN, o->from[1] = own_val ? NR_VAL : NR_TRAIN;
	o->sample[0] = draw(s, train, 0, n);
	o->sample[1] = draw(s, val, own_val ? 0 : n, m);
	if (!o->sample[0] || !o->sample[1]) return nr_fail(err, NR_EMEMORY, "cannot open", name, "out of memory");
	o->partial = few || (o->task && in->count[test] < o->task->test);
	s->dir = in->dir;
	s->channels = 3, s->h = in->h, s->w = in->w;            /* grey is made to colours: the models are of colours */
	s->classes = in->classes, s->class_name = in->class_name;
	s->count[NR_TRAIN] = n, s->count[NR_VAL] = m, s->count[NR_TEST] = in->count[test];
	s->said = nr_arena_printf(s->arena, "%lld + %lld samples of %s, drawn here%s", (long long)n, (long long)m, name,
		few ? "; the set has fewer than the benchmark takes" : "");
	return NR_OK;
}

static int open_vtab(struct nr_source *s, const char *root, const void *conf, struct nr_error *err)
{
	const struct vtab *c = conf;
	struct drawn *o = NULL;
	if (!*c->task == !*c->of)
		return nr_fail(err, NR_EVALUE, "cannot open", "vtab", "%s",
			*c->of ? "task= and of= exclude each other" : "task= or of= must say what");
	const struct nr_vtab_task *task = *c->task ? find_task(c->task, err) : NULL;
	if (*c->task && !task) return err->code;
	set_pixels(s, c->pixels);
	if (task) {
		const char *dir = nr_arena_printf(s->arena, "%s/vtab-1k/%s", root, task->folder);
		const char *first = nr_arena_printf(s->arena, "%s/train800.txt", dir);
		if (dir && first && !access(first, R_OK)) return open_lists(s, dir, task, err);
	}
	o = s->own = nr_arena_alloc(s->arena, sizeof *o);
	const char *mine = task ? nr_arena_printf(s->arena, "%s/vtab/%s", root, task->id) : NULL;
	if (!o || (task && !mine)) return nr_fail(err, NR_EMEMORY, "cannot open", "vtab", "out of memory");
	o->task = task;
	const char *text = !task ? c->of : !access(mine, R_OK) ? nr_arena_printf(s->arena, "folder:path=%s", mine) : task->of;
	if (!text) {
		nr_fail(err, NR_EIO, "no files of the task", task->id, "neither '%s/vtab-1k/%s' nor '%s' is there", root, task->folder,
			mine);
		return nr_hint(err, "https://www.tensorflow.org/datasets/catalog/%s says where to get them", task->page);
	}
	if (nr_source_open(&o->inner, text, root, err)) return err->code;
	const int code = open_drawn(s, c, o, task ? task->id : text, err);
	if (!code) set_pixels(s, c->pixels);
	return code;
}

static bool listed(const struct nr_source *s) { return s->said == published; }       /* its own is then of listed.h */

struct nr_vtab_origin nr_vtab_origin(const struct nr_source *s)
{
	return (struct nr_vtab_origin){ .published = listed(s), .partial = !listed(s) && ((const struct drawn *)s->own)->partial };
}

/* Test samples are taken as they are. */
static int64_t place(const struct drawn *o, enum nr_split *split, int64_t i)
{
	if (*split == NR_TEST) return *split = o->inner->count[NR_TEST] ? NR_TEST : NR_VAL, i;
	const int k = *split == NR_VAL;
	*split = o->from[k];
	return o->sample[k][i];
}

static int get(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *to, struct nr_error *err)
{
	if (listed(s)) return nr_listed_get(s, split, i, to, err);
	const struct drawn *o = s->own;
	const int64_t at = place(o, &split, i);
	struct nr_picture grey = { 0 };
	if (o->inner->channels != 1) return nr_source_get(o->inner, split, at, to, NULL, err);
	int code = nr_source_get(o->inner, split, at, &grey, NULL, err);
	if (!code) code = nr_picture_resize(to, grey.h, grey.w, 3, err);
	for (int64_t k = 0; !code && k < 3 * (int64_t)grey.h * grey.w; k++) to->pixels[k] = grey.pixels[k / 3];
	nr_picture_release(&grey);
	return code;
}

static int32_t label(const struct nr_source *s, enum nr_split split, int64_t i)
{
	if (listed(s)) return nr_listed_label(s, split, i);
	const struct drawn *o = s->own;
	const int64_t at = place(o, &split, i);
	return nr_source_label(o->inner, split, at);
}

static void close_vtab(struct nr_source *s)
{
	if (s->own && !listed(s)) nr_source_close(((struct drawn *)s->own)->inner);
}

const struct nr_dataset nr_dataset_vtab = {
	.name = "vtab", .title = "tasks of VTAB-1k", .cite = "arXiv:1910.04867", .licence = "of each set",
	.facts = "19 tasks of 800 + 200 val pictures and a whole test split: norma vtab --list", .conf_size = sizeof(struct vtab),
	.options = options, .open = open_vtab, .get = get, .label = label, .close = close_vtab,
};
