/* See objects.h. */
#include "objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/coco_record.h"
#include "analysis/detector_eval.h"
#include "base/log.h"
#include "base/save.h"
#include "picture/mark.h"
#include "score_tables.h"

struct job {
	struct cli *c;
	const struct predict_objects *o;
	struct nr_detector_runner run;
	struct nr_object_view view;
	struct nr_augment_scratch *scratch;
	struct nr_picture picture, marked;
	float *image;
	struct nr_detection *found;
	struct nr_mark_of *mark;
	char (*text)[96];
};

static const char *name_of(const struct predict_objects *o, int32_t label, char *buf, size_t size)
{
	if (label < o->names) snprintf(buf, size, "%.*s", (int)size - 1, o->name[label]);
	else snprintf(buf, size, "class %d", label);
	for (char *s = buf; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7F) *s = ' ';
	return buf;
}

/* ---- predict ------------------------------------------------------------------------------------------------------------------ */

static json_t *json_of(const struct job *j, const struct nr_detection *d)
{
	char name[80];
	json_t *one = json_pack("{s:i, s:s, s:f, s:[f,f,f,f]}", "class", d->label, "name", name_of(j->o, d->label, name, sizeof name),
		"score", d->score, "bbox", d->xywh[0], d->xywh[1], d->xywh[2], d->xywh[3]);
	struct nr_str counts = { 0 };
	if (d->mask) {
		nr_rle_to_string(d->mask, &counts);
		json_object_set_new(one, "segmentation", json_pack("{s:[i,i], s:s}", "size", d->mask->h, d->mask->w, "counts",
			nr_str_text(&counts)));
	}
	nr_str_release(&counts);
	return one;
}

static int tell(const struct job *j, const char *path, int64_t n)
{
	char name[80];
	if (j->o->json) {
		json_t *list = json_array();
		for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_of(j, &j->found[i]));
		return nr_json_line(stdout, json_pack("{s:s, s:o}", "picture", path, "objects", list), j->c->err);
	}
	printf("%s%s%s: %lld object%s\n", cli_bold(), path, cli_plain(), (long long)n, n == 1 ? "" : "s");
	for (int64_t i = 0; i < n; i++) {
		const struct nr_detection *d = &j->found[i];
		printf("  %6.2f %%  %-16s at %.1f, %.1f, %.1f x %.1f", 100 * d->score, name_of(j->o, d->label, name, sizeof name),
			d->xywh[0], d->xywh[1], d->xywh[2], d->xywh[3]);
		if (d->mask) printf(", %lld pixels", (long long)nr_rle_area(d->mask));
		putchar('\n');
	}
	return NR_OK;
}

/* The picture with what was found, the surest on top, as DIR/NAME.png. */
static int draw(struct job *j, const char *path, int64_t n, struct nr_error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	const char *to = nr_arena_printf(j->c->arena, "%s/%.*s.png", j->o->draw, dot ? (int)(dot - name) : (int)strlen(name), name);
	for (int64_t i = 0; i < n; i++) {
		const struct nr_detection *d = &j->found[n - 1 - i];
		char label[80];
		snprintf(j->text[i], sizeof *j->text, "%s %.0f", name_of(j->o, d->label, label, sizeof label), 100 * d->score);
		j->mark[i] = (struct nr_mark_of){ .mask = d->mask, .label = d->label, .text = j->text[i] };
		memcpy(j->mark[i].xywh, d->xywh, sizeof d->xywh);
	}
	if (!to) return nr_fail(err, NR_EMEMORY, "cannot draw", path, "out of memory");
	const int code = nr_picture_mark(&j->picture, j->mark, n, 0, &j->marked, err);
	return code ? code : nr_picture_write_png(&j->marked, to, err);
}

static int predict_one(struct job *j, const char *path, struct nr_error *err)
{
	struct nr_object_sample s;
	if (nr_picture_read(&j->picture, path, j->view.channels, err) ||
		nr_object_view_picture(&j->view, &j->picture, j->image, &s, j->scratch, err)) return err->code;
	nr_detector_runner_put(&j->run, 0, j->image, &s);
	nr_detector_runner_run(&j->run, NR_STATS_RUNNING);
	const int64_t all = nr_detector_runner_found(&j->run, 0, &s, 0, j->picture.h, j->picture.w, true, j->found, err);
	int64_t n = 0;
	while (n < all && j->found[n].score >= j->o->score) n++;
	int code = all < 0 ? (int)all : tell(j, path, n);
	if (!code && *j->o->draw) code = draw(j, path, n, err);
	for (int64_t i = 0; i < all; i++) nr_rle_free(j->found[i].mask);
	return code;
}

static int open_job(struct job *j, const struct nr_weights *w, struct nr_error *err)
{
	const size_t keep = (size_t)w->detector->keep;
	struct nr_augment a =
		nr_augment_for_eval(&w->view, nr_model_int(&w->model, "image"), (int32_t)nr_model_int(&w->model, "channels"), 1);
	int code = nr_object_view_init(&j->view, &a, NULL, w->detector->short_sides, err);
	if (!code) code = nr_detector_runner_open(&j->run, w, w->detector, w->whole_norms, 1, err);
	if (!code) code = nr_augment_scratch_make(&j->scratch, err);
	if (!code && *j->o->draw) code = nr_folder_make(j->o->draw, err);
	if (code) return code;
	j->image = malloc((size_t)nr_len(j->run.g.image) * sizeof *j->image);
	j->found = malloc(keep * sizeof *j->found);
	j->mark = malloc(keep * sizeof *j->mark);
	j->text = malloc(keep * sizeof *j->text);
	return j->image && j->found && j->mark && j->text ? NR_OK
							  : nr_fail(err, NR_EMEMORY, "cannot look for objects", NULL, "out of memory");
}

int cli_predict_objects(struct cli *c, const struct predict_objects *o, const struct nr_weights *w, char *const *path, int64_t count)
{
	struct job j = { .c = c, .o = o };
	int64_t failed = 0;
	int code = open_job(&j, w, c->err);
	for (int64_t i = 0; i < count && !code; i++) {
		struct nr_error err = { 0 };
		char line[1400];
		if (!predict_one(&j, path[i], &err)) continue;
		failed++;
		if (count == 1) *c->err = err;
		else nr_log_line(NR_LOG_ERROR, "%s", nr_error_text(&err, line, sizeof line));
	}
	if (failed && count > 1) nr_fail(c->err, NR_EFORMAT, "pictures failed", NULL, "%lld of %lld", (long long)failed, (long long)count);
	nr_detector_runner_close(&j.run);
	nr_augment_scratch_free(j.scratch);
	nr_picture_release(&j.picture);
	nr_picture_release(&j.marked);
	free(j.image);
	free(j.found);
	free(j.mark);
	free(j.text);
	return c->err->code;
}

/* ---- eval --------------------------------------------------------------------------------------------------------------------- */

static int print_score(struct cli *c, const struct cli_opened *o, const char *path, const struct nr_detector_score *s, int64_t pictures,
	bool as_json)
{
	char *const *names = o->source->class_name;
	const bool masks = s->mask.classes > 0;
	if (as_json) {
		json_t *j = json_pack("{s:s, s:s, s:s, s:I, s:o}", "file", path, "data", o->source->of->name, "split",
			nr_split_name(o->e.split), "samples", (json_int_t)pictures, "boxes", nr_coco_json(&s->box, names));
		if (masks) json_object_set_new(j, "masks", nr_coco_json(&s->mask, names));
		return cli_print_json(j, c->err);
	}
	printf("%s on %s/%s, %lld pictures\n", path, o->source->of->name, nr_split_name(o->e.split), (long long)pictures);
	printf("%sboxes%s\n", cli_bold(), cli_plain());
	cli_print_objects(&s->box, names);
	if (masks) printf("%smasks%s\n", cli_bold(), cli_plain());
	if (masks) cli_print_objects(&s->mask, names);
	return NR_OK;
}

int cli_eval_objects(struct cli *c, struct cli_opened *o, const char *path, int64_t batch, bool json)
{
	const struct nr_detector *d = o->w->detector;
	const bool masks = d->detector == NR_MASK_RCNN;
	const struct nr_pixel_stats stats = nr_source_pixel_stats(o->source);
	struct nr_detector_runner run = { 0 };
	struct nr_object_view view;
	struct nr_detector_found found = { 0 };
	struct nr_detector_score score = { 0 };
	if (!o->source->of->objects) {
		nr_fail(c->err, NR_EVALUE, "cannot evaluate a detector on", o->source->of->name, "its pictures have no objects");
		return nr_hint(c->err, "use --data coco:path=DIR");
	}
	if (o->source->classes != nr_model_int(&o->w->model, "classes"))
		return nr_fail(c->err, NR_EVALUE, "cannot evaluate", path, "it knows %lld classes, the data have %d",
			(long long)nr_model_int(&o->w->model, "classes"), o->source->classes);
	int code = nr_object_view_init(&view, &o->e.augment, &stats, d->short_sides, c->err);
	if (!code) code = nr_detector_runner_open(&run, o->w, d, o->w->whole_norms, batch, c->err);
	if (!code) code = nr_detector_look(&run, &view, &o->e, masks, &found, c->err);
	nr_progress_release(&o->bar);
	if (!code) code = nr_detector_score(&found, o->source->classes, masks, &score, c->err);
	if (!code) code = print_score(c, o, path, &score, found.images, json);
	nr_detector_score_release(&score);
	nr_detector_found_release(&found);
	nr_detector_runner_close(&run);
	return code;
}
