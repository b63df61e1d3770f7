/* See detector_eval.h. */
#include "analysis/detector_eval.h"

#include <stdlib.h>

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory"); }

void nr_detector_found_release(struct nr_detector_found *f)
{
	for (int64_t i = 0; i < f->count; i++) nr_rle_free(f->item[i].mask);
	free(f->item);
	free(f->truth);
	*f = (struct nr_detector_found){ 0 };
}

static int take(struct nr_detector_runner *r, struct nr_detector_found *f, int64_t place, const struct nr_object_sample *of,
	const struct nr_objects *truth, bool masks, struct nr_error *err)
{
	if (!truth) return out_of_memory(err);
	if (f->count + r->of->keep > f->room) {
		const int64_t room = 2 * f->room + r->of->keep;
		struct nr_detection *more = realloc(f->item, (size_t)room * sizeof *more);
		if (!more) return out_of_memory(err);
		f->item = more;
		f->room = room;
	}
	f->truth[f->images++] = truth;
	const int64_t n = nr_detector_runner_found(r, place, of, truth->image_id, truth->h, truth->w, masks, f->item + f->count, err);
	f->count += n > 0 ? n : 0;
	return n < 0 ? (int)n : NR_OK;
}

static int batch(struct nr_detector_runner *r, const struct nr_evaluation *e, const struct nr_batch *b, size_t extra, bool masks,
	struct nr_detector_found *f, struct nr_error *err)
{
	const int64_t pixels = nr_len(r->g.image) / r->batch;
	int code = NR_OK;
	for (int64_t i = 0; i < b->samples; i++)
		nr_detector_runner_put(r, i, b->image + i * pixels, (const void *)((const char *)b->extra + (size_t)i * extra));
	nr_detector_runner_run(r, e->stats);
	for (int64_t i = 0; i < b->samples && !code; i++)
		code = take(r, f, i, (const void *)((const char *)b->extra + (size_t)i * extra),
			nr_source_objects(e->source, e->split, b->index[i]), masks, err);
	return code;
}

int nr_detector_look(struct nr_detector_runner *r, const struct nr_object_view *view, const struct nr_evaluation *e, bool masks,
	struct nr_detector_found *f, struct nr_error *err)
{
	const struct nr_loader_config config = { .source = e->source, .split = e->split, .index = e->index, .count = e->count,
		.batch = r->batch, .threads = e->workers, .augment = &e->augment, .make = nr_object_view_make, .maker = view,
		.height = view->size, .width = view->size, .extra = nr_object_bytes(view) };
	const int64_t count = e->count ? e->count : e->source->count[e->split];
	struct nr_loader *loader;
	*f = (struct nr_detector_found){ .truth = malloc((size_t)(count > 0 ? count : 1) * sizeof *f->truth) };
	if (!f->truth) return out_of_memory(err);
	if (nr_loader_open(&loader, &config, err)) return err->code;
	int code = NR_OK;
	for (int64_t q = 0; q < nr_loader_batches(loader) && !code; q++) {
		struct nr_batch *b;
		if ((code = nr_loader_next(loader, &b, err))) break;
		code = batch(r, e, b, config.extra, masks, f, err);
		nr_loader_give_back(loader, b);
		if (!code && e->watch && e->watch(e->context, f->images, count)) code = 1;
	}
	nr_loader_close(loader);
	return code;
}

int nr_detector_score(const struct nr_detector_found *f, int32_t classes, bool masks, struct nr_detector_score *s, struct nr_error *err)
{
	*s = (struct nr_detector_score){ 0 };
	int code = nr_coco_eval(f->truth, f->images, f->item, f->count, classes, false, &s->box, err);
	if (!code && masks) code = nr_coco_eval(f->truth, f->images, f->item, f->count, classes, true, &s->mask, err);
	return code;
}

void nr_detector_score_release(struct nr_detector_score *s)
{
	nr_coco_result_release(&s->box);
	nr_coco_result_release(&s->mask);
}
