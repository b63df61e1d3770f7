/* Multinomial logistic regression. See logistic.h.
 *
 * The Hessian's block of a class is near c X'X/n + l2 with c the mean of p (1 - p): its Cholesky factor is the preconditioner of
 * L-BFGS, which makes correlated features cost few steps. Products run in `real` over blocks of rows, sums over blocks in double. */
#include "analysis/logistic.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/lbfgs.h"
#include "graph/comm.h"
#include "math/cholesky.h"
#include "math/gemm.h"
#include "math/softmax.h"

enum { BLOCK = 4096 };                      /* rows of one product; part of the result's bits */

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot fit", "logistic regression", "out of memory"); }

/* ---- products ------------------------------------------------------------------------------------------------------------- */

static struct nr_gemm forward_of(int64_t rows, int64_t C, int64_t K, const real *x, const real *w, const real *bias, real *out)
{
	return (struct nr_gemm){ .m = rows, .n = K, .k = C, .a = x, .lda = C, .b = w, .ldb = C, .tb = 1, .c = out, .ldc = K, .bias = bias };
}

static struct nr_gemm backward_of(int64_t rows, int64_t C, int64_t K, const real *x, const real *d, real *dw)
{
	return (struct nr_gemm){ .m = K, .n = C, .k = rows, .a = d, .lda = K, .ta = 1, .b = x, .ldb = C, .c = dw, .ldc = C };
}

/* For blocks of all rows but the last ones, and for the rest: which of them needs more is the product's own affair. */
static void *scratch_for(int64_t rows, int64_t C, int64_t K)
{
	const int64_t sizes[2] = { nr_min64(rows, BLOCK), rows % BLOCK };
	size_t most = 64;
	for (int i = 0; i < 2; i++) {
		const struct nr_gemm up = forward_of(sizes[i], C, K, NULL, NULL, NULL, NULL);
		const struct nr_gemm down = backward_of(sizes[i], C, K, NULL, NULL, NULL);
		if (nr_gemm_scratch_of(&up) > most) most = nr_gemm_scratch_of(&up);
		if (nr_gemm_scratch_of(&down) > most) most = nr_gemm_scratch_of(&down);
	}
	return malloc(most);
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------------- */

/* Blocks of rows are dealt out to ranks; what each block makes is added in order by all of them. room: as many parts as room_for says. */
static size_t room_for(const struct nr_comm *c) { return c ? 1 + (size_t)nr_comm_size(c) : 1; }
static int each_block(struct nr_comm *c, int64_t rows, size_t bytes, char *room,
	void (*make)(void *, int64_t first, int64_t rows, void *part),
	void (*add)(void *, const void *part), void *context, struct nr_error *err)
{
	const int64_t blocks = (rows + BLOCK - 1) / BLOCK, ranks = nr_comm_size(c);
	char *parts = c ? room + bytes : room;
	for (int64_t q = 0; q < blocks; q += ranks) {
		const int64_t first = (q + nr_comm_rank(c)) * BLOCK;
		if (first < rows) make(context, first, nr_min64(BLOCK, rows - first), room);
		if (c && nr_comm_gather(c, room, bytes, parts, err)) return err->code;
		for (int64_t r = 0; r < ranks && q + r < blocks; r++) add(context, parts + (size_t)r * bytes);
	}
	return NR_OK;
}

/* ---- triangles: L (n,n) lower, rows one after another ------------------------------------------------------------------------ */

/* L L' = scale a + diagonal; a little more on the diagonal until it is positive definite. -1: a is not finite. */
static int factorise(int64_t n, double scale, const double *a, double diagonal, double *L)
{
	double mean = 0;
	for (int64_t i = 0; i < n; i++) mean += scale * a[i * n + i] / (double)n;
	for (double more = 1e-9 * mean + 1e-30; more < 1e30; more *= 10) {
		for (int64_t i = 0; i < n * n; i++) L[i] = scale * a[i];
		for (int64_t i = 0; i < n; i++) L[i * n + i] += diagonal + more;
		if (!nr_cholesky_solve(n, L, 0, NULL)) return NR_OK;
	}
	return -1;
}

static void solve_lower(int64_t n, const double *L, double *b)              /* b = L^-1 b */
{
	for (int64_t i = 0; i < n; i++) {
		double s = b[i];
		for (int64_t j = 0; j < i; j++) s -= L[i * n + j] * b[j];
		b[i] = s / L[i * n + i];
	}
}

static void solve_upper(int64_t n, const double *L, double *b)              /* b = L'^-1 b */
{
	for (int64_t i = n - 1; i >= 0; i--) {
		b[i] /= L[i * n + i];
		for (int64_t j = 0; j < i; j++) b[j] -= L[i * n + j] * b[i];
	}
}

static void times_lower(int64_t n, const double *L, double *b)              /* b = L b */
{
	for (int64_t i = n - 1; i >= 0; i--) {
		double s = 0;
		for (int64_t j = 0; j <= i; j++) s += L[i * n + j] * b[j];
		b[i] = s;
	}
}

static void times_upper(int64_t n, const double *L, const double *b, double *out)   /* out = L' b */
{
	memset(out, 0, (size_t)n * sizeof *out);
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j <= i; j++) out[j] += L[i * n + j] * b[i];
}

/* ---- the features --------------------------------------------------------------------------------------------------------- */

struct grams { struct nr_logistic_data *d; void *scratch; };

static void make_part(void *context, int64_t first, int64_t rows, void *part)
{
	const struct grams *g = context;
	const real *x = g->d->x + first * g->d->width;
	const struct nr_gemm product = backward_of(rows, g->d->width, g->d->width, x, x, part);
	nr_gemm_run(&product, g->scratch);
}

static void add_part(void *context, const void *part)
{
	struct nr_logistic_data *d = ((struct grams *)context)->d;
	const real *p = part;
	for (int64_t i = 0; i < d->width * d->width; i++) d->gram[i] += (double)p[i] / (double)d->rows;
}

static int make_gram(struct nr_logistic_data *d, struct nr_error *err)
{
	const int64_t C = d->width;
	const size_t bytes = (size_t)(C * C) * sizeof(real);
	struct grams g = { d, scratch_for(d->rows, C, C) };
	char *room = malloc(bytes * room_for(d->comm));
	int code = g.scratch && room ? NR_OK : out_of_memory(err);
	if (!code) code = each_block(d->comm, d->rows, bytes, room, make_part, add_part, &g, err);
	free(g.scratch);
	free(room);
	return code;
}

/* z = L^-1 x in double, by the columns of L^-1 so that the sums run side by side. */
static int make_z(struct nr_logistic_data *d, struct nr_error *err)
{
	const int64_t C = d->width;
	double *inverse = calloc((size_t)(C * C), sizeof *inverse);                     /* row j: column j of L^-1 */
	double *wide = malloc((size_t)(nr_chunks(d->rows) * C) * sizeof *wide);
	if (!inverse || !wide) {
		free(inverse);
		free(wide);
		return out_of_memory(err);
	}
#pragma omp parallel for schedule(dynamic, 8)
	for (int64_t j = 0; j < C; j++) {
		inverse[j * C + j] = 1;
		solve_lower(C, d->root, inverse + j * C);
	}
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < nr_chunks(d->rows); q++) {
		double *row = wide + q * C;
		for (int64_t i = q * NR_CHUNK; i < nr_min64(d->rows, (q + 1) * NR_CHUNK); i++) {
			memset(row, 0, (size_t)C * sizeof *row);
			for (int64_t j = 0; j < C; j++) {
				const double x = (double)d->x[i * C + j], *column = inverse + j * C;
				for (int64_t k = j; k < C; k++) row[k] += column[k] * x;
			}
			for (int64_t k = 0; k < C; k++) d->z[i * C + k] = (real)row[k];
		}
	}
	free(inverse);
	free(wide);
	return NR_OK;
}

int nr_logistic_data_init(struct nr_logistic_data *d, int64_t rows, int64_t width, const real *x, struct nr_comm *comm,
	struct nr_error *err)
{
	*d = (struct nr_logistic_data){ .rows = rows, .width = width, .x = x, .comm = comm };
	if (rows < 1 || width < 1) return nr_fail(err, NR_EVALUE, "cannot fit", "logistic regression", "no features");
	d->z = malloc((size_t)(rows * width) * sizeof *d->z);
	d->gram = calloc((size_t)(2 * width * width), sizeof *d->gram);
	int code = d->z && d->gram ? make_gram(d, err) : out_of_memory(err);
	if (!code) {
		double mean = 0;
		d->root = d->gram + width * width;
		for (int64_t i = 0; i < width; i++) mean += d->gram[i * width + i] / (double)width;
		/* directions that hardly vary are not blown up: the features are floats */
		if (factorise(width, 1, d->gram, 1e-6 * mean, d->root))
			code = nr_fail(err, NR_EDIVERGED, "cannot fit", "logistic regression", "a feature is not finite");
	}
	if (!code) code = make_z(d, err);
	if (code) nr_logistic_data_release(d);
	return code;
}

void nr_logistic_data_release(struct nr_logistic_data *d)
{
	free(d->z);
	free(d->gram);
	*d = (struct nr_logistic_data){ 0 };
}

/* ---- the loss ------------------------------------------------------------------------------------------------------------- */

struct work {
	const struct nr_logistic *o;
	int64_t rows, C, K, counted;        /* counted: rows with a label */
	real *weight, *bias;                /* (K,C) for z, (K) */
	real *logits, *d, *loss;            /* (BLOCK,K) twice, (BLOCK) */
	char *room;                         /* for what blocks make: struct part, then the gradients of weight and bias */
	size_t bytes;                       /* of one */
	double mean, *gradient;             /* loss and gradient of the evaluation at hand */
	struct nr_error err;                /* of another rank that does not answer */
	void *scratch;
	double *wide;                       /* (K,C): the weights for z */
	double *factor;                     /* (C,C): of the preconditioner */
	double spread;                      /* mean of p (1 - p) where it was last asked for */
	bool measure;                       /* ask for it */
};

/* Sum of p (1 - p) over a block, where d = (p - [label]) / counted. */
static double block_spread(const struct work *w, int64_t rows, const int32_t *label)
{
	double sum = 0;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = 0; label[i] >= 0 && k < w->K; k++) {
			const double p = (double)w->d[i * w->K + k] * (double)w->counted + (k == label[i]);
			sum += p * (1 - p);
		}
	return sum;
}

/* What a block makes: sums of its losses and of p (1 - p), and the gradient by the weights for z. */
struct part { double loss, spread; };

static void make_block(void *context, int64_t first, int64_t rows, void *out)
{
	struct work *w = context;
	struct part *part = out;
	const int64_t C = w->C, K = w->K;
	real *dweight = (real *)(void *)(part + 1), *dbias = dweight + K * C;
	const real *z = w->o->data->z + first * C;
	const int32_t *label = w->o->label + first;
	const struct nr_gemm up = forward_of(rows, C, K, z, w->weight, w->bias, w->logits);
	const struct nr_gemm down = backward_of(rows, C, K, z, w->d, dweight);
	*part = (struct part){ 0 };
	nr_gemm_run(&up, w->scratch);
	nr_xent_labels(rows, K, w->logits, K, label, -1, 0, (real)(1 / (double)w->counted), w->loss, w->d, K, 0);
	nr_gemm_run(&down, w->scratch);
	memset(dbias, 0, (size_t)K * sizeof *dbias);
	nr_row_active->col_sum(rows, K, w->d, K, dbias);
	for (int64_t i = 0; i < rows; i++) part->loss += w->loss[i];
	if (w->measure) part->spread = block_spread(w, rows, label);
}

static void add_block(void *context, const void *made)
{
	struct work *w = context;
	const struct part *part = made;
	const int64_t C = w->C, K = w->K;
	const real *dweight = (const real *)(const void *)(part + 1), *dbias = dweight + K * C;
	for (int64_t k = 0; k < K; k++) {
		for (int64_t c = 0; c < C; c++) w->gradient[k * (C + 1) + c] += dweight[k * C + c];
		w->gradient[k * (C + 1) + C] += dbias[k];
	}
	w->mean += part->loss / (double)w->counted;
	if (w->measure) w->spread += part->spread / (double)(w->counted * K);
}

/* With W x = (W L) z the gradient by W is that by W L, times L'. */
static double value(void *context, const double *x, double *gradient)
{
	struct work *w = context;
	const int64_t C = w->C, K = w->K;
	const double *root = w->o->data->root;
#pragma omp parallel for schedule(static) if (C * C * K > 20000)
	for (int64_t k = 0; k < K; k++) {
		times_upper(C, root, x + k * (C + 1), w->wide + k * C);
		for (int64_t c = 0; c < C; c++) w->weight[k * C + c] = (real)w->wide[k * C + c];
		w->bias[k] = (real)x[k * (C + 1) + C];
	}
	memset(gradient, 0, (size_t)(K * (C + 1)) * sizeof *gradient);
	w->mean = 0;
	w->gradient = gradient;
	if (w->err.code || each_block(w->o->data->comm, w->rows, w->bytes, w->room, make_block, add_block, w, &w->err))
		return 0;                               /* without a gradient: the end */
	double loss = w->mean;
#pragma omp parallel for schedule(static) if (C * C * K > 20000)
	for (int64_t k = 0; k < K; k++) times_lower(C, root, gradient + k * (C + 1));
	for (int64_t k = 0; k < K; k++)
		for (int64_t c = 0; c < C; c++) {
			const double v = x[k * (C + 1) + c];
			loss += w->o->l2 / 2 * v * v;
			gradient[k * (C + 1) + c] += w->o->l2 * v;
		}
	return loss;
}

static void precondition(void *context, double *v)
{
	const struct work *w = context;
	const int64_t C = w->C;
#pragma omp parallel for schedule(static) if (C * C * w->K > 20000)
	for (int64_t k = 0; k < w->K; k++) {
		double *b = v + k * (C + 1);
		solve_lower(C, w->factor, b);
		solve_upper(C, w->factor, b);
		b[C] /= w->spread;                      /* the bias reads a constant of 1 */
	}
}

/* ---- a fit ---------------------------------------------------------------------------------------------------------------- */

/* What is wrong with the labels, if anything. */
static int check(struct work *w, struct nr_error *err)
{
	const struct nr_logistic *o = w->o;
	for (int64_t i = 0; i < w->rows; i++) {
		if (o->label[i] < -1 || o->label[i] >= o->classes)
			return nr_fail(err, NR_EVALUE, "cannot fit", "logistic regression",
				"row %lld has label %d, but there are %lld classes",
				(long long)i, o->label[i], (long long)o->classes);
		w->counted += o->label[i] >= 0;
	}
	return w->counted ? NR_OK : nr_fail(err, NR_EVALUE, "cannot fit", "logistic regression", "no row has a label");
}

static int prepare(struct work *w, struct nr_error *err)
{
	const int64_t C = w->C, K = w->K, B = nr_min64(BLOCK, w->rows);
	w->weight = malloc((size_t)(K * (C + 1) + B * (2 * K + 1)) * sizeof(real));
	w->bytes = (sizeof(struct part) + (size_t)(K * (C + 1)) * sizeof(real) + 15) / 16 * 16;
	w->room = calloc(room_for(w->o->data->comm), w->bytes);
	w->factor = malloc((size_t)(C * C) * sizeof *w->factor);
	w->wide = malloc((size_t)(K * (C + 1)) * sizeof *w->wide);
	w->scratch = scratch_for(w->rows, C, K);
	if (!w->weight || !w->room || !w->factor || !w->wide || !w->scratch) return out_of_memory(err);
	w->bias = w->weight + K * C;
	w->logits = w->bias + K;
	w->d = w->logits + B * K;
	w->loss = w->d + B * K;
	return NR_OK;
}

/* The spread at the start, from one evaluation; then the factor. */
static int make_factor(struct work *w, const double *weight, struct nr_error *err)
{
	double *gradient = malloc((size_t)(w->K * (w->C + 1)) * sizeof *gradient);
	if (!gradient) return out_of_memory(err);
	w->measure = true;
	value(w, weight, gradient);
	w->measure = false;
	free(gradient);
	w->spread = fmax(w->spread, 1e-6);
	if (!factorise(w->C, w->spread, w->o->data->gram, w->o->l2, w->factor)) return NR_OK;
	return nr_fail(err, NR_EDIVERGED, "cannot fit", "logistic regression", "a feature is not finite");
}

int nr_logistic_fit(const struct nr_logistic *o, double *weight, struct nr_logistic_result *r, struct nr_error *err)
{
	struct work w = { .o = o, .rows = o->data->rows, .C = o->data->width, .K = o->classes };
	struct nr_lbfgs_result found = { 0 };
	const struct nr_lbfgs problem = { .n = w.K * (w.C + 1), .iterations = o->iterations, .tolerance = o->tolerance,
		.noise = sizeof(real) == 4 ? 1e-8 : 1e-15, .value = value, .precondition = precondition, .context = &w };
	int code = check(&w, err);
	if (!code) code = prepare(&w, err);
	if (!code) code = make_factor(&w, weight, err);
	if (!code) code = nr_lbfgs_run(&problem, weight, &found, err);
	if (w.err.code) *err = w.err, code = w.err.code;
	*r = (struct nr_logistic_result){ found.value, found.gradient, found.iterations, found.evaluations, found.converged };
	free(w.weight);
	free(w.room);
	free(w.factor);
	free(w.wide);
	free(w.scratch);
	return code;
}

int nr_logistic_scores(int64_t rows, int64_t width, int64_t classes, const real *x, const double *weight, real *scores,
	struct nr_error *err)
{
	real *w = malloc((size_t)(classes * (width + 1)) * sizeof *w), *bias = w ? w + classes * width : NULL;
	void *scratch = scratch_for(rows, width, classes);
	int code = w && scratch ? NR_OK : out_of_memory(err);
	for (int64_t k = 0; !code && k < classes; k++) {
		for (int64_t c = 0; c < width; c++) w[k * width + c] = (real)weight[k * (width + 1) + c];
		bias[k] = (real)weight[k * (width + 1) + width];
	}
	for (int64_t first = 0; !code && first < rows; first += BLOCK) {
		const int64_t n = nr_min64(BLOCK, rows - first);
		const struct nr_gemm g = forward_of(n, width, classes, x + first * width, w, bias, scores + first * classes);
		nr_gemm_run(&g, scratch);
	}
	free(w);
	free(scratch);
	return code;
}
