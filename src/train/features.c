/* Features of a split, and recalibration of running statistics. See features.h. */
#include "train/features.h"

#include <math.h>
#include <stdlib.h>

#include "train/floats.h"

const char *const nr_feature_names[] = { "cls", "mean", NULL };

/* Features of a part of the samples are of no use. */
static int run_all(struct nr_runner *r, const struct nr_evaluation *e, nr_each_batch *take, void *out, struct nr_error *err)
{
	const int code = nr_run_over(r, e, take, out, err);
	return code > 0 ? nr_fail(err, NR_EVALUE, "cannot keep the features", NULL, "interrupted") : code;
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

int nr_features_of(struct nr_feature_set *f, const struct nr_weights *w, const struct nr_evaluation *what,
	int64_t batch, struct nr_error *err)
{
	struct nr_runner r;
	*f = (struct nr_feature_set){ 0 };
	if (count_samples(what, &f->count, err) || nr_runner_open_encoder(&r, w, batch < f->count ? batch : f->count, err))
		return err->code;
	f->width = r.width;
	f->x = malloc((size_t)(f->count * f->width) * sizeof *f->x);
	f->label = malloc((size_t)f->count * sizeof *f->label);
	int code = f->x && f->label ? run_all(&r, what, take_pooled, f, err)
				    : nr_fail(err, NR_EMEMORY, "cannot keep the features", NULL, "out of memory");
	nr_runner_close(&r);
	if (code) nr_features_release(f);
	return code;
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

static void take_tokens(void *out, const struct nr_runner *r, const struct nr_batch *b, int64_t first)
{
	const struct taking *to = out;
	struct nr_token_features *f = to->f;
	const real *tokens = nr_plan_data(r->plan, r->tokens), *pooled = nr_plan_data(r->plan, r->pooled);
	const int64_t C = f->width, each = r->tokens->d[1] * C;
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < b->samples; i++) {
		for (int kind = 0; kind < NR_FEATURE_KINDS; kind++) {
			if (!f->x[kind]) continue;
			float *row = f->x[kind] + (first + i) * C;
			const real *from = kind == (int)to->own ? pooled + i * C : tokens + i * each;
			if (kind == NR_FEATURE_MEAN && kind != (int)to->own) mean_of_patches(r->tokens, from, row);
			else
				for (int64_t c = 0; c < C; c++) row[c] = (float)from[c];
		}
		f->label[first + i] = b->label[i];
	}
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
		nr_fail(err, NR_EUSAGE, "no class token to take features of", w->model.text, NULL);
		return nr_hint(err, "the mean of the patch tokens is there: --features mean");
	}
	if (count_samples(what, &count, err) || nr_runner_open_encoder(&r, w, batch < count ? batch : count, err)) return err->code;
	struct taking to = { f, own_kind(w) };
	const bool fits = r.tokens->nd == 3 && r.tokens->d[2] == r.width;
	int code = fits ? nr_token_features_make(f, count, r.width, want, err)
			: nr_fail(err, NR_ESHAPE, "cannot take features", w->model.text, "its head does not read a token's width");
	if (!code) code = run_all(&r, what, take_tokens, &to, err);
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

/* ---- running statistics measured anew ----------------------------------------------------------------------------------------- */

/* A running mean moves by new = (1-m) old + m b. From old = 0 and old = 1 follow m and b, whatever the norm calls them. */
struct probe { real *zero, *kept; double *sum; };

static void set_buffers(const struct nr_store *s, const real *from, real value)
{
	int64_t total;
	const real *base = nr_store_values(s, &total);
	for (int64_t i = 0; i < nr_store_count(s); i++) {
		const struct nr_entry *e = nr_store_at(s, i);
		for (int64_t k = 0; e->buffer && k < e->count; k++) nr_value(e)[k] = from ? from[nr_value(e) - base + k] : value;
	}
}

static void one_batch(struct nr_runner *r, const struct nr_weights *w, const struct probe *p)
{
	const struct nr_exec ex = { .train = 1 };
	int64_t total;
	real *base = nr_store_values(w->store, &total);
	set_buffers(w->store, NULL, 0);
	nr_plan_run(r->plan, &ex, NR_RUN_FORWARD | NR_RUN_COMMIT);
	memcpy(p->zero, base, (size_t)total * sizeof *base);
	set_buffers(w->store, NULL, 1);
	nr_plan_run(r->plan, &ex, NR_RUN_FORWARD | NR_RUN_COMMIT);
	for (int64_t i = 0; i < nr_store_count(w->store); i++) {
		const struct nr_entry *e = nr_store_at(w->store, i);
		const int64_t at = nr_value(e) - base;
		for (int64_t k = 0; e->buffer && k < e->count; k++) {
			const double m = 1 - ((double)base[at + k] - (double)p->zero[at + k]);
			p->sum[at + k] += m > 1e-6 ? (double)p->zero[at + k] / m : NAN;
		}
	}
}

static int64_t put_means(const struct nr_weights *w, const struct probe *p, int64_t batches)
{
	int64_t total, changed = 0;
	real *base = nr_store_values(w->store, &total);
	for (int64_t i = 0; i < nr_store_count(w->store); i++) {
		const struct nr_entry *e = nr_store_at(w->store, i);
		const int64_t at = nr_value(e) - base;
		bool measured = e->buffer;
		for (int64_t k = 0; measured && k < e->count; k++) measured = isfinite(p->sum[at + k]);
		for (int64_t k = 0; e->buffer && k < e->count; k++)
			base[at + k] = measured ? (real)(p->sum[at + k] / (double)batches) : p->kept[at + k];
		changed += measured;
	}
	return changed;
}

int nr_recalibrate(const struct nr_weights *w, const struct nr_evaluation *train, int64_t batch, int64_t batches, int64_t *changed,
	struct nr_error *err)
{
	struct nr_runner r;
	struct nr_loader *loader = NULL;
	int64_t total, done = 0;
	real *base = nr_store_values(w->store, &total);
	struct probe p = { malloc((size_t)total * sizeof(real)), malloc((size_t)total * sizeof(real)),
		calloc((size_t)total, sizeof(double)) };
	const struct nr_loader_config config = { .source = train->source, .split = train->split, .augment = &train->augment, .batch = batch,
		.index = train->index, .count = train->count, .threads = train->workers, .shuffle = true, .drop_last = true };
	int code = p.zero && p.kept && p.sum ? nr_runner_open_encoder(&r, w, batch, err)
					     : nr_fail(err, NR_EMEMORY, "cannot measure statistics", NULL, "out of memory");
	if (!code) {
		memcpy(p.kept, base, (size_t)total * sizeof *base);
		code = nr_loader_open(&loader, &config, err);
		for (; !code && done < batches && done < nr_loader_batches(loader); done++) {
			struct nr_batch *b;
			if ((code = nr_loader_next(loader, &b, err))) break;
			nr_from_floats(nr_plan_data(r.plan, r.image), b->image, nr_len(r.image));
			nr_loader_give_back(loader, b);
			one_batch(&r, w, &p);
		}
		if (!code && !done) code = nr_fail(err, NR_EVALUE, "cannot measure statistics", NULL, "the split does not fill one batch");
		if (!code) *changed = put_means(w, &p, done);
		else set_buffers(w->store, p.kept, 0);
		if (loader) nr_loader_close(loader);
		nr_runner_close(&r);
	}
	free(p.zero);
	free(p.kept);
	free(p.sum);
	return code;
}
