/* coco: pictures and an annotation file of COCO for each split. DIR/train2017, DIR/val2017 and DIR/annotations/instances_train2017.json,
 * instances_val2017.json, or other names: an annotation file belongs to a folder of pictures. coco_file.c reads it; survey.c looks at all
 * pictures once. The label of a listed picture is its place in the annotation file. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/coco_file.h"
#include "data/dataset.h"
#include "data/listed.h"
#include "data/survey.h"
#include "picture/picture.h"

enum { SPLITS = 2 };                            /* train, val */
struct coco { char *path, *train, *val, *train_json, *val_json; int32_t bad; bool empty, masks, stored; };
struct own { struct nr_listed listed; struct nr_coco split[SPLITS]; bool stored; };        /* listed first: listed.c uses it */

static const char *const when_bad[] = { "fail", "skip", NULL };
static const struct nr_option options[] = {
	NR_OPT_STRING(struct coco, path, NULL, "folder with train2017, val2017 and annotations"),
	NR_OPT_STRING(struct coco, train, "", "folder of the training pictures in it; default: train2017 or train"),
	NR_OPT_STRING(struct coco, val, "", "folder of the validation pictures; default: val2017, val or valid"),
	NR_OPT_STRING(struct coco, train_json, "", "their annotations; default: annotations/instances_FOLDER.json and other usual names"),
	NR_OPT_STRING(struct coco, val_json, "", "annotations of the validation pictures"),
	NR_OPT_ENUM(struct coco, bad, "fail", when_bad, "pictures and entries that cannot be used: fail names them, skip leaves them out"),
	NR_OPT_BOOL(struct coco, empty, "0", "also train on pictures without objects (crowds do not count)"),
	NR_OPT_BOOL(struct coco, masks, "1", "read the masks; without them opening takes less time and memory"),
	NR_OPT_BOOL(struct coco, stored, "0", "boxes and masks are of pixels as the files store them: EXIF data turn no picture"),
	NR_OPT_END
};

static bool is_there(const char *path, bool folder)
{
	struct stat st;
	return path && !stat(path, &st) && (folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
}

static const char *below(const struct nr_source *s, const char *name)
{
	return *name == '/' ? name : nr_arena_printf(s->arena, "%s/%s", s->dir, name);
}

/* The folder of a split, as it was given, or the first usual one; NULL: there is none. */
static const char *find_folder(const struct nr_source *s, const char *given, const char *const *usual)
{
	if (*given) return given;
	while (*usual && !is_there(below(s, *usual), true)) usual++;
	return *usual;
}

static const char *find_file(const struct nr_source *s, const char *given, const char *folder)
{
	static const char *const usual[] = { "annotations/instances_%s.json", "annotations/%s.json", "%s/_annotations.coco.json",
		"%s/annotations.json", "%s.json", NULL };
	const char *first = NULL;
	if (*given) return below(s, given);
	for (int i = 0; usual[i]; i++) {
		const char *percent = strstr(usual[i], "%s");
		const char *name = nr_arena_printf(s->arena, "%.*s%s%s", (int)(percent - usual[i]), usual[i], folder, percent + 2);
		const char *path = name ? below(s, name) : NULL;
		if (!first) first = path;
		if (is_there(path, false)) return path;
	}
	return first;
}

/* Labels of one split in the numbers of another. */
static int same_classes(const struct nr_source *s, struct nr_coco *c, const struct nr_coco *of, struct nr_error *err)
{
	for (int64_t i = 0; i < c->images; i++)
		for (int32_t k = 0; k < c->image[i].count; k++) {
			struct nr_object *o = &c->image[i].object[k];
			o->label = nr_coco_class(of, c->category[o->label]);
		}
	for (int32_t k = 0; k < c->classes; k++) {
		const int32_t there = nr_coco_class(of, c->category[k]);
		if (there < 0)
			return nr_fail(err, NR_EFORMAT, "cannot use", c->path, "'%s' has no category %lld ('%s')", of->path,
				(long long)c->category[k], c->name[k]);
		if (strcmp(c->name[k], of->name[there]) != 0)
			return nr_fail(err, NR_EFORMAT, "cannot use", c->path, "category %lld is '%s', but '%s' in '%s'",
				(long long)c->category[k], c->name[k], of->name[there], of->path);
	}
	c->classes = of->classes;
	c->category = of->category;
	c->name = of->name;
	return NR_OK;
}

static bool has_objects(const struct nr_objects *o)
{
	for (int32_t i = 0; i < o->count; i++)
		if (!o->object[i].crowd) return true;
	return false;
}

/* Pictures that are not there: all of them are asked for, before some are looked at. */
static int list_pictures(struct nr_source *s, int split, const char *folder, const struct coco *conf, int64_t *empty, struct nr_error *err)
{
	const struct nr_coco *c = &((struct own *)s->own)->split[split];
	int64_t missing = 0, first = 0;
	struct nr_str path = { 0 };
	for (int64_t i = 0; i < c->images && !err->code; i++) {
		if (split == NR_TRAIN && !conf->empty && !has_objects(&c->image[i])) {
			++*empty;
			continue;
		}
		path.len = 0;
		nr_str_printf(&path, "%s/%s", folder, c->file[i]);
		const char *full = below(s, nr_str_text(&path));
		if (full && access(full, R_OK)) {
			first = missing++ ? first : i;
			if (missing > 1 && missing <= 50 && conf->bad == NR_COCO_FAIL)
				nr_log_line(NR_LOG_ERROR, "'%s': image %lld: there is no picture '%s'", c->path,
					(long long)c->image[i].image_id, full);
			continue;
		}
		nr_listed_add(s, (enum nr_split)split, nr_str_text(&path), (int32_t)i, err);
	}
	if (path.failed) nr_fail(err, NR_EMEMORY, "cannot open", s->dir, "out of memory");
	nr_str_release(&path);
	if (!missing || err->code) return err->code;
	const char *whole = below(s, folder);
	if (conf->bad == NR_COCO_SKIP) {
		nr_log_line(NR_LOG_WARNING, "%lld pictures of '%s' are not in '%s' and are left out, the first: '%s'", (long long)missing,
			c->path, whole ? whole : folder, c->file[first]);
		return NR_OK;
	}
	nr_fail(err, NR_EIO, "cannot use", c->path, "image %lld: there is no picture '%s/%s'%s", (long long)c->image[first].image_id,
		whole ? whole : folder, c->file[first], missing > 1 ? " (nor others)" : "");
	return nr_hint(err, "is that the folder? bad=skip leaves such pictures out");
}

/* Most programs show pictures upright, and boxes are of what they show; some annotate what the files store. Where only that has the size
 * that the annotation file tells, boxes are of that. */
static int fit(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, const char *path, struct nr_error *err)
{
	const struct own *own = s->own;
	const struct nr_objects *o = &own->split[split].image[nr_listed_label(s, split, i)];
	return own->stored ? nr_picture_as_stored(p, path, err) : nr_picture_as_sized(p, o->h, o->w, path, err);
}

/* Boxes mean nothing in a picture of another size. */
static int check_size(const struct nr_source *s, enum nr_split split, int64_t i, const struct nr_picture *p, const char *path,
	struct nr_error *err)
{
	const struct nr_coco *c = &((const struct own *)s->own)->split[split];
	const struct nr_objects *o = &c->image[nr_listed_label(s, split, i)];
	if (p->h == o->h && p->w == o->w) return NR_OK;
	return nr_fail(err, NR_EFORMAT, "cannot use", path, "it has %d x %d pixels (width x height), but its image %lld in '%s' %d x %d",
		p->w, p->h, (long long)o->image_id, c->path, o->w, o->h);
}

/* The sizes in the annotation file decide which pictures fit. */
static const char *stamp_of(const struct nr_source *s)
{
	const struct own *own = s->own;
	const char *text = own->stored ? "stored\n" : "";
	for (int k = 0; k < SPLITS && text; k++) {
		const char *path = own->split[k].path;
		struct stat st;
		if (path && !stat(path, &st))
			text = nr_arena_printf(s->arena, "%s%s %lld %lld.%ld\n", text, path, (long long)st.st_size,
				(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	}
	return text;
}

static int open_split(struct nr_source *s, int split, const struct coco *conf, int64_t *empty, struct nr_error *err)
{
	static const char *const usual[SPLITS][4] = { { "train2017", "train", NULL }, { "val2017", "val", "valid", NULL } };
	struct own *own = s->own;
	const bool val = split == NR_VAL;
	const char *folder = find_folder(s, val ? conf->val : conf->train, usual[split]);
	if (!folder) return NR_OK;
	const char *path = find_file(s, val ? conf->val_json : conf->train_json, folder);
	if (!path) return nr_fail(err, NR_EMEMORY, "cannot open", s->dir, "out of memory");
	const struct nr_coco_how how = { (enum nr_coco_bad)conf->bad, conf->masks };
	if (nr_coco_read(&own->split[split], path, &how, s->arena, err)) return err->code;
	if (val && own->split[NR_TRAIN].path && same_classes(s, &own->split[NR_VAL], &own->split[NR_TRAIN], err)) return err->code;
	s->class_name = own->split[split].name;
	s->classes = own->split[split].classes;
	return list_pictures(s, split, folder, conf, empty, err);
}

static int open_coco(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	const struct coco *o = conf;
	struct own *own = s->own = nr_arena_alloc(s->arena, sizeof *own);
	s->dir = *o->path == '/' || is_there(o->path, true) ? o->path : nr_arena_printf(s->arena, "%s/%s", dir, o->path);
	s->channels = 3;
	if (!own || !s->dir) return nr_fail(err, NR_EMEMORY, "cannot open", o->path, "out of memory");
	if (!is_there(s->dir, true)) {
		nr_fail(err, NR_EIO, "cannot open", s->dir, "No such file or directory");
		return nr_hint(err, "`norma data make shapes` draws pictures with boxes and masks");
	}
	own->listed = (struct nr_listed){ .dir = s->dir, .fit = fit, .check = check_size };
	own->stored = o->stored;
	int64_t empty = 0, bad = 0;
	for (int k = NR_TRAIN; k < SPLITS; k++)
		if (open_split(s, k, o, &empty, err)) return err->code;
	if (!s->count[NR_TRAIN] && !s->count[NR_VAL]) {
		nr_fail(err, NR_EFORMAT, "cannot open", s->dir, "it has no pictures with annotations");
		return nr_hint(err, "it needs train2017 or val2017 and annotations/instances_*.json, or the options train= and val=");
	}
	own->listed.stamp = stamp_of(s);
	if (nr_survey(s, dir, o->bad == NR_COCO_SKIP, &bad, err)) return err->code;
	bad += own->split[NR_TRAIN].left_out + own->split[NR_VAL].left_out;
	struct nr_str said = { 0 };
	if (empty) nr_str_printf(&said, "%lld training pictures without objects are left out", (long long)empty);
	if (bad) nr_str_printf(&said, "%s%lld pictures and entries that cannot be used are left out", said.len ? "; " : "", (long long)bad);
	s->said = said.len ? nr_str_keep(&said, s->arena) : NULL;
	return NR_OK;
}

static int32_t no_label(const struct nr_source *s, enum nr_split split, int64_t i) { return -1; }

static const struct nr_objects *objects(const struct nr_source *s, enum nr_split split, int64_t i)
{
	const struct own *own = s->own;
	return &own->split[split].image[nr_listed_label(s, split, i)];
}

const struct nr_coco *nr_coco_of(const struct nr_source *s, enum nr_split split)
{
	if (s->of != &nr_dataset_coco || (split != NR_TRAIN && split != NR_VAL)) return NULL;
	const struct nr_coco *c = &((const struct own *)s->own)->split[split];
	return c->path ? c : NULL;
}

const struct nr_dataset nr_dataset_coco = {
	.name = "coco", .title = "pictures with boxes and masks of objects, as COCO keeps them",
	.cite = "Lin et al. 2014, Microsoft COCO: Common Objects in Context, arXiv:1405.0312", .licence = "annotations CC BY 4.0; yours",
	.facts = "train2017, val2017, annotations/instances_*.json; 80 classes, or your own", .conf_size = sizeof(struct coco),
	.options = options, .open = open_coco, .get = nr_listed_get, .label = no_label, .objects = objects,
};
