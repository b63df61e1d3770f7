/* Features of a split, kept on disk. See probe_features.h. */
#include "analysis/probe_features.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/save.h"
#include "base/str.h"
#include "data/measure.h"
#include "fetch/checksum.h"
#include "graph/comm.h"
#include "math/isa.h"
#include "norma/safetensors.h"
#include "norma/version.h"

/* All that the features follow from, as lines of text. */
static int key_of(const struct nr_feature_cache *cache, const struct nr_weights *w, const struct nr_evaluation *e, const char *data,
	struct nr_str *key, struct nr_error *err)
{
	char digest[65] = "", number[64];
	if (nr_source_digest(e->source, e->split, digest, err)) return err->code;
	nr_str_printf(key, "norma %s %s\ncheckpoint %s\nmodel %s\nnorms %s\n", NR_VERSION, nr_isa_name(nr_isa_active()), cache->checkpoint,
		w->model.text, w->norms);
	nr_str_printf(key, "resample %s\nstats %s\n", cache->resample, cache->stats);
	nr_str_printf(key, "data %s %s %lld %s\nsize %lld channels %d filter %d normalize %d\n", data, nr_split_name(e->split),
		(long long)e->count, digest, (long long)e->augment.size, e->augment.channels, e->augment.filter, e->augment.normalize);
	nr_str_printf(key, "crop_share %s", nr_double_text(e->augment.crop_share, false, number, sizeof number));
	for (int i = 0; i < 3; i++) {
		nr_str_printf(key, " %s", nr_double_text(e->augment.mean[i], false, number, sizeof number));
		nr_str_printf(key, " %s", nr_double_text(e->augment.std[i], false, number, sizeof number));
	}
	return key->failed ? nr_fail(err, NR_EMEMORY, "cannot keep the features", NULL, "out of memory") : NR_OK;
}

/* 0: the file has them; otherwise they are computed anew, whatever is wrong with it. */
static int read_features(struct nr_token_features *f, const char *path, const char *key, int64_t count, unsigned want)
{
	struct nr_st_file *file;
	struct nr_error err = { 0 };
	if (access(path, R_OK) || nr_st_open(&file, path, &err)) return -1;
	const char *kept = nr_st_metadata(file, "norma.features");
	const struct nr_st_tensor *label = nr_st_find(file, "label"), *x[NR_FEATURE_KINDS] = { 0 };
	int64_t width = 0;
	bool good = kept && !strcmp(kept, key) && label && label->dtype == NR_ST_I32 && label->nd == 1 && label->shape[0] == count;
	for (int kind = 0; kind < NR_FEATURE_KINDS; kind++) {
		if (!(want & 1u << kind)) continue;
		x[kind] = nr_st_find(file, nr_feature_names[kind]);
		good = good && x[kind] && x[kind]->nd == 2 && x[kind]->shape[0] == count && (!width || x[kind]->shape[1] == width);
		if (good) width = x[kind]->shape[1];
	}
	int code = good ? nr_token_features_make(f, count, width, want, &err) : -1;
	if (!code) memcpy(f->label, label->data, label->bytes);
	for (int kind = 0; !code && kind < NR_FEATURE_KINDS; kind++)
		if (x[kind]) code = nr_st_to_f32(x[kind], f->x[kind], count * width, &err);
	if (code && good) nr_token_features_release(f);
	nr_st_close(file);
	return code;
}

static int write_features(const struct nr_token_features *f, const char *path, const char *key)
{
	struct nr_st_tensor t[NR_FEATURE_KINDS + 1] = { { .name = "label", .dtype = NR_ST_I32, .nd = 1, .shape = { f->count },
		.data = f->label, .bytes = (size_t)f->count * sizeof *f->label } };
	const struct nr_st_meta meta = { "norma.features", key };
	int64_t n = 1;
	for (int kind = 0; kind < NR_FEATURE_KINDS; kind++)
		if (f->x[kind])
			t[n++] = (struct nr_st_tensor){ .name = nr_feature_names[kind], .dtype = NR_ST_F32, .nd = 2,
				.shape = { f->count, f->width }, .data = f->x[kind],
				.bytes = (size_t)(f->count * f->width) * sizeof(float) };
	return nr_st_write(path, t, n, &meta, 1, NULL);
}

/* Taken only if all ranks have them; kept by the first one. */
int nr_probe_features(struct nr_token_features *f, struct nr_feature_origin *origin, const struct nr_feature_cache *cache,
	const struct nr_weights *w, const struct nr_evaluation *e, const char *data, int64_t batch, unsigned want, struct nr_error *err)
{
	struct nr_str key = { 0 };
	char digest[65] = "";
	const int64_t count = e->count ? e->count : e->source->count[e->split];
	*origin = (struct nr_feature_origin){ 0 };
	int code = cache->dir ? key_of(cache, w, e, data, &key, err) : NR_OK;
	if (!code && cache->dir) {
		nr_checksum_bytes(nr_str_text(&key), key.len, NR_SHA256, digest);
		snprintf(origin->path, sizeof origin->path, "%s/features-%s-%.16s.safetensors", cache->dir, nr_split_name(e->split),
			digest);
		const bool mine = origin->cached = !read_features(f, origin->path, nr_str_text(&key), count, want);
		code = nr_comm_every(e->comm, &origin->cached, err);
		if (mine && !origin->cached) nr_token_features_release(f);
	}
	if (!code && !origin->cached) code = nr_token_features_of(f, w, e, batch, want, err);
	if (!code && cache->dir && !origin->cached && !nr_comm_rank(e->comm) &&
		(nr_folder_make(cache->dir, NULL) || write_features(f, origin->path, nr_str_text(&key))))
		origin->path[0] = 0;
	nr_str_release(&key);
	return code;
}
