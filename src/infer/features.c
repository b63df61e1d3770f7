/* Features of a split: see features.h. */
#include "infer/features.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/real.h"
#include "graph/comm.h"

const char *const nr_feature_names[] = { "cls", "mean", NULL };

/* Features of a part of the samples are of no use. */
static int run_all(struct nr_runner *r, const struct nr_evaluation *e, nr_each_batch *take, void *out, struct nr_error *err)
{
	const int code = nr_run_own(r, e, take, out, err);
	return code > 0 ? nr_fail(err, NR_EVALUE, "cannot keep the features", NULL, "interrupted") : code;
}

/* What each rank took of its batches goes to all of them: rows of x and labels. */
static int spread(struct nr_comm *comm, int64_t batch, int64_t count, int64_t width, float *const *x, int kinds, int32_t *label,
	struct nr_error *err)
{
	for (int k = 0; k < kinds; k++)
		if (x[k] && nr_comm_spread_batches(comm, count, batch, (size_t)width * sizeof **x, x[k], err)) return err->code;
	return nr_comm_spread_batches(comm, count, batch, sizeof *label, label, err);
}

static int count_samples(const struct nr_evaluation *e, int64_t *count, struct nr_error *err)
{
	*count = e->count ? e->count : e->source->count[e->split];
	return *count ? NR_OK : nr_fail(err, NR_EVALUE, "no samples in the split", nr_split_name(e->split), NULL);
}

static void take_pooled(void *out, const struct nr_runner *r, const struct nr_batch *b, int64_t first)
{
	struct nr_feature_set *f = out;
	const real *pooled = nr_plan_data(r->plan, r->pooled);
	for (int64_t i = 0; i < b->samples * r->width; i++) f->x[first * r->width + i] = (float)pooled[i];
	memcpy(f->label + first, b->label, (size_t)b->samples * sizeof *f->label);
}

/* blocks 0: what the model pools. */
static int features_of(struct nr_feature_set *f, const struct nr_weights *w, const struct nr_evaluation *what, int64_t batch,
	int64_t blocks, bool mean, struct nr_error *err)
{
	struct nr_runner r;
	*f = (struct nr_feature_set){ 0 };
	if (count_samples(what, &f->count, err)) return err->code;
	if (batch > f->count) batch = f->count;
	if (blocks ? nr_runner_open_blocks(&r, w, batch, blocks, mean, err) : nr_runner_open_encoder(&r, w, batch, err)) return err->code;
	f->width = r.width;
	f->x = malloc((size_t)(f->count * f->width) * sizeof *f->x);
	f->label = malloc((size_t)f->count * sizeof *f->label);
	int code = f->x && f->label ? run_all(&r, what, take_pooled, f, err)
				    : nr_fail(err, NR_EMEMORY, "cannot keep the features", NULL, "out of memory");
	nr_runner_close(&r);
	if (!code) code = spread(what->comm, batch, f->count, f->width, &f->x, 1, f->label, err);
	if (code) nr_features_release(f);
	return code;
}

int nr_features_of(struct nr_feature_set *f, const struct nr_weights *w, const struct nr_evaluation *what, int64_t batch,
	struct nr_error *err)
{
	return features_of(f, w, what, batch, 0, false, err);
}

int nr_block_features_of(struct nr_feature_set *f, const struct nr_weights *w, const struct nr_evaluation *what, int64_t batch,
	int64_t blocks, bool mean, struct nr_error *err)
{
	return features_of(f, w, what, batch, blocks, mean, err);
}

void nr_features_release(struct nr_feature_set *f)
{
	free(f->x);
	free(f->label);
	*f = (struct nr_feature_set){ 0 };
}

/* ---- class token and mean of the patches ------------------------------------------------------------------------------------ */

bool nr_has_class_token(const struct nr_weights *w) { return nr_model_int(&w->model, "class_token") > 0; }

/* What the model's own head reads. */
static enum nr_feature_kind own_kind(const struct nr_weights *w)
{
	const struct nr_option *o = nr_option_find(w->model.of->options, "pool");
	char text[64];
	return o && !strcmp(nr_option_text(o, w->model.conf, text, sizeof text), "class") ? NR_FEATURE_CLS : NR_FEATURE_MEAN;
}

struct taking { struct nr_token_features *f; enum nr_feature_kind own; };

static void mean_of_patches(const nr_t *tokens, const real *x, float *out)
{
	const int64_t T = tokens->d[1], C = tokens->d[2], special = tokens->tok ? tokens->tok->special : 0;
	for (int64_t c = 0; c < C; c++) {
		double sum = 0;
		for (int64_t t = special; t < T; t++) sum += x[t * C + c];
		out[c] = (float)(sum / (double)(T - special));
	}
}

static void take_kind(const struct nr_runner *r, enum nr_feature_kind kind, bool own, int64_t n, float *out)
{
	const real *tokens = nr_plan_data(r->plan, r->tokens), *pooled = nr_plan_data(r->plan, r->pooled);
	const int64_t C = r->width, each = r->tokens->d[1] * C;
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < n; i++) {
		float *row = out + i * C;
		const real *from = own ? pooled + i * C : tokens + i * each;
		if (kind == NR_FEATURE_MEAN && !own) mean_of_patches(r->tokens, from, row);
		else
			for (int64_t c = 0; c < C; c++) row[c] = (float)from[c];
	}
}

static void take_tokens(void *out, const struct nr_runner *r, const struct nr_batch *b, int64_t first)
{
	const struct taking *to = out;
	struct nr_token_features *f = to->f;
	for (int kind = 0; kind < NR_FEATURE_KINDS; kind++)
		if (f->x[kind]) take_kind(r, (enum nr_feature_kind)kind, kind == (int)to->own, b->samples, f->x[kind] + first * f->width);
	memcpy(f->label + first, b->label, (size_t)b->samples * sizeof *f->label);
}

void nr_runner_features(const struct nr_runner *r, const struct nr_weights *w, enum nr_feature_kind kind, int64_t n, float *out)
{
	take_kind(r, kind, kind == own_kind(w), n, out);
}

int nr_token_features_make(struct nr_token_features *f, int64_t count, int64_t width, unsigned want, struct nr_error *err)
{
	*f = (struct nr_token_features){ .count = count, .width = width, .label = malloc((size_t)count * sizeof *f->label) };
	bool whole = f->label;
	for (int kind = 0; kind < NR_FEATURE_KINDS; kind++) {
		if (!(want & 1u << kind)) continue;
		f->x[kind] = malloc((size_t)(count * width) * sizeof(float));
		whole = whole && f->x[kind];
	}
	if (whole) return NR_OK;
	nr_token_features_release(f);
	return nr_fail(err, NR_EMEMORY, "cannot keep the features", NULL, "out of memory");
}

int nr_token_features_of(struct nr_token_features *f, const struct nr_weights *w, const struct nr_evaluation *what, int64_t batch,
	unsigned want, struct nr_error *err)
{
	struct nr_runner r;
	int64_t count;
	*f = (struct nr_token_features){ 0 };
	if (want & 1u << NR_FEATURE_CLS && !nr_has_class_token(w)) {
		nr_fail(err, NR_EUSAGE, "the model has no class token", w->model.text, NULL);
		return nr_hint(err, "use the mean of the patch tokens: --features mean");
	}
	if (count_samples(what, &count, err) || nr_runner_open_encoder(&r, w, batch < count ? batch : count, err)) return err->code;
	struct taking to = { f, own_kind(w) };
	const bool fits = r.tokens->nd == 3 && r.tokens->d[2] == r.width;
	int code = fits ? nr_token_features_make(f, count, r.width, want, err)
			: nr_fail(err, NR_ESHAPE, "cannot take features", w->model.text, "its head does not read a token's width");
	if (!code) code = run_all(&r, what, take_tokens, &to, err);
	if (!code) code = spread(what->comm, r.batch, count, r.width, f->x, NR_FEATURE_KINDS, f->label, err);
	nr_runner_close(&r);
	if (code) nr_token_features_release(f);
	return code;
}

void nr_token_features_release(struct nr_token_features *f)
{
	for (int kind = 0; kind < NR_FEATURE_KINDS; kind++) free(f->x[kind]);
	free(f->label);
	*f = (struct nr_token_features){ 0 };
}

/* ---- after every block -------------------------------------------------------------------------------------------------------- */

struct layer_taking { struct nr_layer_features *f; const nr_t **tap; };

static const nr_t *block_of(const struct nr_runner *r, int64_t i)
{
	char name[32];
	snprintf(name, sizeof name, "block%lld", (long long)i);
	const nr_t *x = nr_plan_tap(r->plan, name, NULL);
	return x && x->nd == 3 ? x : NULL;
}

static void take_layers(void *out, const struct nr_runner *r, const struct nr_batch *b, int64_t first)
{
	const struct layer_taking *to = out;
	for (int64_t l = 0; l < to->f->layers; l++) {
		const struct nr_token_features *f = &to->f->layer[l];
		const nr_t *x = to->tap[l];
		const real *all = nr_plan_data(r->plan, x);
		const int64_t C = f->width, each = x->d[1] * C;
		for (int64_t i = 0; i < b->samples; i++) {
			float *cls = f->x[NR_FEATURE_CLS];
			for (int64_t c = 0; cls && c < C; c++) cls[(first + i) * C + c] = (float)all[i * each + c];
			if (f->x[NR_FEATURE_MEAN]) mean_of_patches(x, all + i * each, f->x[NR_FEATURE_MEAN] + (first + i) * C);
			f->label[first + i] = b->label[i];
		}
	}
}

/* A class token that joins later is in no block before; registers are none. */
static int make_layers(struct layer_taking *to, const struct nr_runner *r, const struct nr_weights *w, int64_t count, unsigned want,
	struct nr_error *err)
{
	const int64_t depth = nr_model_int(&w->model, "depth"), registers = nr_model_int(&w->model, "registers");
	struct nr_layer_features *f = to->f;
	f->layer = calloc((size_t)(depth > 0 ? depth : 1), sizeof *f->layer);
	to->tap = calloc((size_t)(depth > 0 ? depth : 1), sizeof *to->tap);
	if (!f->layer || !to->tap) return nr_fail(err, NR_EMEMORY, "cannot keep the features", NULL, "out of memory");
	for (int64_t i = 0; i < depth; i++) {
		const nr_t *x = block_of(r, i);
		if (!x) return nr_fail(err, NR_EVALUE, "cannot take features", w->model.text, "its blocks cannot be looked at");
		const int64_t special = x->tok ? x->tok->special : 0;
		const bool cls = nr_has_class_token(w) && special > (registers > 0 ? registers : 0);
		const unsigned take = cls ? want : want & ~(1u << NR_FEATURE_CLS);
		if (nr_token_features_make(&f->layer[i], count, x->d[2], take, err)) return err->code;
		to->tap[f->layers++] = x;
	}
	return depth > 0 ? NR_OK : nr_fail(err, NR_EVALUE, "cannot take features", w->model.text, "it has no blocks");
}

int nr_layer_features_of(struct nr_layer_features *f, const struct nr_weights *w, const struct nr_evaluation *what, int64_t batch,
	unsigned want, struct nr_error *err)
{
	struct nr_runner r;
	int64_t count;
	*f = (struct nr_layer_features){ 0 };
	if (count_samples(what, &count, err) || nr_runner_open_layers(&r, w, batch < count ? batch : count, err)) return err->code;
	struct layer_taking to = { .f = f };
	int code = make_layers(&to, &r, w, count, want, err);
	if (!code) code = run_all(&r, what, take_layers, &to, err);
	for (int64_t l = 0; l < f->layers && !code; l++)
		code = spread(what->comm, r.batch, count, f->layer[l].width, f->layer[l].x, NR_FEATURE_KINDS, f->layer[l].label, err);
	free(to.tap);
	nr_runner_close(&r);
	if (code) nr_layer_features_release(f);
	return code;
}

void nr_layer_features_release(struct nr_layer_features *f)
{
	for (int64_t i = 0; i < f->layers; i++) nr_token_features_release(&f->layer[i]);
	free(f->layer);
	*f = (struct nr_layer_features){ 0 };
}
