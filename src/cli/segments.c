/* See segments.h. */
#include "segments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/save.h"
#include "class_tables.h"
#include "infer/evaluate.h"
#include "picture/overlay.h"

#define SHARE 0.6                               /* of a class's colour in a pixel of an overlay */

const char *const cli_views[] = { "auto", "whole", "slide", "square", NULL };

bool cli_view_given(const struct cli_view *v) { return v->view || v->side >= 0 || v->stride >= 0; }

static int open_segmenter(struct nr_segmenter **out, const struct nr_weights *w, const struct cli_view *v, const struct nr_augment *a,
	const struct nr_pixel_stats *stats, struct nr_error *err)
{
	struct nr_segment_view view = *w->segment_view;
	if (v->view) view.view = v->view - 1;
	if (v->side >= 0) view.side = v->side;
	if (v->stride >= 0) view.stride = v->stride;
	return nr_segmenter_open(out, w, w->segment, w->whole_norms, &view, a, stats, err);
}

/* ---- norma eval -------------------------------------------------------------------------------------------------------------- */

static int print_score(const struct cli_opened *o, const char *path, const struct nr_segment_score *s, const struct nr_class_counts *t,
	bool confusion, bool json, struct nr_error *err)
{
	if (json) {
		json_t *j = json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:I}", "file", path, "data", o->source->of->name, "split",
			nr_split_name(o->e.split), "miou", s->miou, "pixel_acc", s->pixel_acc, "mean_acc", s->mean_acc, "nll", s->loss,
				"samples",
			(json_int_t)s->samples);
		cli_json_classes(j, t, confusion);
		return cli_print_json(j, err);
	}
	printf("%s on %s/%s, %lld pictures\n", path, o->source->of->name, nr_split_name(o->e.split), (long long)s->samples);
	printf("mean IoU %s%.2f %%%s   pixel accuracy %.2f %%   mean accuracy of a class %.2f %%   NLL of a pixel %.4f\n", cli_bold(),
		100 * s->miou,
		cli_plain(), 100 * s->pixel_acc, 100 * s->mean_acc, s->loss);
	cli_print_classes(t, confusion);
	return NR_OK;
}

int cli_eval_segments(struct cli *c, struct cli_opened *o, const struct cli_view *v, bool confusion, bool json, const char *path)
{
	const int64_t K = o->w->segment->classes;
	const struct nr_pixel_stats stats = nr_source_pixel_stats(o->source);
	struct nr_segmenter *s = NULL;
	struct nr_segment_score score;
	if (!o->source->of->map) return nr_source_map(o->source, NR_TRAIN, 0, NULL, NULL, c->err);      /* says so */
	if (nr_classes_fit(K, o->source, c->err)) return c->err->code;
	if (!(o->e.confusion = calloc((size_t)(K * K), sizeof *o->e.confusion)))
		return nr_fail(c->err, NR_EMEMORY, "cannot evaluate", path, "out of memory");
	int code = open_segmenter(&s, o->w, v, &o->e.augment, &stats, c->err);
	if (!code) code = nr_segmenter_score(s, &o->e, NULL, &score, c->err);
	nr_progress_release(&o->bar);
	const struct nr_class_counts told = { .classes = K, .confusion = o->e.confusion, .name = o->source->class_name, .pixels = true,
		.colour = o->w->colour };
	if (!code) code = print_score(o, path, &score, &told, confusion, json, c->err);
	nr_segmenter_close(s);
	free(o->e.confusion);
	return code;
}

/* ---- norma predict ------------------------------------------------------------------------------------------------------------ */

struct share { int64_t count; int32_t class_; };
struct job {
	const struct predict_segments *o;
	struct nr_segmenter *s;
	int32_t channels;
	int32_t classes;
	uint8_t (*colour)[3];
	struct nr_picture picture, map, overlay;
	struct share *share;
};

static int by_count(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;               /* the count comes first */
	return *x != *y ? (*x < *y ? 1 : -1) : 0;
}

static void count(struct job *j)
{
	for (int32_t k = 0; k < j->classes; k++) j->share[k].count = 0, j->share[k].class_ = k;
	for (int64_t i = 0; i < (int64_t)j->map.h * j->map.w; i++) j->share[j->map.pixels[i]].count++;
	qsort(j->share, (size_t)j->classes, sizeof *j->share, by_count);
}

static const char *name_of(const struct job *j, int32_t k, char *buf, size_t size)
{
	if (k < j->o->names) return j->o->name[k];
	snprintf(buf, size, "class %d", k);
	return buf;
}

static int tell(const struct job *j, const char *path, const char *overlay, const char *labels, struct nr_error *err)
{
	const double all = (double)j->map.h * j->map.w;
	char buf[32];
	json_t *list = j->o->json ? json_array() : NULL;
	if (!list) printf("%s%s%s -> %s\n", cli_bold(), path, cli_plain(), overlay);
	for (int32_t i = 0; i < j->classes && i < j->o->top && j->share[i].count; i++) {
		const char *name = name_of(j, j->share[i].class_, buf, sizeof buf);
		const double share = (double)j->share[i].count / all;
		if (list) json_array_append_new(list, json_pack("{s:i, s:s, s:f}", "class", j->share[i].class_, "name", name, "share",
			share));
		else printf("  %6.2f %%  %s\n", 100 * share, name);
	}
	if (!list) return NR_OK;
	return nr_json_line(stdout, json_pack("{s:s, s:s, s:s, s:o}", "picture", path, "overlay", overlay, "labels", labels, "classes",
		list), err);
}

/* FOLDER/NAME of the picture; those of the same name in other folders get a number. */
static const char *place_of(const struct job *j, char **file, int64_t i, struct nr_arena *arena)
{
	const char *slash = strrchr(file[i], '/'), *name = slash ? slash + 1 : file[i], *dot = strrchr(name, '.');
	const int n = dot > name ? (int)(dot - name) : (int)strlen(name);
	int same = 1;
	for (int64_t k = 0; k < i; k++) {
		const char *cut = strrchr(file[k], '/'), *other = cut ? cut + 1 : file[k];
		same += !strncmp(other, name, (size_t)n) && (other[n] == '.' || !other[n]);
	}
	return same > 1 ? nr_arena_printf(arena, "%s/%.*s-%d", j->o->out, n, name, same) : nr_arena_printf(arena, "%s/%.*s", j->o->out, n,
		name);
}

static int predict_one(struct cli *c, struct job *j, char **file, int64_t i, struct nr_error *err)
{
	const char *place = place_of(j, file, i, c->arena);
	const char *overlay = place ? nr_arena_printf(c->arena, "%s.png", place) : NULL;
	const char *labels = place ? nr_arena_printf(c->arena, "%s.labels.png", place) : NULL;
	if (!overlay || !labels) return nr_fail(err, NR_EMEMORY, "cannot predict", file[i], "out of memory");
	if (nr_picture_read(&j->picture, file[i], j->channels, err) ||
		nr_segmenter_run(j->s, &j->picture, NULL, &j->map, NULL, NULL, err) ||
		nr_overlay(&j->picture, &j->map, (const uint8_t(*)[3])j->colour, j->classes, SHARE, &j->overlay, err) ||
		nr_picture_write_png(&j->overlay, overlay, err) || nr_picture_write_png(&j->map, labels, err))
		return err->code;
	count(j);
	return tell(j, file[i], overlay, labels, err);
}

int cli_predict_segments(struct cli *c, const struct predict_segments *o, struct nr_weights *w, const struct nr_augment *colours,
	char **file,
	int64_t files)
{
	struct job j = { .o = o, .channels = (int32_t)nr_model_int(&w->model, "channels"), .classes = (int32_t)w->segment->classes };
	const size_t K = (size_t)j.classes;
	int64_t failed = 0;
	char line[1400];
	j.colour = nr_arena_alloc(c->arena, K * sizeof *j.colour);
	j.share = nr_arena_alloc(c->arena, K * sizeof *j.share);
	if (!j.colour || !j.share) return nr_fail(c->err, NR_EMEMORY, "cannot predict", NULL, "out of memory");
	nr_class_colours(w->colour, j.classes, j.colour);
	int code = nr_folder_make(o->out, c->err);
	if (!code) code = open_segmenter(&j.s, w, o->view, colours, NULL, c->err);
	for (int64_t i = 0; i < files && !code; i++) {
		struct nr_error err = { 0 };
		if (!predict_one(c, &j, file, i, &err)) continue;
		failed++;
		if (files == 1) *c->err = err;
		else nr_log_line(NR_LOG_ERROR, "%s", nr_error_text(&err, line, sizeof line));
	}
	if (failed && files > 1) nr_fail(c->err, NR_EFORMAT, "pictures failed", NULL, "%lld of %lld", (long long)failed, (long long)files);
	nr_segmenter_close(j.s);
	nr_picture_release(&j.picture);
	nr_picture_release(&j.map);
	nr_picture_release(&j.overlay);
	return c->err->code;
}
