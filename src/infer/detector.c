/* See detector.h. */
#include "infer/detector.h"

#include <stdlib.h>
#include <string.h>

#include "math/paste.h"

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot look for objects", NULL, "out of memory"); }

int nr_detector_runner_open(struct nr_detector_runner *r, const struct nr_weights *w, const struct nr_detector *of, const char *norms,
	int64_t batch, struct nr_error *err)
{
	*r = (struct nr_detector_runner){ .of = of, .net = nr_net_make(w->store), .batch = batch };
	if (!r->net) return out_of_memory(err);
	int code = nr_norms_use(r->net, norms, &w->model.norms, err);
	nr_t *last = code ? NULL : nr_detector_detections(r->net, &w->model, of, batch, &r->g);
	if (!code) code = nr_norms_done(r->net, err);
	if (!code) code = nr_plan_make(&r->plan, r->net, last, 0, err);
	if (code) nr_detector_runner_close(r);
	return code;
}

void nr_detector_runner_close(struct nr_detector_runner *r)
{
	nr_plan_free(r->plan);
	nr_net_free(r->net);
	free(r->mask);
	*r = (struct nr_detector_runner){ 0 };
}

void nr_detector_runner_put(struct nr_detector_runner *r, int64_t place, const float *image, const struct nr_object_sample *s)
{
	const int64_t n = nr_len(r->g.image) / r->batch;
	nr_real *size = (nr_real *)nr_plan_data(r->plan, r->g.sizes) + 2 * place;
	nr_from_floats((nr_real *)nr_plan_data(r->plan, r->g.image) + place * n, image, n);
	size[0] = (nr_real)s->h, size[1] = (nr_real)s->w;
}

void nr_detector_runner_run(struct nr_detector_runner *r, enum nr_stats stats)
{
	nr_plan_run(r->plan, &(struct nr_exec){ .train = stats == NR_STATS_BATCH, .no_dropout = 1 }, NR_RUN_FORWARD);
}

static struct nr_rle *mask_of(struct nr_detector_runner *r, int64_t row, const nr_real box[4], int32_t h, int32_t w, struct nr_error *err)
{
	const int64_t places = nr_cols(r->g.mask);
	const size_t pixels = (size_t)h * (size_t)w;
	int64_t M = 1;
	while (M * M < places) M++;
	if (pixels > r->mask_room) {
		uint8_t *more = realloc(r->mask, pixels);
		if (!more) {
			out_of_memory(err);
			return NULL;
		}
		r->mask = more;
		r->mask_room = pixels;
	}
	nr_mask_paste(r->of->convention == NR_TORCHVISION ? NR_PASTE_PADDED : NR_PASTE_CENTRES, M,
		(const nr_real *)nr_plan_data(r->plan, r->g.mask) + row * places, box, h, w, r->mask);
	return nr_rle_of_mask(h, w, r->mask, err);
}

int64_t nr_detector_runner_found(struct nr_detector_runner *r, int64_t place, const struct nr_object_sample *s, int64_t image_id, int32_t h,
	int32_t w, bool masks, struct nr_detection *out, struct nr_error *err)
{
	const int64_t keep = r->of->keep;
	const int32_t *label = (const int32_t *)nr_plan_data(r->plan, r->g.labels) + place * keep;
	const nr_real *box = (const nr_real *)nr_plan_data(r->plan, r->g.boxes) + 4 * place * keep;
	const nr_real *score = (const nr_real *)nr_plan_data(r->plan, r->g.scores) + place * keep;
	int64_t n = 0;
	for (int64_t i = 0; i < keep && label[i] >= 0; i++, n++) {
		const nr_real scaled[4] = { box[4 * i] * s->x, box[4 * i + 1] * s->y, box[4 * i + 2] * s->x, box[4 * i + 3] * s->y };
		struct nr_detection *d = &out[n];
		*d = (struct nr_detection){ .image_id = image_id,
			.label = label[i],
			.score = (double)score[i],
			.xywh = {
				(double)scaled[0], (double)scaled[1], (double)(scaled[2] - scaled[0]), (double)(scaled[3] - scaled[1]) } };
		if (!masks || !r->g.mask) continue;
		d->mask = mask_of(r, place * keep + i, scaled, h, w, err);
		if (!d->mask) {
			while (n >= 0) nr_rle_free(out[n--].mask);
			return err->code;
		}
	}
	return n;
}
