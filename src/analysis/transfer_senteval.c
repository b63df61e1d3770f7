/* Transfer tasks by SentEval's protocol. See transfer.h. Every fit draws from the same seed, as SentEval seeds each classifier anew; so the
 * fits of one fold take the same rows in the same order whatever their L2, and go side by side: most of the time goes into fetching rows.
 * Threads take a fold each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/transfer_inner.h"
#include "base/rng.h"
#include "math/row.h"

enum { STRENGTHS = 4, MOST_CLASSES = 16, MOST_EPOCHS = 200 };
enum { STREAM_FOLDS = 50 << 24, STREAM_START = 51 << 24, STREAM_ORDER = 52 << 24, STREAM_HELD = 53 << 24 };
static const double strengths[STRENGTHS] = { 1e-5, 1e-4, 1e-3, 1e-2 };

/* tenacity: evaluations without a new best that are borne. */
struct recipe { int folds, batch, epochs, tenacity; bool rms; };
static const struct recipe full = { 10, 64, 4, 5, false }, fast = { 5, 128, 2, 3, true };
static const struct recipe *recipe_of(const struct nr_transfer *o) { return o->protocol == NR_TRANSFER_FAST ? &fast : &full; }

static int no_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot evaluate", "a transfer task", "out of memory"); }

/* Some rows of the features. */
struct part { const struct nr_features_of *of; int32_t *row, n; };

static int32_t *room(int64_t n) { return malloc((size_t)n * sizeof(int32_t) + 1); }

/* ---- the classifier -------------------------------------------------------------------------------------------------------- */

struct layer {
	int64_t width, size;                        /* size: classes (width + 1) */
	int classes;
	real *weight, *best, *gradient, *m, *v;     /* (classes,width+1), the bias last */
	int64_t steps;
	double l2, reached;                         /* best accuracy on dev so far */
	int worse;                                  /* evaluations without a new best */
};

static int open_layer(struct layer *l, const struct nr_features_of *f, double l2)
{
	const int64_t size = f->classes * (f->width + 1);
	*l = (struct layer){ .width = f->width, .size = size, .classes = f->classes, .l2 = l2, .reached = -1 };
	l->weight = calloc((size_t)(5 * size), sizeof *l->weight);
	if (!l->weight) return 0;
	l->best = l->weight + size;
	l->gradient = l->best + size;
	l->m = l->gradient + size;
	l->v = l->m + size;
	return 1;
}

static void close_layer(struct layer *l) { free(l->weight); }

static void scores(const struct layer *l, const real *weight, const real *x, real *out)
{
	for (int k = 0; k < l->classes; k++, weight += l->width + 1) out[k] = nr_dot(l->width, weight, x) + weight[l->width];
}

static int32_t classify(const struct layer *l, const real *weight, const real *x)
{
	real out[MOST_CLASSES];
	int32_t best = 0;
	scores(l, weight, x, out);
	for (int32_t k = 1; k < l->classes; k++)
		if (out[k] > out[best]) best = k;
	return best;
}

static double accuracy(const struct layer *l, const real *weight, const struct part *p)
{
	int64_t right = 0;
	for (int32_t i = 0; i < p->n; i++) right += classify(l, weight, p->of->x + p->row[i] * l->width) == p->of->label[p->row[i]];
	return p->n ? (double)right / p->n : 0;
}

/* Adds one row's gradient of the mean cross entropy over n rows. */
static void add_gradient(struct layer *l, const real *x, int32_t label, int64_t n)
{
	real p[MOST_CLASSES], sum = 0;
	scores(l, l->weight, x, p);
	const real top = nr_row_max(l->classes, p);
	for (int k = 0; k < l->classes; k++) sum += p[k] = (real)exp((double)(p[k] - top));
	for (int k = 0; k < l->classes; k++) {
		real *g = l->gradient + k * (l->width + 1);
		const real d = (p[k] / sum - (k == label)) / (real)n;
		nr_row_axpy(l->width, d, x, g);
		g[l->width] += d;
	}
}

static void update(struct layer *l, bool rms)
{
	const double t = (double)++l->steps, unbias1 = 1 - pow(.9, t), unbias2 = 1 - pow(.999, t);
	const real size = (real)(rms ? .01 : 1e-3 / unbias1), root = (real)(rms ? 1 : 1 / sqrt(unbias2)), eps = (real)1e-8;
	const real a = (real)(rms ? 0 : .9), b = (real)(rms ? .99 : .999), decay = (real)l->l2;
	for (int64_t i = 0; i < l->size; i++) {
		const real g = l->gradient[i] + decay * l->weight[i];
		l->m[i] = a * l->m[i] + (1 - a) * g;
		l->v[i] = b * l->v[i] + (1 - b) * g * g;
		l->weight[i] -= size * l->m[i] / ((real)sqrt((double)l->v[i]) * root + eps);
	}
}

static bool ended(const struct layer *l, const struct recipe *r) { return l->worse > r->tenacity; }

/* order (train->n): room for it. */
static void epoch(struct layer *l, int count, const struct part *train, const struct recipe *r, uint64_t seed, int number, int32_t *order)
{
	nr_rng_shuffle(nr_rng_make(seed, STREAM_ORDER, (uint32_t)number), 0, order, train->n);
	for (int32_t first = 0; first < train->n; first += r->batch) {
		const int32_t n = train->n - first < r->batch ? train->n - first : r->batch;
		for (int k = 0; k < count; k++) memset(l[k].gradient, 0, (size_t)l[k].size * sizeof *l[k].gradient);
		for (int32_t i = first; i < first + n; i++) {
			const int32_t row = train->row[order[i]];
			for (int k = 0; k < count; k++)
				if (!ended(&l[k], r)) add_gradient(&l[k], train->of->x + row * l[k].width, train->of->label[row], n);
		}
		for (int k = 0; k < count; k++)
			if (!ended(&l[k], r)) update(&l[k], r->rms);
	}
}

static void evaluate(struct layer *l, const struct part *dev)
{
	const double now = accuracy(l, l->weight, dev);
	if (now > l->reached) {
		l->reached = now;
		memcpy(l->best, l->weight, (size_t)l->size * sizeof *l->best);
	} else {
		l->worse++;
	}
}

/* Trains layers that differ in their L2; weights of the best evaluation are left in best, its accuracy in reached. 0: out of memory. */
static int train_layers(struct layer *l, int count, const struct part *train, const struct part *dev, const struct recipe *r, uint64_t seed)
{
	const struct nr_rng start = nr_rng_make(seed, STREAM_START, 0);
	const double bound = 1 / sqrt((double)train->of->width);
	int32_t *order = room(train->n);
	if (!order) return 0;
	for (int k = 0; k < count; k++)
		for (int64_t i = 0; i < l[k].size; i++)
			l[k].weight[i] = (real)(bound * (2 * (double)nr_rng_uniform(start, (uint64_t)i) - 1));
	for (int epochs = 0, left = count; left && epochs <= MOST_EPOCHS;) {
		for (int i = 0; i < r->epochs; i++) epoch(l, count, train, r, seed, epochs++, order);
		left = 0;
		for (int k = 0; k < count; k++) {
			if (!ended(&l[k], r)) evaluate(&l[k], dev);
			left += !ended(&l[k], r);
		}
	}
	free(order);
	return 1;
}

/* ---- folds ------------------------------------------------------------------------------------------------------------------ */

/* fold (n) of each row of p: every class spread over the folds as evenly as it goes, who goes where drawn. */
static int stratify(const struct part *p, int folds, uint64_t seed, int32_t *fold)
{
	const struct nr_rng rng = nr_rng_make(seed, STREAM_FOLDS, 0);
	int32_t *place = room(2 * (int64_t)p->n), at = 0, drawn = 0;
	if (!place) return 0;
	int32_t *order = place + p->n;
	for (int k = 0; k < p->of->classes; k++) {
		int32_t n = 0;
		for (int32_t i = 0; i < p->n; i++) n += p->of->label[p->row[i]] == k;
		for (int32_t i = 0; i < n; i++) place[i] = (at + i) % folds;        /* as if rows lay sorted by class */
		nr_rng_shuffle(rng, (uint64_t)drawn, order, n);
		for (int32_t i = 0, next = 0; i < p->n; i++)
			if (p->of->label[p->row[i]] == k) fold[i] = place[order[next++]];
		at += n;
		drawn += n + 1;
	}
	free(place);
	return 1;
}

/* The rows of p in fold k, and the others. */
static int divide(const struct part *p, const int32_t *fold, int k, struct part *in, struct part *out)
{
	*in = (struct part){ .of = p->of, .row = room(p->n) };
	*out = (struct part){ .of = p->of, .row = room(p->n) };
	for (int32_t i = 0; in->row && out->row && i < p->n; i++)
		if (fold[i] == k) in->row[in->n++] = p->row[i];
		else out->row[out->n++] = p->row[i];
	return in->row && out->row;
}

static void forget(struct part *p)
{
	free(p->row);
	*p = (struct part){ 0 };
}

static int all_rows(const struct nr_features_of *f, struct part *p)
{
	*p = (struct part){ .of = f, .row = room(f->rows), .n = (int32_t)f->rows };
	for (int32_t i = 0; p->row && i < p->n; i++) p->row[i] = i;
	return p->row != NULL;
}

/* ---- choosing, then training --------------------------------------------------------------------------------------------------- */

/* Fits with `count` strengths side by side; found (count): best accuracy on dev, or on fold k of train without it. False: out of
 * memory. */
static bool fit_side_by_side(const struct part *train, const struct part *dev, const int32_t *fold, int k, const double *l2, int count,
	const struct nr_transfer *o, double *found)
{
	struct part in = { 0 }, out = { 0 };
	struct layer l[STRENGTHS] = { { 0 } };
	bool whole = dev || divide(train, fold, k, &in, &out);
	const struct part *rows = dev ? train : &out;
	for (int i = 0; whole && i < count; i++) whole = open_layer(&l[i], rows->of, l2[i]);
	if (whole) whole = train_layers(l, count, rows, dev ? dev : &in, recipe_of(o), o->seed);
	for (int i = 0; i < count; i++) {
		found[i] = l[i].reached;
		close_layer(&l[i]);
	}
	forget(&in);
	forget(&out);
	return whole;
}

/* The L2 whose mean accuracy is best. Without folds threads share out the strengths. */
static int choose(const struct part *train, const struct part *dev, const struct nr_transfer *o, double *l2, double *accuracy_of,
	struct nr_error *err)
{
	const int folds = dev ? 1 : recipe_of(o)->folds, count = dev ? 1 : STRENGTHS, jobs = folds * STRENGTHS / count;
	double found[NR_TRANSFER_FOLDS][STRENGTHS], best = -1;
	bool done[NR_TRANSFER_FOLDS * STRENGTHS];
	int32_t *fold = room(train->n);
	bool lack = !fold || (!dev && !stratify(train, folds, o->seed, fold));
	if (!lack) {
#pragma omp parallel for schedule(dynamic, 1)
		for (int i = 0; i < jobs; i++) {
			const int k = i % folds, from = i / folds * count;
			done[i] = fit_side_by_side(train, dev, fold, k, strengths + from, count, o, &found[k][from]);
		}
	}
	for (int i = 0; !lack && i < jobs; i++) lack = !done[i];
	for (int s = 0; !lack && s < STRENGTHS; s++) {
		double mean = 0;
		for (int k = 0; k < folds; k++) mean += found[k][s] / folds;
		if (mean > best) best = mean, *l2 = strengths[s];
	}
	*accuracy_of = 100 * best;
	free(fold);
	return lack ? no_memory(err) : NR_OK;
}

/* One in twenty rows is held back to stop by. */
static int hold_back(const struct part *p, uint64_t seed, struct part *held, struct part *rest)
{
	int32_t *order = room(p->n), *fold = room(p->n);
	const int32_t n = (int32_t)(.05 * p->n);
	if (order && fold) nr_rng_shuffle(nr_rng_make(seed, STREAM_HELD, 0), 0, order, p->n);
	for (int32_t i = 0; order && fold && i < p->n; i++) fold[order[i]] = i >= n;
	const int done = order && fold && divide(p, fold, 0, held, rest);
	free(order);
	free(fold);
	return done;
}

/* Trains with the chosen L2 and classifies test; predicted (test->n). */
static int finish(const struct part *train, const struct part *dev, const struct part *test, double l2, const struct nr_transfer *o,
	int32_t *predicted, struct nr_error *err)
{
	struct part held = { 0 }, rest = { 0 };
	struct layer l = { 0 };
	const bool ready = (dev || hold_back(train, o->seed, &held, &rest)) && open_layer(&l, train->of, l2) &&
		train_layers(&l, 1, dev ? train : &rest, dev ? dev : &held, recipe_of(o), o->seed);
	if (ready) {
		for (int32_t i = 0; i < test->n; i++) predicted[i] = classify(&l, l.best, test->of->x + test->row[i] * l.width);
	}
	close_layer(&l);
	forget(&held);
	forget(&rest);
	return ready ? NR_OK : no_memory(err);
}

static int one_fold(const struct nr_transfer *o, const struct part *all, const int32_t *fold, int k, struct nr_transfer_score *s,
	struct nr_error *err)
{
	struct part test = { 0 }, train = { 0 };
	int32_t *predicted = room(all->n);
	double dev = 0;
	int64_t right = 0;
	int code = predicted && divide(all, fold, k, &test, &train) ? NR_OK : no_memory(err);
	if (!code) code = choose(&train, NULL, o, &s->strength[k], &dev, err);
	if (!code) code = finish(&train, NULL, &test, s->strength[k], o, predicted, err);
	for (int32_t i = 0; !code && i < test.n; i++) right += predicted[i] == all->of->label[test.row[i]];
	s->fold[k] = test.n ? 100 * (double)right / test.n : 0;
	s->accuracy += s->fold[k] / s->folds;
	s->dev += dev / s->folds;
	forget(&test);
	forget(&train);
	free(predicted);
	return code;
}

static int fits(const struct nr_features_of *f, struct nr_error *err)
{
	if (f->rows <= INT32_MAX / 2 && f->classes <= MOST_CLASSES) return NR_OK;
	return nr_fail(err, NR_ELIMIT, "cannot evaluate", "a transfer task", "%lld rows of %d classes", (long long)f->rows, f->classes);
}

int nr_senteval_folds(struct nr_transfer_score *s, const struct nr_transfer *o, const struct nr_features_of *f, struct nr_error *err)
{
	struct part all = { 0 };
	int code = fits(f, err);
	int32_t *fold = code ? NULL : room(f->rows);
	s->folds = recipe_of(o)->folds;
	if (!code && !(fold && all_rows(f, &all) && stratify(&all, s->folds, o->seed, fold))) code = no_memory(err);
	for (int k = 0; !code && k < s->folds; k++) {
		code = one_fold(o, &all, fold, k, s, err);
		nr_transfer_tell(o, k + 1, s->folds);
	}
	forget(&all);
	free(fold);
	return code;
}

int nr_senteval_split(struct nr_transfer_score *s, const struct nr_transfer *o, const struct nr_features_of *train,
	const struct nr_features_of *dev, const struct nr_features_of *test, struct nr_error *err)
{
	struct part rows = { 0 }, by = { 0 }, unseen = { 0 };
	int code = fits(train, err);
	int32_t *predicted = room(test->rows);
	if (!code && !(predicted && all_rows(train, &rows) && (!dev || all_rows(dev, &by)) && all_rows(test, &unseen)))
		code = no_memory(err);
	if (!code) code = choose(&rows, dev ? &by : NULL, o, &s->strength[0], &s->dev, err);
	nr_transfer_tell(o, 1, 2);
	if (!code) code = finish(&rows, dev ? &by : NULL, &unseen, s->strength[0], o, predicted, err);
	nr_transfer_tell(o, 2, 2);
	if (!code) nr_transfer_judge(s, test, predicted);
	forget(&rows);
	forget(&by);
	forget(&unseen);
	free(predicted);
	return code;
}
