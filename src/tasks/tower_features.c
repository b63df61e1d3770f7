/* See tower_features.h. */
#include "tasks/tower_features.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/save.h"
#include "fetch/checksum.h"
#include "graph/comm.h"
#include "infer/weights.h"
#include "norma/safetensors.h"

struct nr_augment nr_tower_view(const struct nr_weights *w)
{
	struct nr_augment a = nr_augment_for_eval(&w->view, nr_model_int(&w->model, "image"), (int32_t)nr_model_int(&w->model, "channels"),
		w->view.crop_share);
	a.normalize = w->normalize;
	return a;
}

void nr_tower_features_release(struct nr_tower_features *f)
{
	for (int k = 0; k < NR_SPLITS; k++) free(f->x[k]);
	*f = (struct nr_tower_features){ 0 };
}

/* FOLDER/HASH.safetensors of all that the features follow from. */
static int name_file(struct nr_tower_features *f, const struct nr_weights *w, const struct nr_source *s, const struct nr_tower_how *how,
	struct nr_arena *arena, struct nr_error *err)
{
	char of_weights[80], of_all[80];
	struct nr_error ignored = { 0 };
	if (!how->folder || nr_folder_make(how->folder, &ignored) || access(how->folder, W_OK)) return NR_OK;
	if (nr_weights_checksum(how->tower, of_weights, err)) return err->code;
	const char *all = nr_arena_printf(arena, "%s;%s;%s;%s;%lld;%lld;%lld;%g;%g;%g;%d", of_weights, w->model.text, w->norms, how->what,
		(long long)s->count[NR_TRAIN], (long long)s->count[NR_VAL], (long long)s->count[NR_TEST], w->view.crop_share, w->mean[0],
		w->std[0], (int)w->view.filter);
	if (!all) return nr_fail(err, NR_EMEMORY, "cannot keep the features", NULL, "out of memory");
	nr_checksum_bytes(all, strlen(all), NR_SHA256, of_all);
	f->file = nr_arena_printf(arena, "%s/features-%.16s.safetensors", how->folder, of_all);
	return NR_OK;
}

/* Those of an earlier run, if all that are wanted are there. */
static void read_kept(struct nr_tower_features *f, const struct nr_tower_how *how)
{
	struct nr_st_file *file;
	if (!f->file || access(f->file, R_OK) || nr_st_open(&file, f->file, &(struct nr_error){ 0 })) return;
	bool whole = true;
	for (int k = 0; k < NR_SPLITS && whole; k++) {
		if (!(how->want & 1u << k) || !f->count[k]) continue;
		const struct nr_st_tensor *t = nr_st_find(file, nr_split_name((enum nr_split)k));
		whole = t && t->nd == 2 && t->shape[0] == f->count[k] && t->shape[1] == f->width;
		f->x[k] = whole ? malloc((size_t)(f->count[k] * f->width) * sizeof(float)) : NULL;
		whole = f->x[k] && !nr_st_to_f32(t, f->x[k], f->count[k] * f->width, &(struct nr_error){ 0 });
	}
	nr_st_close(file);
	f->kept = whole;
}

static int keep(const struct nr_tower_features *f, struct nr_error *err)
{
	struct nr_st_tensor t[NR_SPLITS];
	int64_t n = 0;
	for (int k = 0; k < NR_SPLITS; k++)
		if (f->x[k])
			t[n++] = (struct nr_st_tensor){ .name = nr_split_name((enum nr_split)k), .dtype = NR_ST_F32, .nd = 2,
				.shape = { f->count[k], f->width }, .data = f->x[k],
				.bytes = (size_t)(f->count[k] * f->width) * sizeof(float) };
	return f->file ? nr_st_write(f->file, t, n, NULL, 0, err) : NR_OK;
}

static int compute(struct nr_tower_features *f, const struct nr_weights *w, const struct nr_source *s, const struct nr_tower_how *how,
	struct nr_error *err)
{
	for (int k = 0; k < NR_SPLITS; k++) {
		struct nr_feature_set one;
		if (!(how->want & 1u << k) || !s->count[k]) continue;
		free(f->x[k]);
		f->x[k] = NULL;
		nr_log_line(NR_LOG_INFO, "computing the features of %lld pictures (%s)", (long long)s->count[k],
			nr_split_name((enum nr_split)k));
		const struct nr_evaluation e = { .source = s, .split = (enum nr_split)k, .augment = nr_tower_view(w),
			.workers = how->workers, .comm = how->comm };
		const int code = nr_features_of(&one, w, &e, how->batch, err);
		if (code) return code;
		f->x[k] = one.x;
		free(one.label);
	}
	return NR_OK;
}

int nr_tower_features_open(struct nr_tower_features *f, const struct nr_weights *w, const struct nr_source *s,
	const struct nr_tower_how *how, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_runner r;
	*f = (struct nr_tower_features){ 0 };
	if (nr_runner_open_encoder(&r, w, 1, err)) return err->code;
	f->width = r.width;
	nr_runner_close(&r);
	memcpy(f->count, s->count, sizeof f->count);
	return name_file(f, w, s, how, arena, err);
}

int nr_tower_features_make(struct nr_tower_features *f, const struct nr_weights *w, const struct nr_source *s,
	const struct nr_tower_how *how, struct nr_error *err)
{
	read_kept(f, how);
	int code = nr_comm_every(how->comm, &f->kept, err);
	if (!code && !f->kept) {
		code = compute(f, w, s, how, err);
		if (!code && nr_comm_rank(how->comm) == 0) code = keep(f, err);
	}
	if (code) nr_tower_features_release(f);
	return code;
}
