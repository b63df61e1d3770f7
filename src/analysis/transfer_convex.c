/* Transfer tasks by convex logistic regression, without chance. See transfer.h. Each fit starts from the last one's weights: strengths
 * next to each other and folds that share most rows have solutions that are near. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/logistic.h"
#include "analysis/transfer_inner.h"

enum { FOLDS = NR_TRANSFER_FOLDS, FOLD_C = -2, FOLD_CS = 6, SPLIT_C = -1, SPLIT_CS = 7, STEPS = 1000 };

struct work {
	const struct nr_transfer *o;
	const struct nr_features_of *f;
	struct nr_logistic_data data;
	double *weight;                             /* (classes,width+1) */
	int32_t *label;                             /* (rows); -1: held back */
	int64_t done, of;
};

static int open_work(struct work *w, const struct nr_transfer *o, const struct nr_features_of *f, int64_t fits, struct nr_error *err)
{
	*w = (struct work){ .o = o, .f = f, .of = fits };
	w->weight = calloc((size_t)(f->classes * (f->width + 1)), sizeof *w->weight);
	w->label = malloc((size_t)f->rows * sizeof *w->label);
	if (!w->weight || !w->label) return nr_fail(err, NR_EMEMORY, "cannot evaluate", "a transfer task", "out of memory");
	return nr_logistic_data_init(&w->data, f->rows, f->width, f->x, NULL, err);
}

static void close_work(struct work *w)
{
	nr_logistic_data_release(&w->data);
	free(w->weight);
	free(w->label);
}

/* Without rows of folds a and b (-1: none). |W|^2 of two rows (-w/2, w/2) is half of |w|^2. */
static int fit(struct work *w, double strength, int a, int b, struct nr_error *err)
{
	const struct nr_features_of *f = w->f;
	struct nr_logistic_result result;
	int64_t n = 0;
	for (int64_t i = 0; i < f->rows; i++) {
		const int fold = (int)(i % FOLDS);
		w->label[i] = fold == a || fold == b ? -1 : f->label[i];
		n += w->label[i] >= 0;
	}
	/* Two classes often tie between strengths, so they are solved finer; a softmax takes several times the steps for it. */
	const bool two = f->classes == 2;
	const struct nr_logistic l = { .data = &w->data, .classes = f->classes, .label = w->label, .tolerance = two ? 1e-6 : 1e-5,
		.iterations = STEPS, .l2 = (two ? 2 : 1) / (strength * (double)n) };
	const int code = nr_logistic_fit(&l, w->weight, &result, err);
	nr_transfer_tell(w->o, ++w->done, w->of);
	return code;
}

static int32_t classify(const struct work *w, const real *x)
{
	const int64_t C = w->f->width;
	int32_t best = 0;
	double most = -INFINITY;
	for (int32_t k = 0; k < w->f->classes; k++) {
		const double *weight = w->weight + k * (C + 1);
		double s = weight[C];
		for (int64_t c = 0; c < C; c++) s += weight[c] * (double)x[c];
		if (s > most) most = s, best = k;
	}
	return best;
}

/* Share of right ones in a fold of the rows trained on, or (-1) of all of f. */
static double accuracy(const struct work *w, const struct nr_features_of *f, int fold)
{
	int64_t right = 0, n = 0;
	const int64_t step = fold < 0 ? 1 : FOLDS;
	for (int64_t i = fold < 0 ? 0 : fold; i < f->rows; i += step, n++) right += classify(w, f->x + i * f->width) == f->label[i];
	return 100 * (double)right / (double)n;
}

int nr_convex_folds(struct nr_transfer_score *s, const struct nr_transfer *o, const struct nr_features_of *f, struct nr_error *err)
{
	struct work w;
	int code = open_work(&w, o, f, FOLDS * (FOLD_CS + 1), err);
	s->folds = FOLDS;
	for (int k = 0; !code && k < FOLDS; k++) {
		const int next = (k + 1) % FOLDS;
		double best = -1;
		for (int c = 0; !code && c < FOLD_CS; c++) {
			const double strength = ldexp(1, FOLD_C + c);
			code = fit(&w, strength, k, next, err);
			const double dev = code ? 0 : accuracy(&w, f, next);
			if (dev > best) best = dev, s->strength[k] = strength;
		}
		if (!code) code = fit(&w, s->strength[k], k, -1, err);
		if (code) break;
		s->fold[k] = accuracy(&w, f, k);
		s->accuracy += s->fold[k] / FOLDS;
		s->dev += best / FOLDS;
	}
	close_work(&w);
	return code;
}

/* The accuracy that a strength is chosen by: on dev, or the mean over folds. */
static int try_strength(struct work *w, double strength, const struct nr_features_of *dev, double *out, struct nr_error *err)
{
	int code = NR_OK;
	*out = 0;
	if (dev) {
		code = fit(w, strength, -1, -1, err);
		*out = code ? 0 : accuracy(w, dev, -1);
	}
	for (int k = 0; !dev && !code && k < FOLDS; k++) {
		code = fit(w, strength, k, -1, err);
		if (!code) *out += accuracy(w, w->f, k) / FOLDS;
	}
	return code;
}

int nr_convex_split(struct nr_transfer_score *s, const struct nr_transfer *o, const struct nr_features_of *train,
	const struct nr_features_of *dev, const struct nr_features_of *test, struct nr_error *err)
{
	const int first = dev ? FOLD_C : SPLIT_C, count = dev ? FOLD_CS : SPLIT_CS;
	struct work w;
	int code = open_work(&w, o, train, count * (dev ? 1 : FOLDS) + 1, err);
	int32_t *predicted = malloc((size_t)test->rows * sizeof *predicted);
	if (!code && !predicted) code = nr_fail(err, NR_EMEMORY, "cannot evaluate", "a transfer task", "out of memory");
	s->dev = -1;
	for (int c = 0; !code && c < count; c++) {
		double found;
		code = try_strength(&w, ldexp(1, first + c), dev, &found, err);
		if (!code && found > s->dev) s->dev = found, s->strength[0] = ldexp(1, first + c);
	}
	if (!code) code = fit(&w, s->strength[0], -1, -1, err);
	for (int64_t i = 0; !code && i < test->rows; i++) predicted[i] = classify(&w, test->x + i * test->width);
	if (!code) nr_transfer_judge(s, test, predicted);
	free(predicted);
	close_work(&w);
	return code;
}
