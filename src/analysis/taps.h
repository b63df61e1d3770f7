/* A model recorded to be looked at: tokens after each block, what goes in and out of norms, queries and keys of attention. */
#ifndef NR_TAPS_H
#define NR_TAPS_H

#include "base/real.h"
#include "infer/molecule_batch.h"
#include "norma/infer.h"

enum { NR_TAPS_SITES = 1 << 0, NR_TAPS_ATTENTION = 1 << 1 };

struct nr_layer_tap {
	const char *name;                   /* "embed", "block0", ..., "final" */
	const nr_t *x;                      /* (B,T,C) */
	int64_t special;                    /* leading tokens that are no patch */
	bool cls;                           /* the first of them is the class token */
};
struct nr_site_tap { const char *name; const nr_t *before, *after; };
struct nr_attention_tap {
	const char *name;
	const nr_t *qkv, *bias;             /* (B,T,3C), or (B,T,2C) where queries are keys; (H,T,T), (B,H,T,T) or NULL */
	const struct nr_node *sparse;       /* its op if it is sparse (nn/sparse.h), or NULL */
	const nr_t *in[NR_MAXIN];           /* inputs of that */
};

struct nr_taps {
	struct nr_net *net;
	struct nr_plan *plan;
	nr_t *image, *ids, *valid, *pooled; /* image, or ids and valid */
	const struct nr_mol_view *graphs; /* NULL: none */
	struct nr_mol_inputs inputs;      /* of graphs */
	int32_t *nodes, *steps;             /* of the last batch of graphs: (B); (B,N,N) bonds between nodes + 1, as the model reads them */
	const struct nr_node **dtn;         /* applications of DTN, in order */
	struct nr_layer_tap *layer;
	struct nr_site_tap *site;
	struct nr_attention_tap *attention;
	int64_t layers, sites, attentions, dtns, batch, heads;
};
/* want: bits of NR_TAPS_...; patterns: of sites, separated by spaces. One that matches no norm is an error with the nearest. NULL: the
 * first norm of the blocks and what comes after the last block. */
int nr_taps_open(struct nr_taps *, const struct nr_weights *, int64_t batch, unsigned want, const char *patterns, struct nr_error *);
/* The same for a model of graphs, which are padded to one size; the view must stay. */
int nr_taps_open_graphs(struct nr_taps *, const struct nr_weights *, const struct nr_mol_view *, int64_t batch, unsigned want,
	const char *patterns, struct nr_error *);
void nr_taps_run(struct nr_taps *, const float *image);     /* with running statistics */
void nr_taps_run_texts(struct nr_taps *, const int32_t *ids);       /* (B,T), none of them padding */
/* Samples first .. first + count of the view's list; with the statistics of this batch if `train`. */
void nr_taps_run_graphs(struct nr_taps *, int64_t first, int64_t count, bool train);
void nr_taps_close(struct nr_taps *);

/* Does the first of these tokens stand for the class? (It may join late, and registers are no class token.) */
bool nr_taps_has_cls(const struct nr_weights *, const nr_t *x);
/* Tokens of sample i that are no padding, special ones among them. */
int64_t nr_taps_count(const struct nr_taps *, const nr_t *x, int64_t special, int64_t i);
/* [CLS] and one patch token of each picture, another place for each: row `number` counts pictures. NULL: there is none. */
const real *nr_taps_cls(const struct nr_taps *, const nr_t *x, int64_t i, bool has);
const real *nr_taps_token(const struct nr_taps *, const nr_t *x, int64_t special, int64_t i, int64_t number);

#endif
