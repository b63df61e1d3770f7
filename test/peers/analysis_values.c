/* What analysis and study statistics say of given arrays, for analysis_references.py: reads x, other, attention and differences (NPY)
 * of a folder and prints one JSON object. */
#include <stdio.h>
#include <stdlib.h>

#include "analysis/attention_distance.h"
#include "analysis/cka.h"
#include "analysis/pca.h"
#include "analysis/trustworthiness.h"
#include "analysis/tsne.h"
#include "analysis/uniformity.h"
#include "base/json.h"
#include "data/npy.h"
#include "study/stats.h"

enum { COMPONENTS = 4, TRUST = 12 };

static struct nr_error err;

static void stop(void)
{
	fprintf(stderr, "%s: %s: %s\n", err.what, err.subject, err.detail);
	exit(1);
}

static void *need(size_t bytes)
{
	void *p = calloc(bytes + 1, 1);
	if (!p) exit(1);
	return p;
}

struct array { int64_t d[4], n; float *x; };

static struct array load(const char *folder, const char *name)
{
	char path[4096];
	struct nr_npy f;
	struct array a = { .d = { 1, 1, 1, 1 }, .n = 1 };
	snprintf(path, sizeof path, "%s/%s.npy", folder, name);
	if (nr_npy_open(&f, path, &err)) stop();
	for (int i = 0; i < f.array.nd && i < 4; i++) a.n *= a.d[i] = f.array.shape[i];
	a.x = need((size_t)a.n * sizeof *a.x);
	if (nr_st_to_f32(&f.array, a.x, a.n, &err)) stop();
	nr_npy_close(&f);
	return a;
}

static json_t *list(const double *v, int64_t n)
{
	json_t *a = json_array();
	for (int64_t i = 0; i < n; i++) json_array_append_new(a, json_real(v[i]));
	return a;
}

static json_t *sphere(const struct array *x)
{
	const int64_t n = x->d[0] < x->d[1] ? x->d[0] : x->d[1];
	double *s = need((size_t)n * sizeof *s), *centred = need((size_t)n * sizeof *centred);
	struct nr_pairs p;
	if (nr_uniformity(x->d[0], x->d[1], x->x, 2, &p, &err) || nr_spectrum(x->d[0], x->d[1], x->x, 0, s, &err) ||
		nr_spectrum(x->d[0], x->d[1], x->x, 1, centred, &err))
		stop();
	json_t *r = json_pack("{s:f, s:f, s:f, s:f, s:o, s:o}", "uniformity", p.uniformity, "mean_cos", p.mean_cos, "mean_sq", p.mean_sq,
		"rank", nr_effective_rank(n, centred), "spectrum", list(s, n), "centred", list(centred, n));
	free(s);
	free(centred);
	return r;
}

static json_t *components(const struct array *x)
{
	struct nr_pca p;
	double *out = need((size_t)(x->d[0] * COMPONENTS) * sizeof *out);
	if (nr_pca_init(&p, x->d[0], x->d[1], x->x, COMPONENTS, &err)) stop();
	nr_pca_project(&p, x->d[0], x->x, out);
	json_t *r = json_pack("{s:o, s:o, s:o, s:f}", "component", list(p.component, COMPONENTS * x->d[1]), "variance",
		list(p.variance, COMPONENTS), "projected", list(out, x->d[0] * COMPONENTS), "total", p.total);
	nr_pca_release(&p);
	free(out);
	return r;
}

/* exact: rows up to which every pair counts. */
static json_t *layout(const struct array *x, int64_t exact)
{
	struct nr_tsne o = NR_TSNE_DEFAULTS;
	struct nr_tsne_result result;
	struct nr_trustworthiness trust;
	double *y = need((size_t)(2 * x->d[0]) * sizeof *y);
	o.exact = exact;
	if (nr_tsne_run(&o, x->d[0], x->d[1], x->x, y, &result, &err) ||
		nr_trustworthiness(x->d[0], x->d[1], x->x, 2, y, TRUST, &trust, &err))
		stop();
	json_t *r = json_pack("{s:o, s:f, s:f}", "layout", list(y, 2 * x->d[0]), "kl", result.kl, "trustworthiness", trust.value);
	free(y);
	return r;
}

/* attention (B,H,1+T,1+T) of a square grid behind one special token */
static json_t *attention(const struct array *a)
{
	int64_t side = 1;
	while ((side + 1) * (side + 1) <= a->d[2] - 1) side++;
	double *head = need((size_t)a->d[1] * sizeof *head);
	nr_attention_distance(a->d[0], a->d[1], 1, side, side, a->x, 1, head, NULL);
	json_t *r = list(head, a->d[1]);
	free(head);
	return r;
}

/* differences (tests,n) */
static json_t *statistics(const struct array *d)
{
	const size_t bytes = (size_t)d->d[0] * sizeof(double);
	double *t = need(bytes), *w = need(bytes), *half = need(bytes), *holm = need(bytes), *row = need((size_t)d->d[1] * sizeof *row);
	for (int64_t i = 0; i < d->d[0]; i++) {
		for (int64_t j = 0; j < d->d[1]; j++) row[j] = (double)d->x[i * d->d[1] + j];
		holm[i] = t[i] = nr_t_test(row, d->d[1]);
		w[i] = nr_wilcoxon(row, d->d[1]);
		half[i] = nr_sample(row, d->d[1]).half;
	}
	nr_holm(holm, d->d[0]);
	json_t *r = json_pack("{s:o, s:o, s:o, s:o}", "t", list(t, d->d[0]), "wilcoxon", list(w, d->d[0]), "half",
		list(half, d->d[0]), "holm", list(holm, d->d[0]));
	free(t);
	free(w);
	free(half);
	free(holm);
	free(row);
	return r;
}

int main(int argc, char **argv)
{
	if (argc != 2) return fprintf(stderr, "usage: %s FOLDER\n", argv[0]), 2;
	struct array x = load(argv[1], "x"), other = load(argv[1], "other"), a = load(argv[1], "attention"),
		     d = load(argv[1], "differences");
	double cka;
	if (nr_cka(x.d[0], x.d[1], x.x, other.d[1], other.x, &cka, &err)) stop();
	json_t *all = json_pack("{s:o, s:o, s:o, s:o, s:o, s:f, s:o}", "sphere", sphere(&x), "pca", components(&x), "tsne",
		layout(&x, x.d[0]), "tree", layout(&x, 0), "attention", attention(&a), "cka", cka, "statistics", statistics(&d));
	nr_json_line(stdout, all, &err);
	free(x.x);
	free(other.x);
	free(a.x);
	free(d.x);
	return err.code ? 1 : 0;
}
