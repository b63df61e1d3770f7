/* Features of augmented pictures. See fresh.h. */
#include "analysis/fresh.h"

#include <omp.h>
#include <stdlib.h>

struct eye { struct nr_augment_scratch *scratch; struct nr_picture picture; struct nr_error err; };      /* of a thread */

struct nr_fresh {
	struct nr_runner runner;
	const struct nr_weights *w;
	const struct nr_source *source;
	enum nr_split split;
	enum nr_feature_kind kind;
	struct nr_augment augment;
	struct nr_pixel_stats stats;
	uint64_t seed;
	float *image;                           /* (batch,channels,size,size) */
	struct eye *eye;
	int eyes;
};

int nr_fresh_open(struct nr_fresh **out, const struct nr_weights *w, const struct nr_evaluation *e, int64_t batch, uint64_t seed,
	struct nr_error *err)
{
	struct nr_fresh *f = *out = calloc(1, sizeof *f);
	if (!f) return nr_fail(err, NR_EMEMORY, "cannot make features", NULL, "out of memory");
	if (nr_runner_open_encoder(&f->runner, w, batch, err)) return err->code;
	f->w = w, f->source = e->source, f->split = e->split, f->seed = seed, f->augment = e->augment;
	f->augment.crop = NR_CROP_RANDOM_RESIZED;
	f->augment.scale_min = .08, f->augment.scale_max = 1, f->augment.ratio_min = 3. / 4, f->augment.ratio_max = 4. / 3;
	f->augment.flip = .5;
	f->stats = nr_source_pixel_stats(e->source);
	f->eyes = omp_get_max_threads();
	f->image = calloc((size_t)nr_len(f->runner.image), sizeof *f->image);
	f->eye = calloc((size_t)f->eyes, sizeof *f->eye);
	bool whole = f->image && f->eye;
	for (int i = 0; whole && i < f->eyes; i++) whole = !nr_augment_scratch_make(&f->eye[i].scratch, NULL);
	return whole ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot make features", NULL, "out of memory");
}

void nr_fresh_close(struct nr_fresh *f)
{
	if (!f) return;
	for (int i = 0; f->eye && i < f->eyes; i++) {
		nr_picture_release(&f->eye[i].picture);
		nr_augment_scratch_free(f->eye[i].scratch);
	}
	free(f->eye);
	free(f->image);
	nr_runner_close(&f->runner);
	free(f);
}

void nr_fresh_kind(struct nr_fresh *f, enum nr_feature_kind kind) { f->kind = kind; }

static void see(struct nr_fresh *f, int32_t sample, int64_t epoch, float *to)
{
	struct eye *eye = &f->eye[omp_get_thread_num()];
	if (eye->err.code) return;
	if (!nr_source_get(f->source, f->split, sample, &eye->picture, NULL, &eye->err))
		nr_augment_run(&f->augment, &f->stats, &eye->picture, f->seed, epoch, sample, to, eye->scratch, &eye->err);
}

int nr_fresh_take(void *fresh, const int32_t *sample, int64_t n, int64_t epoch, float *x, struct nr_error *err)
{
	struct nr_fresh *f = fresh;
	const int64_t each = nr_len(f->runner.image) / f->runner.batch;
	for (int64_t at = 0; at < n; at += f->runner.batch) {
		const int64_t some = n - at < f->runner.batch ? n - at : f->runner.batch;
#pragma omp parallel for schedule(dynamic, 1) num_threads(f->eyes)
		for (int64_t i = 0; i < some; i++) see(f, sample[at + i], epoch, f->image + i * each);
		for (int i = 0; i < f->eyes; i++)
			if (f->eye[i].err.code) return *err = f->eye[i].err, err->code;
		nr_runner_run(&f->runner, f->image, NR_STATS_RUNNING);
		nr_runner_features(&f->runner, f->w, f->kind, some, x + at * f->runner.width);
	}
	return NR_OK;
}
