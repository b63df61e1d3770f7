/* t-SNE: settings, start, descent. See tsne.h. */
#include "analysis/tsne.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/pca.h"
#include "analysis/tsne_inner.h"
#include "base/rng.h"

static const char what[] = "cannot compute t-SNE";

enum { WATCH_EVERY = 10, LEAST_RATE = 200, JITTER_STREAM = 0x74736e65 }; /* "tsne" */

struct work {
	struct nr_tsne_p p;
	struct nr_tree *tree;           /* NULL: exact */
	struct nr_tsne_row *row;        /* (N) */
	double *at[2];                  /* (N) the layout, one coordinate after the other */
	double *speed[2], *gain[2];     /* (N) */
	double *slab;                   /* holds the six */
};

static int check(const struct nr_tsne *o, int64_t N, int64_t C, const real *x, struct nr_error *err)
{
	if (N < 1 || C < 1 || N > INT32_MAX / 2)
		return nr_fail(err, NR_ESHAPE, what, NULL, "%lld rows with %lld channels", (long long)N, (long long)C);
	if (!(o->perplexity >= 1 && isfinite(o->perplexity)))
		return nr_fail(err, NR_EVALUE, what, "perplexity", "%g, must be at least 1", o->perplexity);
	if (!(o->theta >= 0 && o->theta <= .7))
		return nr_fail(err, NR_EVALUE, what, "theta",
			"%g, must be 0 to .7: above that, a cell could include the point it repels",
			o->theta);
	if (!(o->exaggeration >= 1 && isfinite(o->exaggeration)))
		return nr_fail(err, NR_EVALUE, what, "exaggeration", "%g, must be at least 1", o->exaggeration);
	if (!(o->rate >= 0 && isfinite(o->rate)))
		return nr_fail(err, NR_EVALUE, what, "rate",
			"%g, must be positive, or 0 for an automatic choice", o->rate);
	if (o->steps < 0 || o->exaggerated < 0)
		return nr_fail(err, NR_EVALUE, what, "steps", "negative");
	for (int64_t i = 0; i < N * C; i++)
		if (!isfinite((double)x[i])) {
			nr_fail(err, NR_EVALUE, what, NULL, "row %lld, channel %lld is not finite", (long long)(i / C), (long long)(i % C));
			nr_hint(err, "leave such rows out, or find out why the features are not finite");
			return NR_EVALUE;
		}
	return 0;
}

/* Leading components, the first with a deviation of 1e-4, and a jitter. */
static int start(const struct nr_tsne *o, int64_t N, int64_t C, const real *x, double *const at[2], struct nr_error *err)
{
	const int64_t most = N < C ? N : C, K = most < 2 ? most : 2;
	struct nr_pca pca;
	double *flat = malloc((size_t)(N * K) * sizeof *flat);
	int code = flat ? nr_pca_init(&pca, N, C, x, K, err) : nr_fail(err, NR_EMEMORY, what, NULL, "out of memory");
	if (!code) {
		const double deviation = sqrt(pca.variance[0]), scale = deviation > 0 ? 1e-4 / deviation : 0;
		const struct nr_rng rng = nr_rng_make(o->seed, JITTER_STREAM, 0);
		nr_pca_project(&pca, N, x, flat);
		for (int64_t i = 0; i < N; i++)
			for (int64_t d = 0; d < 2; d++)
				at[d][i] = (d < K ? scale * flat[i * K + d] : 0) + 1e-6 * nr_rng_normal(rng, (uint64_t)(2 * i + d));
	}
	if (flat) nr_pca_release(&pca);
	free(flat);
	return code;
}

static void centre(int64_t N, double *v)
{
	double mean = 0;
	for (int64_t i = 0; i < N; i++) mean += v[i];
	mean /= (double)N;
	for (int64_t i = 0; i < N; i++) v[i] -= mean;
}

/* Sums of every row at the present layout; returns the sum of q. kl is set if it is wanted. */
static double forces(struct work *w, double theta, double *kl)
{
	if (w->tree) nr_tsne_barnes_hut(&w->p, w->tree, theta, w->at[0], w->at[1], kl != NULL, w->row);
	else nr_tsne_exact(&w->p, w->at[0], w->at[1], kl != NULL, w->row);
	double z = 0, stress = 0;
	for (int64_t i = 0; i < w->p.N; i++) {
		z += w->row[i].z;
		stress += w->row[i].stress;
	}
	if (kl) *kl = w->p.entropy + stress + log(z);
	return z;
}

/* Momentum with a gain for each coordinate: it grows while the speed goes downhill, shrinks when it has overshot. */
static void move(struct work *w, double z, double exaggeration, double rate, double momentum)
{
	const int64_t N = w->p.N;
	for (int d = 0; d < 2; d++) {
		for (int64_t i = 0; i < N; i++) {
			const double slope = exaggeration * w->row[i].pull[d] - w->row[i].push[d] / z;
			double *gain = &w->gain[d][i], *speed = &w->speed[d][i];
			*gain = fmax((slope > 0) != (*speed > 0) ? *gain + .2 : *gain * .8, .01);
			*speed = momentum * *speed - rate * *gain * slope;
			w->at[d][i] += *speed;
		}
		centre(N, w->at[d]);
	}
}

static int descend(const struct nr_tsne *o, struct work *w, struct nr_tsne_result *r, struct nr_error *err)
{
	int stop = 0;
	for (; r->steps < o->steps && !stop; r->steps++) {
		const int early = r->steps < o->exaggerated, tell = o->watch && r->steps % WATCH_EVERY == 0 && r->steps > 0;
		const double z = forces(w, o->theta, tell ? &r->kl : NULL);
		if (tell && (stop = o->watch(o->context, r->steps, o->steps, r->kl)) != 0) break;
		move(w, z, early ? o->exaggeration : 1, r->rate, early ? .5 : .8);
		if (!isfinite(w->at[0][0]) || !isfinite(w->at[1][0])) { /* the mean carries any such value to all */
			nr_fail(err, NR_EDIVERGED, what, NULL,
				"the layout overflowed at step %lld", (long long)r->steps);
			nr_hint(err, "use a smaller rate than %g", r->rate);
			return NR_EDIVERGED;
		}
	}
	forces(w, o->theta, &r->kl);
	if (o->watch && !stop) o->watch(o->context, r->steps, o->steps, r->kl);
	return 0;
}

static int prepare(const struct nr_tsne *o, struct work *w, int64_t N, int64_t C, const real *x, struct nr_tsne_result *r,
	struct nr_error *err)
{
	const size_t n = (size_t)N;
	w->slab = calloc(6 * n, sizeof *w->slab);
	w->row = malloc(n * sizeof *w->row);
	if (!r->exact) w->tree = nr_tree_make(N);
	if (!w->slab || !w->row || (!r->exact && !w->tree)) return nr_fail(err, NR_EMEMORY, what, NULL, "out of memory");
	for (int d = 0; d < 2; d++) {
		w->at[d] = w->slab + (size_t)d * n;
		w->speed[d] = w->slab + (size_t)(2 + d) * n;
		w->gain[d] = w->slab + (size_t)(4 + d) * n;
		for (int64_t i = 0; i < N; i++) w->gain[d][i] = 1;
	}
	const int code = start(o, N, C, x, w->at, err);
	return code ? code : nr_tsne_p_init(&w->p, N, C, x, r->perplexity, r->neighbours, r->exact, err);
}

int nr_tsne_run(const struct nr_tsne *o, int64_t N, int64_t C, const real *x, double *y, struct nr_tsne_result *r, struct nr_error *err)
{
	int code = check(o, N, C, x, err);
	if (code) return code;
	const double perplexity = fmax(1, fmin(o->perplexity, (double)(N - 1) / 3));
	*r = (struct nr_tsne_result){ .perplexity = perplexity };
	r->rate = o->rate > 0 ? o->rate : fmax((double)N / fmax(12, o->exaggeration), fmin((double)N, LEAST_RATE));
	r->exact = N <= o->exact || N < 4;
	r->neighbours = r->exact ? N - 1 : (int64_t)(3 * perplexity);
	memset(y, 0, (size_t)(2 * N) * sizeof *y);
	if (N == 1) return 0;
	struct work w = { 0 };
	code = prepare(o, &w, N, C, x, r, err);
	if (!code) code = descend(o, &w, r, err);
	for (int64_t i = 0; !code && i < N; i++)
		for (int d = 0; d < 2; d++) y[2 * i + d] = w.at[d][i];
	nr_tsne_p_release(&w.p);
	nr_tree_free(w.tree);
	free(w.row);
	free(w.slab);
	return code;
}
