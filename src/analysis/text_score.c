/* See text_score.h. Matthews' correlation of several classes: Gorodkin 2004, doi:10.1016/j.compbiolchem.2004.09.006. */
#include "analysis/text_score.h"

#include <stdlib.h>

#include "analysis/spearman.h"

static int64_t best_of(int64_t K, const real *x)
{
	int64_t best = 0;
	for (int64_t k = 1; k < K; k++) best = x[k] > x[best] ? k : best;
	return best;
}

static double loss_of(int64_t K, const real *x, int32_t label)
{
	double sum = 0;
	const double most = (double)x[best_of(K, x)];
	for (int64_t k = 0; k < K; k++) sum += exp((double)x[k] - most);
	return log(sum) + most - (double)x[label];
}

/* Of a class: how many it has, how many were told to be of it, how many rightly. */
struct counts { int64_t truth, told, right; };

static double f1_of(const struct counts *c) { return c->truth + c->told ? 2 * (double)c->right / (double)(c->truth + c->told) : 0; }

static void measure(int64_t K, const struct counts *c, struct nr_text_score *s)
{
	const double n = (double)s->samples;
	double right = 0, both = 0, truth = 0, told = 0, f1 = 0;
	int64_t present = 0;
	for (int64_t k = 0; k < K; k++) {
		right += (double)c[k].right;
		both += (double)c[k].truth * (double)c[k].told;
		truth += (double)c[k].truth * (double)c[k].truth;
		told += (double)c[k].told * (double)c[k].told;
		if (c[k].truth + c[k].told) f1 += f1_of(&c[k]), present++;
	}
	const double spread = sqrt(n * n - truth) * sqrt(n * n - told);
	s->accuracy = right / n;
	s->f1 = K == 2 ? f1_of(&c[1]) : f1 / (double)present;
	s->matthews = spread > 0 ? (right * n - both) / spread : 0;
}

int nr_score_classes(int64_t n, int64_t K, const real *output, const int32_t *label, int64_t *confusion, struct nr_text_score *s,
	struct nr_error *err)
{
	struct counts *c = calloc((size_t)K, sizeof *c);
	double loss = 0;
	*s = (struct nr_text_score){ NAN, NAN, NAN, NAN, NAN, NAN, 0 };
	if (!c) return nr_fail(err, NR_EMEMORY, "cannot score", NULL, "out of memory");
	for (int64_t i = 0; i < n; i++) {
		if (label[i] < 0 || label[i] >= K) continue;
		const int64_t told = best_of(K, output + i * K);
		c[label[i]].truth++;
		c[told].told++;
		c[told].right += told == label[i];
		if (confusion) confusion[label[i] * K + told]++;
		loss += loss_of(K, output + i * K, label[i]);
		s->samples++;
	}
	if (s->samples) {
		s->loss = loss / (double)s->samples;
		measure(K, c, s);
	}
	free(c);
	return NR_OK;
}

int nr_score_values(int64_t n, const real *output, const double *value, struct nr_text_score *s, struct nr_error *err)
{
	double *x = malloc((size_t)n * 2 * sizeof *x + 1), *y = x ? x + n : NULL, sum = 0;
	*s = (struct nr_text_score){ NAN, NAN, NAN, NAN, NAN, NAN, 0 };
	if (!x) return nr_fail(err, NR_EMEMORY, "cannot score", NULL, "out of memory");
	for (int64_t i = 0; i < n; i++) {
		if (isnan(value[i])) continue;
		x[s->samples] = (double)output[i];
		y[s->samples++] = value[i];
		sum += ((double)output[i] - value[i]) * ((double)output[i] - value[i]);
	}
	int code = NR_OK;
	if (s->samples) {
		s->loss = sum / (double)s->samples;
		s->pearson = nr_pearson(s->samples, x, y);
		code = nr_spearman(s->samples, x, y, &s->spearman, err);
	}
	free(x);
	return code;
}
