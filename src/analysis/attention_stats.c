/* Statistics of attention. See attention_stats.h. A unit is one head of one sample; units are added in order. */
#include "analysis/attention_stats.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "chem/molgraph.h"
#include "math/row.h"
#include "nn/sparse.h"

static const double left_out = -1e29;           /* scores below it: attention does not count them, as in math/attention.h */

/* Logits of query i to the first n keys; returns the largest. */
static double logits_of(const struct nr_attention_shape *s, int64_t n, const real *qkv, const real *bias, int64_t i, double *out)
{
	const int64_t width = s->H * s->d;
	const double scale = 1 / sqrt((double)s->d);
	double top = -INFINITY;
	for (int64_t j = 0; j < n; j++) {
		out[j] = scale * (double)nr_dot(s->d, qkv + i * 3 * width, qkv + j * 3 * width + width);
		if (bias) out[j] += (double)bias[i * s->T + j];
		top = fmax(top, out[j]);
	}
	return top;
}

/* How far two tokens are from each other: on a grid of rows of w, or in bonds. */
struct distances { int64_t w, N; const int32_t *steps; };

static double distance_of(const struct distances *d, int64_t i, int64_t j)
{
	if (!d->steps) return hypot((double)(i / d->w - j / d->w), (double)(i % d->w - j % d->w));
	const int32_t steps = d->steps[i * d->N + j];
	return steps > 0 && steps <= NR_PATH_UNREACHABLE ? steps - 1 : (double)NAN;
}

struct looking {                                /* one head of one sample */
	const struct nr_attention_shape *s;
	const struct distances *far;            /* NULL: none */
	int64_t patches, pairs;                 /* patch tokens; pairs seen so far */
	struct nr_head_sums u;
	double *logit;                          /* (T) */
	int32_t *times, *once;                  /* sparse: (T) how often a key counts, 0 between rows; (T) the row's keys */
};

/* Token i has seen n keys, whose logits are in `logit`, the largest of them top; the j-th of them is key[j], or j itself. */
static void add_row(struct looking *w, int64_t i, int64_t n, const int32_t *key, double top)
{
	const int64_t S = w->s->special;
	double sum = 0, dot = 0, apart = 0, near = 0, placed = 0;
	for (int64_t j = 0; j < n; j++) {
		const double logit = w->logit[j];
		const int64_t at = key ? key[j] : j;
		if (logit < left_out) continue;
		w->pairs++;
		w->u.logit_square += logit * logit;
		w->u.logit_max = fmax(w->u.logit_max, fabs(logit));
		const double many = key && at < w->s->T ? w->times[at] : 1, part = logit + log(many) - top, e = exp(part);
		sum += e;
		dot += e * part;
		if (at < S) continue;
		near += e;
		const double distance = w->far && i >= S && at < w->s->T ? distance_of(w->far, i - S, at - S) : (double)NAN;
		if (!isnan(distance)) apart += e * distance, placed += e;
	}
	const double entropy = log(sum) - dot / sum;
	if (i < S) {
		if (!i && w->s->cls) w->u.cls_entropy = entropy;
		return;
	}
	const double share = 1 / (double)w->patches;
	w->u.entropy += entropy * share;
	w->u.on_special += (1 - near / sum) * share;
	w->u.distance += placed > 0 ? apart / placed * share : 0;
	if (key) w->u.most_entropy += log((double)n) * share;
}

/* One head of one sample of n tokens: qkv at its queries, bias its own (T,T). */
static void look(struct looking *w, int64_t n, const real *qkv, const real *bias)
{
	w->patches = n - w->s->special;
	w->u = (struct nr_head_sums){ .samples = 1, .most_entropy = log((double)n) };
	for (int64_t i = 0; i < n; i++) add_row(w, i, n, NULL, logits_of(w->s, n, qkv, bias, i, w->logit));
	w->u.logit_square /= (double)w->pairs;
}

static void add(struct nr_head_sums *to, const struct nr_head_sums *u)
{
	to->distance += u->distance;
	to->entropy += u->entropy;
	to->cls_entropy += u->cls_entropy;
	to->on_special += u->on_special;
	to->logit_square += u->logit_square;
	to->logit_max = fmax(to->logit_max, u->logit_max);
	to->most_entropy += u->most_entropy;
	to->samples += u->samples;
}

/* Where the tokens stand on a grid, or in a graph. */
static bool placed(const struct nr_attention_shape *s, const int32_t *steps) { return steps || s->h * s->w == s->T - s->special; }

int nr_attention_stats(const struct nr_attention_shape *s, const struct nr_attention_batch *b, struct nr_head_sums *sum,
	struct nr_error *err)
{
	const int64_t B = b->B, N = s->T - s->special;
	struct nr_head_sums *part = malloc((size_t)(B * s->H) * sizeof *part);
	double *row = malloc((size_t)(B * s->H * s->T) * sizeof *row);
	const bool whole = part && row;
#pragma omp parallel for schedule(dynamic, 1)
	for (int64_t k = 0; k < (whole ? B * s->H : 0); k++) {
		const int64_t i = k / s->H, h = k % s->H, square = s->T * s->T;
		const struct distances far = { s->w, N, b->steps ? b->steps + i * N * N : NULL };
		const real *bias = b->bias ? b->bias + (b->biases ? k : h) * square : NULL;
		struct looking w = { .s = s, .far = placed(s, b->steps) ? &far : NULL, .logit = row + k * s->T };
		look(&w, b->nodes ? s->special + b->nodes[i] : s->T, b->qkv + i * s->T * 3 * s->H * s->d + h * s->d, bias);
		part[k] = w.u;
	}
	for (int64_t k = 0; whole && k < B * s->H; k++) add(&sum[k % s->H], &part[k]);
	free(part);
	free(row);
	return whole ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot measure attention", NULL, "out of memory");
}

/* ---- sparse ------------------------------------------------------------------------------------------------------------------ */

/* Rows of zeros stay as they are: nobody can tell them from each other, and they have no place. */
static void sparse_row(void *context, const struct nr_sparse_head *head, int64_t i, int64_t n, const int32_t *key)
{
	struct looking *w = context;
	int64_t keys = 0;
	double top = -INFINITY;
	for (int64_t j = 0; j < n; j++)
		if (key[j] >= head->tokens || !w->times[key[j]]++) w->once[keys++] = key[j];
	for (int64_t j = 0; j < keys; j++) {
		const int64_t t = w->once[j];
		w->logit[j] = t >= head->tokens ? 0 : head->scale * (head->norm ? (double)head->norm[t] : 1) *
			(double)nr_dot(head->d, head->q + i * head->width, head->k + t * head->width);
		top = fmax(top, w->logit[j]);
	}
	if (keys) add_row(w, i, keys, w->once, top);
	for (int64_t j = 0; j < keys; j++)
		if (w->once[j] < head->tokens) w->times[w->once[j]] = 0;
}

/* What threads write: of the op, and their own rows. Starts with zeros. */
struct room { void *stash, *scratch; char *rows; size_t each; int64_t keys; int threads; };

static bool room_make(struct room *r, const struct nr_node *k, int64_t T)
{
	*r = (struct room){ .keys = nr_sparse_keys(k), .threads = omp_get_max_threads() };
	r->each = (size_t)r->keys * sizeof(double) + (size_t)(T + 2 * r->keys + 1) / 2 * 2 * sizeof(int32_t);
	r->rows = calloc((size_t)r->threads, r->each);
	r->stash = malloc(k->stash + 1);
	return r->rows && r->stash && !posix_memalign(&r->scratch, 64, k->scratch + 1);
}

static void room_free(struct room *r)
{
	free(r->stash);
	free(r->scratch);
	free(r->rows);
}

static struct nr_head_sums look_sparsely(const struct nr_attention_shape *s, const struct nr_call *call, int64_t unit, const struct room *r)
{
	const struct distances far = { s->w, s->T - s->special, NULL };
	double *logit = (double *)(r->rows + r->each * (size_t)omp_get_thread_num());
	int32_t *times = (int32_t *)(logit + r->keys);
	struct looking w = { .s = s, .far = placed(s, NULL) ? &far : NULL, .logit = logit, .times = times, .once = times + s->T,
		.patches = s->T - s->special, .u.samples = 1 };
	nr_sparse_look(call, unit, times + s->T + r->keys, sparse_row, &w);
	w.u.logit_square /= (double)w.pairs;
	return w.u;
}

int nr_sparse_stats(const struct nr_attention_shape *s, const struct nr_node *k, void *const *x, int64_t B, struct nr_head_sums *sum,
	struct nr_error *err)
{
	const struct nr_exec evaluation = { .train = 0 };
	const int64_t width = nr_cols(k->in[0]), heads = B * s->H;
	struct nr_head_sums *part = malloc((size_t)heads * sizeof *part);
	struct room room;
	const bool whole = room_make(&room, k, s->T) && part;
	struct nr_call call = { .node = k, .ex = &evaluation, .stash = room.stash, .scratch = room.scratch };
	for (int i = 0; i < k->n_in; i++) call.x[i] = (struct nr_view){ .p = x[i], .dtype = k->in[i]->dtype };
	call.x[0].c = width, call.x[0].t = s->T, call.x[0].bs = s->T * width, call.x[0].rows = B * s->T;
#pragma omp parallel for schedule(dynamic, 1) num_threads(room.threads)
	for (int64_t u = 0; u < (whole ? heads : 0); u++) part[u] = look_sparsely(s, &call, u, &room);
	for (int64_t u = 0; whole && u < heads; u++) add(&sum[u % s->H], &part[u]);
	room_free(&room);
	free(part);
	return whole ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot measure attention", NULL, "out of memory");
}

void nr_attention_weights(const struct nr_attention_shape *s, const real *qkv, const real *bias, int64_t head, int64_t i, double *out)
{
	double sum = 0;
	const double top = logits_of(s, s->T, qkv + head * s->d, bias ? bias + head * s->T * s->T : NULL, i, out);
	for (int64_t j = 0; j < s->T; j++) sum += out[j] = exp(out[j] - top);
	for (int64_t j = 0; j < s->T; j++) out[j] /= sum;
}
