/* The inside of a net, for the recorder and the planner only. */
#ifndef NR_NET_H
#define NR_NET_H

#include "base/mem.h"
#include "norma/graph.h"

enum { NR_MAXSCOPE = 1024, NR_MAXDEPTH = 64 };

struct nr_net {
	struct nr_store *store;
	struct nr_arena *arena;
	nr_t **tensor;                      /* all of them, by id */
	struct nr_node **node;              /* in record order, which is topological */
	int32_t n_tensor, n_node, cap_tensor, cap_node;
	nr_t **leaf;                        /* parameters and buffers by their number in the store; NULL: not used here */
	int32_t cap_leaf;
	uint32_t n_random;                  /* random ops so far */
	char scope[NR_MAXSCOPE];            /* "blocks.3.attn" */
	int32_t mark[NR_MAXDEPTH], depth;   /* where each pushed name began */
	int64_t of[NR_MAXDEPTH];            /* how many of its kind there are; 0: not said */
	struct nr_norm_plan *norms;         /* where norms sit (norms/plan.c) */
	const char *file;
	int line;
	int keep_hidden;
	int weights;                        /* what NR_XAVIER stands for; 0: itself */
	struct nr_error error;
};

/* Number, from 0, of the innermost block of a stack that is being recorded; -1: none. */
int64_t nr_net_block(const struct nr_net *);
/* Does this tensor, as recorded, have gaps between samples when it is read? The plan may have closed them: sums whose order must not
 * depend on that go by this. */
int nr_has_gaps(const nr_t *);
/* May input i of the op have gaps between samples? */
int nr_op_accepts_gaps(const struct nr_op *, int i);
struct nr_entry *nr_store_need(struct nr_store *, const char *name, int init, int buffer, int nd, const int64_t *d, struct nr_error *);

/* Views that the planner knows by name (view.c). */
struct nr_span_attr { int64_t from, to; };
extern const struct nr_op nr_op_span, nr_op_join, nr_op_reshape, nr_op_pack, nr_op_add, nr_op_add_reversible;

/* Lengths (B) int32, shifted and cut to 0 .. most. */
nr_t *nr_lengths(struct nr_net *, nr_t *valid, int64_t shift, int64_t most);

#endif
