/* The ViT's training step written by hand: the same kernels in a fixed order on buffers of its own, no graph, no plan.
 * It is what the replayed plan is held against (`norma bench loop`): equal gradients, and a time within 3 %. */
#include "hand.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "math/attention.h"
#include "math/gemm.h"
#include "math/patch.h"
#include "math/row.h"
#include "math/softmax.h"

enum { MLP = 4, MAX_BLOCKS = 64 };

struct param { real *w, *g; };                  /* value, gradient */
struct linear { struct param weight, bias; int64_t in, out; };
struct norm { struct param weight, bias; real *mean, *rstd; };

struct block {
	struct norm norm1, norm2;
	struct linear qkv, proj, fc1, fc2;
	real *x, *y1, *qkv_out, *att, *lse;     /* (M,C) input; (M,C) (M,3C) (M,C) (B,H,T) */
	real *mid, *y2, *pre, *act;             /* (M,C) after attention; (M,C) (M,4C) (M,4C) */
};

struct hand {
	struct bench_size s;
	int64_t B, N, T, C, M, H;               /* M = B T rows */
	struct linear embed, head;
	struct param cls, pos;
	struct norm norm;
	struct block block[MAX_BLOCKS];
	real *image, *patches, *tokens;         /* tokens: (B,N,C) before the class token joins them */
	real *last, *out, *branch;              /* (M,C): end of the stack, its norm, what a branch adds */
	real *first, *logits, *row_loss;        /* (B,C) (B,classes) (B) */
	real *dres, *dbranch, *dqkv, *dwide, *dlogits, *dfirst;
	int32_t *labels;
	void *scratch;
	real *sums;                             /* column sums, norm gradients */
	char *memory;                           /* one slab for all of it */
	size_t used, size;
	real *value, *grad, *m, *v;             /* parameters in the store's order */
	struct nr_segment *segment;
	int64_t segments, step;
	void *optim_scratch;
};

/* ---- kernels as a step calls them ---- */

static void linear_forward(struct hand *h, const struct linear *l, int64_t rows, const real *x, real *y, real *pre)
{
	nr_gemm_run(&(struct nr_gemm){ .m = rows,
			    .n = l->out,
			    .k = l->in,
			    .a = x,
			    .lda = l->in,
			    .b = l->weight.w,
			    .ldb = l->in,
			    .tb = 1,
			    .c = y,
			    .ldc = l->out,
			    .bias = l->bias.w,
			    .act = pre ? NR_ACT_GELU : NR_ACT_NONE,
			    .pre = pre,
			    .ldpre = l->out },
		h->scratch);
}

static void linear_products(
	struct hand *h, const struct linear *l, int64_t rows, const real *x, const real *dy, real *dx)
{
	if (dx)
		nr_gemm_run(&(struct nr_gemm){ .m = rows,
				    .n = l->in,
				    .k = l->out,
				    .a = dy,
				    .lda = l->out,
				    .b = l->weight.w,
				    .ldb = l->in,
				    .c = dx,
				    .ldc = l->in },
			h->scratch);
	nr_gemm_run(&(struct nr_gemm){ .m = l->out,
			    .n = l->in,
			    .k = rows,
			    .a = dy,
			    .lda = l->out,
			    .ta = 1,
			    .b = x,
			    .ldb = l->in,
			    .c = l->weight.g,
			    .ldc = l->in },
		h->scratch);
}

static void linear_backward(
	struct hand *h, const struct linear *l, int64_t rows, const real *x, const real *dy, real *dx)
{
	linear_products(h, l, rows, x, dy, dx);
	nr_col_sum(rows, l->out, dy, l->out, l->bias.g, 0, h->sums);
}

static void norm_forward(struct hand *h, const struct norm *n, const real *x, real *y)
{
	nr_layer_forward(h->M, h->C, x, h->C, n->weight.w, n->bias.w, (real)1e-6, y, h->C, n->mean, n->rstd);
}

/* sum = x + branch, y = norm(sum) */
static void add_norm_forward(struct hand *h, const struct norm *n, const real *x, real *sum, real *y)
{
	nr_add_layer_forward(h->M, h->C, x, h->C, h->branch, h->C, n->weight.w, n->bias.w, (real)1e-6, sum, h->C, y,
		h->C, n->mean, n->rstd);
}

/* dres (+)= the gradient through the norm of x */
static void norm_backward(struct hand *h, const struct norm *n, const real *x, const real *dy, unsigned add)
{
	nr_layer_backward(h->M, h->C, x, h->C, dy, h->C, n->weight.w, n->mean, n->rstd, h->dres, h->C, n->weight.g,
		n->bias.g, add, h->sums);
}

static struct nr_attention attention(struct hand *h, const struct block *k)
{
	struct nr_attention a = nr_attention_packed(h->B, h->T, h->H, h->C / h->H, k->qkv_out, k->att);
	a.lse = k->lse;
	a.scratch = h->scratch;
	a.threads = omp_get_max_threads();
	return a;
}

/* ---- the step ---- */

static void embed_forward(struct hand *h)
{
	const struct bench_size *s = &h->s;
	real *x = h->block[0].x;
	nr_patch_split(
		h->B, s->channels, s->image, s->image, s->patch, NR_PATCH_CHANNEL_ROW_COL, h->image, h->patches, 0);
	linear_forward(h, &h->embed, h->B * h->N, h->patches, h->tokens, NULL);
#pragma omp parallel for schedule(static)
	for (int64_t b = 0; b < h->B; b++) {
		real *to = x + b * h->T * h->C;
		nr_row_add(h->C, h->cls.w, h->pos.w, to);
		nr_row_add(h->N * h->C, h->tokens + b * h->N * h->C, h->pos.w + h->C, to + h->C);
	}
}

static void embed_backward(struct hand *h)
{
#pragma omp parallel for schedule(static)
	for (int64_t t = 0; t < h->T; t++) {
		real *pos = h->pos.g + t * h->C;
		for (int64_t b = 0; b < h->B; b++) {
			const real *d = h->dres + (b * h->T + t) * h->C;
			nr_row_put(h->C, d, pos, b > 0);
			if (t) nr_row_put(h->C, d, h->tokens + (b * h->N + t - 1) * h->C, 0);
		}
	}
	nr_row_put(h->C, h->pos.g, h->cls.g, 0);
	linear_backward(h, &h->embed, h->B * h->N, h->patches, h->tokens, NULL);
}

/* The norm before the attention of block i also ends block i - 1. */
static void block_forward(struct hand *h, int64_t i)
{
	struct block *k = &h->block[i];
	if (i == 0) norm_forward(h, &k->norm1, k->x, k->y1);
	else add_norm_forward(h, &k->norm1, h->block[i - 1].mid, k->x, k->y1);
	linear_forward(h, &k->qkv, h->M, k->y1, k->qkv_out, NULL);
	const struct nr_attention a = attention(h, k);
	nr_attention_forward(&a);
	linear_forward(h, &k->proj, h->M, k->att, h->branch, NULL);
	add_norm_forward(h, &k->norm2, k->x, k->mid, k->y2);
	linear_forward(h, &k->fc1, h->M, k->y2, k->act, k->pre);
	linear_forward(h, &k->fc2, h->M, k->act, h->branch, NULL);
}

static void block_backward(struct hand *h, int64_t i)
{
	struct block *k = &h->block[i];
	linear_backward(h, &k->fc2, h->M, k->act, h->dres, h->dwide);
	nr_act_bias_backward(NR_ACT_GELU, h->M, k->fc1.out, k->pre, k->fc1.out, h->dwide, k->fc1.out, h->dwide,
		k->fc1.out, k->fc1.bias.g, 0, h->sums);
	linear_products(h, &k->fc1, h->M, k->y2, h->dwide, h->dbranch);
	norm_backward(h, &k->norm2, k->mid, h->dbranch, NR_ADD_X);
	linear_backward(h, &k->proj, h->M, k->att, h->dres, h->dbranch);
	struct nr_attention a = attention(h, k);
	nr_attention_packed_grad(&a, h->dbranch, h->dqkv);
	nr_attention_backward(&a);
	linear_backward(h, &k->qkv, h->M, k->y1, h->dqkv, h->dbranch);
	norm_backward(h, &k->norm1, k->x, h->dbranch, NR_ADD_X);
}

static void head_step(struct hand *h)
{
	const int64_t C = h->C, classes = h->s.classes;
	const real share = 1 / (real)h->B;
	add_norm_forward(h, &h->norm, h->block[h->s.depth - 1].mid, h->last, h->out);
	for (int64_t b = 0; b < h->B; b++) nr_row_put(C, h->out + b * h->T * C, h->first + b * C, 0);
	linear_forward(h, &h->head, h->B, h->first, h->logits, NULL);
	nr_xent_labels(h->B, classes, h->logits, classes, h->labels, -1, 0, share, h->row_loss, h->dlogits, classes, 0);
	linear_backward(h, &h->head, h->B, h->first, h->dlogits, h->dfirst);
	nr_array_fill(h->M * C, 0, h->dbranch);
	for (int64_t b = 0; b < h->B; b++) nr_row_put(C, h->dfirst + b * C, h->dbranch + b * h->T * C, 0);
	norm_backward(h, &h->norm, h->last, h->dbranch, 0);
}

void hand_step(struct hand *h)
{
	embed_forward(h);
	for (int64_t i = 0; i < h->s.depth; i++) block_forward(h, i);
	head_step(h);
	for (int64_t i = h->s.depth - 1; i >= 0; i--) block_backward(h, i);
	embed_backward(h);
}

void hand_update(struct hand *h, const struct nr_optim *o)
{
	const struct nr_rates rates = { o->lr, o->weight_decay };
	nr_optim_step(o, &rates, ++h->step, h->segment, h->segments, h->optim_scratch, NULL);
}

double hand_loss(const struct hand *h)
{
	double sum = 0;
	for (int64_t b = 0; b < h->B; b++) sum += (double)h->row_loss[b];
	return sum / (double)h->B;
}

/* Does every gradient have the bits of the plan's? */
bool hand_same_gradients(const struct hand *h, const struct bench *b)
{
	int64_t n;
	const real *g = nr_store_grads(b->store, &n);
	return !memcmp(g, h->grad, (size_t)n * sizeof(real));
}

/* ---- memory: sizes first, then the same walk with addresses ---- */

static void *take(struct hand *h, int64_t values)
{
	void *p = h->memory ? h->memory + h->used : NULL;
	h->used += ((size_t)values * sizeof(real) + 63) / 64 * 64;
	return p;
}

static void layout(struct hand *h, int64_t params)
{
	const int64_t M = h->M, C = h->C, classes = h->s.classes, wide = MLP * C;
	real **slab[] = { &h->value, &h->grad, &h->m, &h->v };
	for (int i = 0; i < 4; i++) *slab[i] = take(h, params);
	h->image = take(h, h->B * h->s.channels * h->s.image * h->s.image);
	h->patches = take(h, h->B * h->N * h->s.channels * h->s.patch * h->s.patch);
	h->tokens = take(h, h->B * h->N * C);
	h->norm.mean = take(h, M), h->norm.rstd = take(h, M);
	for (int64_t i = 0; i < h->s.depth; i++) {
		struct block *k = &h->block[i];
		k->norm1.mean = take(h, M), k->norm1.rstd = take(h, M), k->norm2.mean = take(h, M),
		k->norm2.rstd = take(h, M);
		k->x = take(h, M * C), k->y1 = take(h, M * C), k->qkv_out = take(h, 3 * M * C), k->att = take(h, M * C);
		k->lse = take(h, h->H * M);
		k->mid = take(h, M * C), k->y2 = take(h, M * C), k->pre = take(h, M * wide), k->act = take(h, M * wide);
	}
	h->last = take(h, M * C), h->out = take(h, M * C), h->branch = take(h, M * C);
	h->first = take(h, h->B * C), h->logits = take(h, h->B * classes), h->row_loss = take(h, h->B);
	h->dres = take(h, M * C), h->dbranch = take(h, M * C), h->dqkv = take(h, 3 * M * C),
	h->dwide = take(h, M * wide);
	h->dlogits = take(h, h->B * classes), h->dfirst = take(h, h->B * C);
	h->labels = take(h, h->B);

	const int64_t pixels = h->s.channels * h->s.patch * h->s.patch;
	const int64_t shape[][3] = { { M, C, C }, { M, C, 3 * C }, { M, C, wide }, { M, wide, C },
		{ h->B * h->N, pixels, C }, { h->B, C, classes } };
	size_t most = 0;
	for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
		const int64_t m = shape[i][0], in = shape[i][1], out = shape[i][2];
		const size_t need[] = { nr_gemm_scratch(m, out, in, 0, 1), nr_gemm_scratch(m, in, out, 0, 0),
			nr_gemm_scratch(out, in, m, 1, 0) };
		for (int j = 0; j < 3; j++) most = need[j] > most ? need[j] : most;
	}
	const struct nr_attention a = nr_attention_packed(h->B, h->T, h->H, C / h->H, NULL, NULL);
	const size_t att = nr_attention_scratch(&a, omp_get_max_threads());
	h->scratch = take(h, (int64_t)((att > most ? att : most) / sizeof(real)) + 1);
	h->sums = take(h, (int64_t)nr_col_sum_scratch(M, wide) + (int64_t)nr_norm_scratch(M, C));
}

/* ---- parameters by name ---- */

static struct param param(
	struct hand *h, const struct nr_store *store, const char *scope, const char *name, const char *what)
{
	char full[128];
	snprintf(full, sizeof full, "%s%s%s", scope, name, what);
	const struct nr_entry *e = nr_store_find(store, full);
	return (struct param){ h->value + e->offset, h->grad + e->offset };
}

static struct linear linear(
	struct hand *h, const struct nr_store *s, const char *scope, const char *name, int64_t in, int64_t out)
{
	return (struct linear){ param(h, s, scope, name, ".weight"), param(h, s, scope, name, ".bias"), in, out };
}

static void name_norm(struct hand *h, const struct nr_store *s, struct norm *n, const char *scope, const char *name)
{
	n->weight = param(h, s, scope, name, ".weight");
	n->bias = param(h, s, scope, name, ".bias");
}

static void name_params(struct hand *h, const struct nr_store *s)
{
	const int64_t C = h->C;
	h->cls = param(h, s, "", "cls_token", "");
	h->pos = param(h, s, "", "pos_embed", "");
	h->embed = linear(h, s, "", "patch_embed.proj", h->s.channels * h->s.patch * h->s.patch, C);
	h->head = linear(h, s, "", "head", C, h->s.classes);
	name_norm(h, s, &h->norm, "", "final");
	for (int64_t i = 0; i < h->s.depth; i++) {
		struct block *k = &h->block[i];
		char scope[32];
		snprintf(scope, sizeof scope, "blocks.%d.", (int)i);
		name_norm(h, s, &k->norm1, scope, "attn.in");
		name_norm(h, s, &k->norm2, scope, "mlp.in");
		k->qkv = linear(h, s, scope, "attn.qkv", C, 3 * C);
		k->proj = linear(h, s, scope, "attn.proj", C, C);
		k->fc1 = linear(h, s, scope, "mlp.fc1", C, MLP * C);
		k->fc2 = linear(h, s, scope, "mlp.fc2", MLP * C, C);
	}
}

/* Starts from the values and inputs of b, with moments at zero. */
int hand_open(struct hand **out, const struct bench *b, struct nr_error *err)
{
	const struct bench_size *s = b->target.size;
	struct hand *h = calloc(1, sizeof *h);
	*out = h;
	int64_t params;
	const real *value = nr_store_values(b->store, &params);
	if (!h || s->depth > MAX_BLOCKS)
		return nr_fail(err, NR_ELIMIT, "cannot open the hand-written loop", b->target.of->name, NULL);
	h->s = *s;
	h->B = s->batch, h->N = bench_patches(s), h->T = h->N + 1, h->C = s->dim, h->H = s->heads, h->M = h->B * h->T;
	layout(h, params);
	h->size = h->used;
	h->memory = nr_slab_make(h->size);
	h->segment = calloc((size_t)b->params.count + 1, sizeof *h->segment);
	h->optim_scratch = malloc(nr_optim_scratch(&b->optim, b->params.segment, b->params.count) + 1);
	if (!h->memory || !h->segment || !h->optim_scratch)
		return nr_fail(err, NR_EMEMORY, "cannot open the hand-written loop", NULL, "out of memory");
	h->used = 0;
	layout(h, params);
	memcpy(h->value, value, (size_t)params * sizeof(real));
	memcpy(h->image, nr_plan_data(b->plan, b->in.image), (size_t)nr_len(b->in.image) * sizeof(real));
	memcpy(h->labels, nr_plan_data(b->plan, b->in.labels), (size_t)h->B * sizeof(int32_t));
	name_params(h, b->store);
	for (int64_t i = 0; i < b->params.count; i++) {
		const int64_t at = b->params.segment[i].value - value;
		h->segment[h->segments] = b->params.segment[i];
		h->segment[h->segments].value = h->value + at;
		h->segment[h->segments].grad = h->grad + at;
		h->segment[h->segments].m = h->m + at;
		h->segment[h->segments++].v = h->v + at;
	}
	return NR_OK;
}

void hand_close(struct hand *h)
{
	if (!h) return;
	if (h->memory) nr_slab_free(h->memory, h->size);
	free(h->segment);
	free(h->optim_scratch);
	free(h);
}
