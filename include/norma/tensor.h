/* For building models: tensors are symbolic while a graph is recorded, a shape and a meaning without data. */
#ifndef NORMA_TENSOR_H
#define NORMA_TENSOR_H

#include <stddef.h>
#include <string.h>

#include "norma/err.h"

enum { NR_MAXD = 6, NR_MAXIN = 8, NR_MAXOUT = 3 };
enum nr_dtype { NR_REAL, NR_BF16, NR_I32, NR_U8 };
#define NR_END INT64_MAX                    /* "to the end" in nr_span */

typedef struct nr_tensor nr_t;

struct nr_shape { int32_t nd; int64_t d[NR_MAXD]; };
/* NR_SHAPE(B, T, C): the sizes of a tensor, as whole numbers of any type. */
#define NR_SHAPE(...)                                                                                                  \
	((struct nr_shape){ .nd = (int32_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), .d = { __VA_ARGS__ } })

struct nr_tokens {                          /* what the token axis means; immutable, shared */
	int32_t special;                    /* leading [CLS] / [VNode] / register tokens */
	int32_t h, w;                       /* grid of the others; 0 x 0 if they have none */
	int32_t heads;                      /* heads of the attention these tokens feed */
	nr_t *valid;                        /* (B) int32 lengths, special tokens counted; NULL when nothing is padded (a suffix) */
	int32_t unordered;                  /* 1: a set, such as the nodes of a graph: neither grid nor order */
	nr_t *pos;                          /* (B,T-special) int32 place on the grid when tokens are a subset (MAE); else NULL */
};

enum nr_tensor_flags {
	NR_PARAM = 1 << 0,                  /* trained, lives in the store */
	NR_BUFFER = 1 << 1,                 /* saved, not trained, lives in the store */
	NR_INPUT = 1 << 2,                  /* bound by the caller before a run */
	NR_GRAD = 1 << 3,                   /* an input whose gradient is asked for */
	NR_TAP = 1 << 4,                    /* value stays readable after the run */
	NR_WATCHED = 1 << 5,                /* nr_exec.after looks at all of it, even if the loss reads its first tokens only */
};

struct nr_tensor {
	enum nr_dtype dtype;
	int32_t nd;
	int64_t d[NR_MAXD];                 /* row-major, channels last */
	const struct nr_tokens *tok;
	struct nr_node *src;                /* NULL: input, parameter or buffer */
	struct nr_entry *entry;             /* of the store, for parameters and buffers */
	const char *name;
	uint32_t flags;
	int32_t id;                         /* place in the net's list */
};

/* What a kernel sees of a tensor: rows of c values; t rows per sample, samples bs values apart. */
struct nr_view {
	void *p;
	enum nr_dtype dtype;
	int64_t rows, c, t, bs;
};

static inline int64_t nr_len(const nr_t *x)
{
	int64_t n = 1;
	for (int i = 0; i < x->nd; i++) n *= x->d[i];
	return n;
}
static inline int64_t nr_cols(const nr_t *x) { return x->nd ? x->d[x->nd - 1] : 1; }
static inline int64_t nr_rows(const nr_t *x)
{
	int64_t n = 1;
	for (int i = 0; i + 1 < x->nd; i++) n *= x->d[i];
	return n;
}
/* Rows per sample: what lies between the batch axis and the channels. */
static inline int64_t nr_rows_per_sample(const nr_t *x) { return x->nd >= 3 && x->d[0] ? nr_rows(x) / x->d[0] : nr_rows(x); }
static inline struct nr_shape nr_shape_of(const nr_t *x)
{
	struct nr_shape s = { x->nd, { 0 } };
	memcpy(s.d, x->d, sizeof s.d);
	return s;
}
NR_API size_t nr_dtype_size(enum nr_dtype);
/* "8x197x192" into buf. */
NR_API const char *nr_shape_text(const nr_t *, char *buf, size_t size);

/* Are the rows of v next to each other, without gaps between samples? */
static inline int nr_packed(const struct nr_view *v) { return v->rows <= v->t || v->bs == v->t * v->c; }
static inline nr_real *nr_row(const struct nr_view *v, int64_t r)
{
	return (nr_real *)v->p + (nr_packed(v) ? r * v->c : r / v->t * v->bs + r % v->t * v->c);
}
static inline int32_t *nr_ints(const struct nr_view *v) { return (int32_t *)v->p; }

#endif
