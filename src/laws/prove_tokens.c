/* Laws of norms by themselves that are no equation of two of them: where they put tokens, what they see, what they cost. See prove.h. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "laws/norm_trial.h"
#include "laws/prove.h"

enum { STREAM_X = 51, STREAM_DY, STREAM_OTHERS, STREAM_BIAS };

static struct nr_trial_shape shape_of(const struct nr_prove_options *o, int32_t special, double eps)
{
	return (struct nr_trial_shape){ .batch = o->batch, .tokens = o->tokens, .channels = o->channels, .special = special,
		.heads = o->heads,
		.eps = eps };
}

static void fill(const struct nr_trial *t, uint64_t seed)
{
	nr_prove_random(nr_len(t->x), nr_trial_x(t), .5, 1.5, seed, STREAM_X);
	nr_prove_random(nr_len(t->x), nr_trial_dy(t), 0, 1, seed, STREAM_DY);
}

/* Runs the norm for each seed and has `look` compare what it made with what it should be: n values, got and want. */
typedef void look(const struct nr_trial *, real *got, real *want);
static int each_seed(const char *norm, struct nr_trial_shape s, int64_t n, look *compare, const struct nr_prove_options *o,
	struct nr_proof *p,
	struct nr_error *err)
{
	struct nr_trial t;
	if (nr_trial_open(&t, norm, &s, err)) return err->code;
	struct nr_arena *arena = nr_arena_make();
	real *room = arena ? nr_arena_alloc(arena, 2 * (size_t)n * sizeof *room) : NULL;
	if (!room) nr_fail(err, NR_EMEMORY, "cannot prove", norm, "out of memory");
	for (uint64_t seed = 1; room && seed <= (uint64_t)o->seeds; seed++) {
		const struct nr_entry *bias = nr_store_find(t.store, "special.bias");
		fill(&t, seed);
		if (bias) nr_prove_random(bias->count, nr_value(bias), 0, 1, seed, STREAM_BIAS);
		nr_trial_run(&t);
		compare(&t, room, room + n);
		nr_proof_compare(p, "y", n, room, room + n);
	}
	nr_arena_free(arena);
	nr_trial_close(&t);
	nr_proof_close(p, o->tolerance);
	return err->code;
}

/* ---- spheres -------------------------------------------------------------------------------------------------------------- */

/* Length and sum of each run of `width` values: a token, or a group of it. */
static void lengths(const struct nr_trial *t, int64_t width, real *got, real *want)
{
	const real *y = nr_trial_y(t);
	for (int64_t r = 0; r < nr_len(t->x) / width; r++) {
		double square = 0, sum = 0;
		for (int64_t i = 0; i < width; i++) square += pow((double)y[r * width + i], 2), sum += (double)y[r * width + i];
		got[2 * r] = (real)sqrt(square), want[2 * r] = (real)sqrt((double)width);
		got[2 * r + 1] = (real)sum, want[2 * r + 1] = 0;
	}
}

static int64_t group_count(int64_t C) { return C % 3 == 0 ? 3 : C % 2 == 0 ? 2 : 1; }

static void of_tokens(const struct nr_trial *t, real *got, real *want) { lengths(t, nr_cols(t->x), got, want); }
static void of_groups(const struct nr_trial *t, real *got, real *want) { lengths(t, nr_cols(t->x) / group_count(nr_cols(t->x)), got, want);
	}

static int layer_sphere(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return each_seed("layer:eps=0", shape_of(o, 0, 0), 2 * o->batch * o->tokens, of_tokens, o, p, err);
}
static int group_sphere(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	char norm[64];
	const int64_t groups = group_count(o->channels);
	snprintf(norm, sizeof norm, "group:scope=token,eps=0,groups=%d", (int)groups);
	return each_seed(norm, shape_of(o, 0, 0), 2 * o->batch * o->tokens * groups, of_groups, o, p, err);
}

/* ---- CRMSNorm ------------------------------------------------------------------------------------------------------------- */

/* z: x less its mean, without the last channel, which is -sum z. crms(z) = z / sqrt((sum z^2 + (sum z)^2) / C + eps). */
static void crms(const struct nr_trial *t, real *got, real *want)
{
	const int64_t C = nr_cols(t->x);
	for (int64_t r = 0; r < nr_len(t->x) / C; r++) {
		const real *x = nr_trial_x(t) + r * C;
		double mean = 0, sum = 0, square = 0;
		for (int64_t i = 0; i < C; i++) mean += (double)x[i] / (double)C;
		for (int64_t i = 0; i + 1 < C; i++) sum += (double)x[i] - mean, square += pow((double)x[i] - mean, 2);
		for (int64_t i = 0; i + 1 < C; i++) {
			got[r * (C - 1) + i] = (real)(((double)x[i] - mean) / sqrt((square + sum * sum) / (double)C + 1e-5));
			want[r * (C - 1) + i] = nr_trial_y(t)[r * C + i];
		}
	}
}

static int crms_is_layer(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return each_seed("layer", shape_of(o, 0, 1e-5), o->batch * o->tokens * (o->channels - 1), crms, o, p, err);
}

/* ---- SepNorm's loss ------------------------------------------------------------------------------------------------------- */

/* The mean of h_i . h_j over all pairs of a batch, which is |mean h|^2: batch norm leaves the bias alone of it, whatever the tokens are. */
static void pairs(const struct nr_trial *t, real *got, real *want)
{
	const int64_t B = t->x->d[0], T = t->x->d[1], C = t->x->d[2];
	const real *y = nr_trial_y(t), *bias = nr_value(nr_store_find(t->store, "special.bias"));
	double sum = 0, square = 0;
	for (int64_t i = 0; i < B; i++)
		for (int64_t j = 0; j < B; j++)
			for (int64_t c = 0; c < C; c++) sum += (double)y[i * T * C + c] * (double)y[j * T * C + c];
	for (int64_t c = 0; c < C; c++) square += (double)bias[c] * (double)bias[c];
	*got = (real)(sum / (double)(B * B));
	*want = (real)square;
}

static int uniformity_loss(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return each_seed("sep(batch,layer)", shape_of(o, 1, 1e-5), 1, pairs, o, p, err);
}

static int sep_batches(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	struct nr_prove_options one = *o;
	one.special = 1;
	const int code = nr_prove_equation("sep(batch,batch) = batch", &one, p, err);
	p->holds = p->values > .01;
	snprintf(p->note, sizeof p->note, "two batch norms change y by %.2f", p->values);
	return code;
}

/* ---- local instance normalization --------------------------------------------------------------------------------------------- */

/* Over the tokens from i - reach to i + reach of a sample, as many as there are. Two tokens may have hardly any variance, which dtn finds
 * as a difference of squares: eps is large. */
static void window(const struct nr_trial *t, int64_t reach, real *got, real *want)
{
	const int64_t T = t->x->d[1], C = t->x->d[2], n = nr_len(t->x);
	const real *x = nr_trial_x(t);
	for (int64_t k = 0; k < n; k++) {
		const int64_t sample = k / (T * C) * T, i = k / C % T, from = i > reach ? i - reach : 0,
			to = i + reach < T ? i + reach : T - 1;
		double mean = 0, square = 0;
		for (int64_t j = from; j <= to; j++) mean += (double)x[(sample + j) * C + k % C] / (double)(to - from + 1);
		for (int64_t j = from; j <= to; j++) square += pow((double)x[(sample + j) * C + k % C] - mean, 2) / (double)(to - from + 1);
		got[k] = nr_trial_y(t)[k];
		want[k] = (real)(((double)x[k] - mean) / sqrt(square + .1));
	}
}
static void window3(const struct nr_trial *t, real *got, real *want) { window(t, 1, got, want); }
static void window5(const struct nr_trial *t, real *got, real *want) { window(t, 2, got, want); }

static int band3(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return each_seed("dtn:lam=0,attention=band,band=3,eps=0.1", shape_of(o, 0, 0), o->batch * o->tokens * o->channels, window3, o, p,
		err);
}
static int band5(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return each_seed("dtn:lam=0,attention=band,band=5,eps=0.1", shape_of(o, 0, 0), o->batch * o->tokens * o->channels, window5, o, p,
		err);
}

/* ---- other samples ------------------------------------------------------------------------------------------------------------ */

/* The first sample of a batch, twice with others beside it. */
static int beside_others(const char *norm, const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	struct nr_trial_shape s = shape_of(o, 0, 1e-5);
	struct nr_trial t[2];
	if (s.batch < 2) s.batch = 2;
	if (nr_trial_open(&t[0], norm, &s, err)) return err->code;
	if (nr_trial_open(&t[1], norm, &s, err)) {
		nr_trial_close(&t[0]);
		return err->code;
	}
	const int64_t n = nr_len(t[0].x), one = n / s.batch;
	for (uint64_t seed = 1; seed <= (uint64_t)o->seeds; seed++) {
		for (int k = 0; k < 2; k++) fill(&t[k], seed);
		nr_prove_random(n - one, nr_trial_x(&t[1]) + one, 2, 3, seed, STREAM_OTHERS);
		for (int k = 0; k < 2; k++) nr_trial_run(&t[k]);
		nr_proof_compare(p, "y", one, nr_trial_y(&t[1]), nr_trial_y(&t[0]));
		nr_proof_compare(p, "dx", one, nr_trial_dx(&t[1]), nr_trial_dx(&t[0]));
	}
	nr_trial_close(&t[1]);
	nr_trial_close(&t[0]);
	nr_proof_close(p, 0);
	return NR_OK;
}

/* To the last bit. */
static int alone(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	static const char *const norms[] = { "layer", "rms", "instance", "group", "dtn" };
	for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
		if (beside_others(norms[i], o, p, err)) return err->code;
	return NR_OK;
}
static int batch_sees_others(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	const int code = beside_others("batch", o, p, err);
	p->holds = p->values > .01;
	snprintf(p->note, sizeof p->note, "other samples change y by %.2f", p->values);
	return code;
}

/* ---- the cost of DTN ------------------------------------------------------------------------------------------------------------ */

/* Flops forward of one sample of so many tokens, without those of the trial itself. */
static int flops(const char *norm, int64_t tokens, double *out, struct nr_error *err)
{
	const char *const text[] = { norm, "none" };
	double f[2];
	for (int i = 0; i < 2; i++) {
		struct nr_trial t;
		if (nr_trial_open(&t, text[i], &(struct nr_trial_shape){ .batch = 1, .tokens = tokens, .channels = 12, .heads = 3 },
			err)) return err->code;
		f[i] = nr_plan_stats(t.plan).forward_flops;
		nr_trial_close(&t);
	}
	*out = f[0] - f[1];
	return NR_OK;
}

/* Of the equation: on a whole grid the kernels need fewer. a T + b T^2 from 64 and 256 tokens, against 1024; pooling by 2 leaves a quarter
 * of the tokens to b and all of them to a. */
static int dtn_cost(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	double small, middle, large, pooled;
	if (flops("dtn", 64, &small, err) || flops("dtn", 256, &middle, err) || flops("dtn", 1024, &large, err) ||
	    flops("dtn:pool=2", 1024, &pooled, err))
		return err->code;
	const double b = (middle - 4 * small) / (256. * 256 - 4 * 64. * 64), a = (small - b * 64 * 64) / 64;
	const real got[] = { (real)large, (real)pooled }, want[] = { (real)(a * 1024 + b * 1024 * 1024), (real)(a * 1024 + b * 256 * 256) };
	for (int i = 0; i < 2; i++) nr_proof_compare(p, "y", 1, &got[i], &want[i]);
	nr_proof_close(p, o->tolerance);
	snprintf(p->note, sizeof p->note, "%.0f T + %.0f T^2 flops for 12 channels, 3 heads", a, b);
	return NR_OK;
}

const struct nr_law nr_laws_of_tokens[] = {
	{ "|layer(x)| = sqrt(C) and its sum is 0, without gain", "arXiv:1607.06450", layer_sphere },
	{ "|group:scope=token(x)| = sqrt(C / groups) in each group", "arXiv:1803.08494", group_sphere },
	{ "crms(x - mean_C x, without a channel) = layer(x)", "arXiv:2305.14858", crms_is_layer },
	{ "mean_ij h_i . h_j = |bias|^2 for [CLS] in sep(batch,layer)", "SepNorm, Eq. 8", uniformity_loss },
	{ "sep(batch,batch) != batch", "arXiv:2309.12931", sep_batches },
	{ "dtn:lam=0,attention=band,band=3 = instance in a window", "arXiv:2112.02624", band3 },
	{ "dtn:lam=0,attention=band,band=5 = instance in a window", "arXiv:2112.02624", band5 },
	{ "layer, rms, instance, group, dtn: no other sample is seen", "arXiv:1607.06450", alone },
	{ "batch: other samples are seen", "arXiv:1502.03167", batch_sees_others },
	{ "flops of dtn: a T + b T^2, with pool=2 a T + b T^2 / 16", "arXiv:2112.02624", dtn_cost },
	{ NULL, NULL, NULL },
};
