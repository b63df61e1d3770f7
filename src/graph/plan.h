/* The inside of a plan, for the planner's passes and the executor only.
 *
 * Time is the index of an instruction: forward nodes in record order, the seed of the loss's gradient, then backward in
 * reverse. A buffer is a piece of the arena with a first and a last time; a place is a tensor's part of a buffer. */
#ifndef NR_PLAN_H
#define NR_PLAN_H

#include "graph/net.h"

struct nr_instr {
	void (*fn)(const struct nr_call *);
	struct nr_call call;
	int watched;                        /* left out of runs that nobody looks on (nr_exec.after) */
	int alone;                          /* too little work to be shared: the calling thread does it */
};

enum { NR_NOWHERE = -1 };

struct buffer {
	int64_t bytes, offset;
	int32_t first, last;                /* first > last: not used */
	int32_t root;                       /* itself, or the buffer whose memory it shares in place */
	uint8_t fixed;                      /* lives through the whole run and between runs */
	const char *what;                   /* "value" "gradient" "stash" ... */
	const nr_t *tensor;                 /* whose, or NULL */
	const struct nr_node *node;
};

struct place {
	int32_t buf;                        /* NR_NOWHERE: base is the address (store), or NULL */
	int64_t off, bs;                    /* in values; bs 0: packed */
	void *base;
};

/* rebuild: cheap outputs are made again; again: forward is repeated; undo: of a reversible sum */
enum step_kind { STEP_FORWARD, STEP_SEED, STEP_REBUILD, STEP_AGAIN, STEP_UNDO, STEP_BACKWARD };
struct step { enum step_kind kind; int32_t node; };

struct planner {
	struct nr_net *net;
	struct nr_arena *arena;             /* of the plan: what outlives planning; scratch lists too */
	unsigned flags;
	nr_t *loss;
	const struct nr_plan *host;         /* whose memory may be used; or NULL */
	struct nr_node **node;              /* pruned and fused */
	int32_t n_node, n_tensor;
	struct step *step;
	int32_t n_step, n_forward;
	int32_t *made_by;                   /* by tensor: node, or -1 for leaves */
	int32_t **used_by;                  /* by tensor: nodes, ending with -1, in record order */
	uint8_t *need_grad, *reached;       /* by tensor: a gradient is wanted; a gradient arrives */
	uint8_t *back;                      /* by node: runs in backward */
	int32_t *back_time;                 /* by node */
	uint8_t *rebuild;                   /* by node: bits of outputs that are made again */
	struct place *value, *again, *grad; /* by tensor: forward value, value in backward, gradient */
	int32_t *stash, *stash_again, *pending; /* by node: buffer */
	uint8_t *repeated;                  /* by node: in the branch of a reversible sum, forward is repeated in backward */
	int32_t *undone_by;                 /* by tensor: the reversible sum that gives it back; -1: none */
	struct buffer *buf;
	int32_t n_buf, cap_buf;
	int32_t sink;                       /* buffer that takes unwanted gradients */
	uint8_t *had_grad;                  /* by recorded tensor: a gradient arrives in the graph as recorded; NULL: not narrowed */
	int32_t n_recorded;                 /* tensors before the planner added its own */
	uint8_t *watched;                   /* by tensor, of cap_watched: made for onlookers only */
	int32_t cap_watched;
	int64_t narrowed, fused, rebuilt, aliased;
	double left_out_flops;
	struct nr_error *err;
};

struct clear { void *p; size_t bytes; int always; };   /* a gradient that nobody writes; always: also when accumulating */

struct nr_plan {
	struct nr_net *net;
	struct nr_arena *arena;
	nr_t *loss;
	unsigned flags;
	int threads;
	struct nr_instr *instr;             /* forward, then backward */
	int32_t n_instr, n_forward;
	struct nr_instr *commit;
	int32_t n_commit;
	uint8_t **first_write;              /* add flags of the first writers of parameter gradients: accumulation sets them */
	int32_t n_first_write;
	struct clear *clear;                /* before backward */
	int32_t n_clear;
	char *memory;                       /* the arena of activations, then scratch */
	int guest;                          /* it is another plan's */
	int64_t bytes;
	struct nr_exec exec;                /* what the calls point to */
	struct buffer *buf;
	int32_t n_buf, n_tensor;
	struct place *value, *grad;
	struct nr_plan_stats stats;
};

/* plan_list.c */
void *nr_plan_list(struct planner *, int64_t count, size_t size);    /* zeroed, lives with the plan; NULL sets the error */
int nr_plan_prune(struct planner *);
int nr_plan_fuse(struct planner *);
int nr_plan_link(struct planner *);         /* made_by, used_by, need_grad, reached, back */
int nr_plan_schedule(struct planner *);     /* step[], rebuild */
/* plan_reverse.c */
int nr_plan_find_reversible(struct planner *);                  /* repeated, undone_by */
void nr_plan_ensure(struct planner *, const nr_t *, uint8_t *done);      /* steps that make its value again */
void nr_plan_ensure_node(struct planner *, int32_t node, uint8_t *done); /* and those of a node's outputs and stash */
/* plan_narrow.c */
int nr_plan_narrow(struct planner *);       /* after prune */
int nr_plan_only_watched(const struct planner *, const struct nr_node *);        /* made for onlookers only */
/* Is it a recorded leaf that had a gradient until tokens were left out? It is zero. */
int nr_plan_lost_grad(const struct planner *, const nr_t *);
/* plan_place.c */
int nr_plan_place_values(struct planner *);
int nr_plan_place_grads(struct planner *);
/* plan_pack.c */
int32_t nr_buffer_make(struct planner *, int64_t bytes, const char *what, const nr_t *, const struct nr_node *);
void nr_plan_lifetimes(struct planner *);
void nr_plan_inplace(struct planner *);
int64_t nr_plan_pack(struct planner *);     /* offsets; returns bytes */

/* exec.c */
void nr_plan_begin_backward(const struct nr_plan *, const struct nr_exec *);

void nr_node_cost(const struct nr_node *, double *forward, double *backward);
/* plan_work.c */
enum nr_instr_pass { NR_PASS_FORWARD, NR_PASS_BACKWARD, NR_PASS_AGAIN, NR_PASS_SEED };        /* again: rebuilt in backward */
struct nr_work { enum nr_instr_pass pass; double flops, bytes; };     /* bytes: what is read and written, each value once */
struct nr_work nr_instr_work(const struct nr_plan *, int32_t i);
int nr_work_is_small(const struct nr_work *);        /* sharing it among threads would cost more than it brings */

static inline int32_t nr_buffer_root(const struct planner *p, int32_t b)
{
	while (p->buf[b].root != b) b = p->buf[b].root;
	return b;
}
/* Where a value lies once backward has begun. */
static inline struct place nr_place_in_backward(const struct planner *p, const nr_t *t)
{
	return p->again[t->id].buf >= 0 ? p->again[t->id] : p->value[t->id];
}
static inline int32_t nr_stash_of(const struct planner *p, int32_t node, enum step_kind kind)
{
	return kind != STEP_FORWARD && p->stash_again[node] >= 0 ? p->stash_again[node] : p->stash[node];
}
static inline int64_t nr_tensor_bytes(const nr_t *t) { return nr_len(t) * (int64_t)nr_dtype_size(t->dtype); }

#endif
