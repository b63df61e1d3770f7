/* For building models: record a graph once, plan it once, replay it. nn.h has the layers.
 *
 * Example:
 *   struct nr_store *store;
 *   struct nr_plan *plan;
 *   if (nr_store_make(&store, 1, &err)) return 1;           // named parameters and buffers
 *   struct nr_net *net = nr_net_make(store);                // records
 *   nr_t *x = nr_input(net, "x", NR_REAL, NR_SHAPE(8, 3)), *y = nr_input(net, "y", NR_REAL, NR_SHAPE(8, 1));
 *   nr_t *loss = nr_mse(net, nr_linear(net, "layer", x, 1), y); // NULL after an error; the first one sticks
 *   if (!nr_plan_make(&plan, net, loss, NR_PLAN_TRAIN, &err)) { // and comes out here
 *           nr_real *values = nr_plan_data(plan, x);
 *           for (int i = 0; i < 8 * 3; i++) values[i] = (nr_real)i;
 *           nr_plan_run(plan, &(struct nr_exec){ .train = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD);   // allocates nothing, cannot fail
 *           printf("loss %g, gradient of the bias %g\n", *(nr_real *)nr_plan_data(plan, loss),
 *                   *nr_grad(nr_store_find(store, "layer.bias")));
 *           nr_plan_free(plan);
 *   }
 *   nr_net_free(net);
 *   nr_store_free(store);
 */
#ifndef NORMA_GRAPH_H
#define NORMA_GRAPH_H

#include <stdio.h>

#include "norma/option.h"
#include "norma/tensor.h"

/* ---- ops ------------------------------------------------------------------------------------------------------ */

struct nr_net;
struct nr_op;
struct nr_plan;
struct nr_store;

struct nr_where { const char *scope, *file; int line; };

struct nr_node {                            /* one op application, owned by the net's arena */
	const struct nr_op *op;
	nr_t *in[NR_MAXIN], *out[NR_MAXOUT];
	int32_t n_in, n_out;
	const void *attr;                   /* the op's own struct, copied */
	size_t stash, scratch, pending;     /* bytes: stash lives until backward; scratch during the call; pending until commit */
	int32_t threads;                    /* that may run it at a time: what scratch is sized for */
	struct nr_where where;
	struct nr_net *net;
	int32_t id;
};

struct nr_exec {                            /* what differs from step to step */
	int train;                          /* batch statistics and dropout on */
	int no_dropout;                     /* batch statistics alone: what an evaluation would have seen */
	double prior;                       /* with train, forward alone: the running statistics of batch norms count as so many samples */
					    /* beside those of the batch (Schneider et al. 2020) */
	int accumulate;                     /* add to the parameter gradients instead of overwriting them */
	int64_t step;
	int64_t total;                      /* steps of the whole run, for norms that change in its course; 0: not known */
	uint64_t seed;
	void (*after)(void *context, int32_t call);   /* NULL, or called after each forward call: see nr_plan_made */
	void *context;
	void (*behind)(void *context, int32_t call);  /* NULL, or called after each backward call */
	void *behind_context;
};

struct nr_call {                            /* all a kernel sees; resolved by the plan */
	const struct nr_node *node;
	struct nr_view x[NR_MAXIN], y[NR_MAXOUT];
	struct nr_view dy[NR_MAXOUT];       /* p is NULL where no gradient arrives */
	struct nr_view dx[NR_MAXIN];        /* never NULL: an unwanted dx is a planned sink */
	uint8_t add[NR_MAXIN];              /* 0: overwrite dx[i]; 1: add to it. No zero-fill pass */
	uint32_t want;                      /* bit i: dx[i] is used; costly kernels may skip the others */
	uint32_t dy_dead;                   /* bit j: dy[j] dies with this call, its memory may be overwritten */
	uint32_t turned;                    /* bit i: x[i] lies as (in,out), see nr_op.turns */
	int dy_empty;                       /* NR_SUM only: dy[0] is memory that nobody wrote a gradient to */
	int again;                          /* forward is repeated for backward; integer outputs hold what it wrote at first */
	void *stash, *scratch, *pending;
	const double *shared;               /* of all parts of a batch, see nr_op.share; NULL: this part is all */
	const struct nr_exec *ex;
};

#define NR_KEEP_X(i) (1u << (i))            /* backward reads x[i] */
#define NR_KEEP_X_ALL ((1u << NR_MAXIN) - 1)
#define NR_KEEP_Y(j) (1u << (16 + (j)))     /* backward reads y[j] */

enum nr_op_flags {
	NR_CHEAP = 1 << 0,                  /* y[0] may be dropped after forward and made again before backward */
	NR_STRIDED = 1 << 1,                /* x[0], y, dy, dx[0] may have gaps between samples */
	NR_INPLACE = 1 << 2,                /* y[0] may take the place of x[0] */
	NR_INPLACE_GRAD = 1 << 3,           /* dx[0] may take the place of dy[0] (if it overwrites) */
	NR_BATCHWISE = 1 << 4,              /* a sample's output depends on the other samples */
	NR_APPROX_GRAD = 1 << 5,            /* backward is by design not the derivative */
	NR_VIEW = 1 << 6,                   /* copies only where the plan could not alias */
	NR_SUM = 1 << 7,                    /* y[0] = x[0] + x[1]: backward leaves the gradient of the sum in dy[0], and dx[0], */
					    /* dx[1] may be that very memory */
	NR_RANDOM = 1 << 8,                 /* draws numbers in training */
	NR_SHARES_MOMENTS = 1 << 10,        /* what forward shares is a count, means and sums of squares about them */
	NR_NARROW = 1 << 9,                 /* can make the first tokens of y[0] (B,T,C) alone: `tokenwise` and `narrowed` say how */
};

struct nr_case { const char *shapes, *options; };   /* "2x5x12 12", "eps=1e-6": for gradcheck and bench */

struct nr_fuse {                            /* this op, when x[0] comes from `producer`, becomes `fused`: its inputs are */
	const char *producer;               /* the producer's, then this op's others; its outputs the producer's y[0], then */
	const struct nr_op *fused;          /* this op's y[0]; attr: struct nr_fused_attr */
};
struct nr_fused_attr { const void *producer, *consumer; int32_t producer_inputs; };

struct nr_op {
	const char *name;
	int (*shape)(struct nr_node *);     /* infer output, stash, scratch; the only part that may fail */
	void (*forward)(const struct nr_call *);           /* pure: writes y, stash and pending only */
	void (*backward)(const struct nr_call *);          /* NULL: no gradient passes */
	void (*rebuild)(const struct nr_call *);           /* makes the outputs of `cheap` again; NULL: forward does */
	void (*undo)(const struct nr_call *);              /* of a reversible sum: makes x[0] again, y[0] - x[1] */
	void (*commit)(const struct nr_call *);            /* moves pending statistics into their buffers, once per step */
	void (*cost)(const struct nr_node *, double *forward, double *backward);   /* flops; NULL: a few per value */
	/* Statistics over a batch whose parts run side by side. share: how many numbers a part has to tell the others before forward, or
	 * backward; 0: none. part: writes them, and its scratch stays for the call that follows, which finds those of all parts in
	 * k->shared, merged as moments or summed. NULL: never */
	int64_t (*share)(const struct nr_node *, int backward);
	void (*part)(const struct nr_call *, int backward, double *mine);
	uint32_t keeps;                     /* NR_KEEP_X(i), NR_KEEP_Y(j): what backward reads */
	uint32_t cheap;                     /* bit j: y[j] can be made by rebuild, which reads `rebuild_keeps` */
	uint32_t rebuild_keeps;
	uint32_t optional;                  /* bit j: forward may find y[j].p NULL when nobody reads it */
	uint32_t turns;                     /* bit i: forward takes the parameter x[i] (out,in) also as (in,out): nr_store_fix */
	uint32_t gathers;                   /* bit i: forward reads only rows of x[i] that others name: no more than it writes */
	uint32_t flags;
	const struct nr_fuse *fuse;         /* ends with a NULL producer */
	/* NR_NARROW: bit i: token t of y[0] needs token t of x[i] alone, which is then cut likewise; other inputs stay whole. */
	uint32_t tokenwise;
	/* The attribute of a node that makes so many tokens of what k makes; values are those of the whole, drawn masks too. NULL:
	 * the same attribute. */
	const void *(*narrowed)(const struct nr_node *k, int64_t tokens, struct nr_arena *);
	/* Builds the op from inputs of the shapes of a case, so that the tests that come for free can run it. */
	nr_t *(*try_case)(struct nr_net *, nr_t **x, const char *options);
	const struct nr_case *cases;        /* ends with NULL shapes */
};

/* For shape functions: declares output j as like x (type, shape, tokens), or with other sizes. */
NR_API nr_t *nr_out_like(struct nr_node *, int j, const nr_t *x);
NR_API nr_t *nr_out(struct nr_node *, int j, enum nr_dtype, int nd, const int64_t *d, const struct nr_tokens *);
/* 0, or a sticky error that names scope, file, line and op when the condition does not hold. */
NR_API int nr_expect(struct nr_node *, int condition, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- the store: every parameter and buffer by name ------------------------------------------------------------- */

enum nr_init {
	NR_ZEROS, NR_ONES,
	NR_XAVIER,                          /* uniform, +- sqrt(6 / (fan in + fan out)) */
	NR_NORMAL_02,                       /* N(0, .02) */
	NR_TRUNC_02,                        /* N(0, .02) cut at two deviations */
	NR_INIT_KIND = 0xff,
	NR_NO_DECAY = 0x100,                /* weight decay leaves it alone */
	NR_ZERO_ROW = 0x200,                /* row 0 starts as zeros: that of padding */
	NR_UNIT_ROWS = 0x400,               /* a matrix whose rows, or columns, have length 1: at first, and again after each step */
	NR_UNIT_COLUMNS = 0x800,
};

struct nr_entry {
	const char *name;
	int32_t nd;
	int64_t d[NR_MAXD], count;
	int init;                           /* nr_init with flags */
	int buffer;                         /* 1: not trained */
	int frozen;                         /* 1: a parameter that the optimizer leaves alone */
	double value;                       /* of NR_ONES: its multiple */
	void (*fill)(const struct nr_entry *, const void *conf, nr_real *values);   /* instead of `init`, or NULL */
	const void *fill_conf;
	double gain;                        /* initial values from number gain_from on are multiplied with it */
	int64_t gain_from;
	int64_t number, offset;             /* in order of registration; in its slabs */
	int turned;                         /* its copy (in,out) is made */
	struct nr_store *store;
};

NR_API int nr_store_make(struct nr_store **, uint64_t seed, struct nr_error *);
NR_API void nr_store_free(struct nr_store *);
NR_API int64_t nr_store_count(const struct nr_store *);
NR_API struct nr_entry *nr_store_at(const struct nr_store *, int64_t i);            /* in order of registration */
NR_API struct nr_entry *nr_store_find(const struct nr_store *, const char *name);
/* Gives every entry its memory and initial value; nr_plan_make does it. No new names afterwards. */
NR_API int nr_store_seal(struct nr_store *, struct nr_error *);
NR_API nr_real *nr_value(const struct nr_entry *);                                     /* NULL before sealing */
NR_API nr_real *nr_grad(const struct nr_entry *);                                      /* NULL for buffers */
/* Slabs for the optimizer's moments, made at the first call: which = 0 (m) or 1 (v). */
NR_API nr_real *nr_moment(const struct nr_entry *, int which, struct nr_error *);
/* Initial values of the caller's own making: `fill` writes them when the store is sealed. conf is copied; NULL entry: ignored. */
NR_API int nr_entry_fill(struct nr_entry *, void (*fill)(const struct nr_entry *, const void *conf, nr_real *values), const void *conf,
	size_t size, struct nr_error *);
/* The flat slabs; parameters come first, in order of registration, each at a multiple of 16 values. */
NR_API nr_real *nr_store_values(const struct nr_store *, int64_t *count);
NR_API nr_real *nr_store_grads(const struct nr_store *, int64_t *count);
/* From now on no value of a parameter changes: inference that is planned later keeps the weights of products (out,in) as (in,out)
 * too, made once, which spares small batches most of what a product costs beside its arithmetic. Same bits. */
NR_API void nr_store_fix(struct nr_store *);
/* safetensors in and out; names, shapes and types must match (a missing or left-over tensor is an error). */
NR_API int nr_store_save(const struct nr_store *, const char *path, struct nr_error *);
NR_API int nr_store_load(struct nr_store *, const char *path, struct nr_error *);

/* ---- recording --------------------------------------------------------------------------------------------------- */

NR_API struct nr_net *nr_net_make(struct nr_store *);      /* NULL when out of memory; the store outlives it */
NR_API void nr_net_free(struct nr_net *);                  /* after its plans */
NR_API const struct nr_error *nr_net_error(const struct nr_net *);
NR_API struct nr_store *nr_net_store(const struct nr_net *);
/* Memory that lives as long as the net. */
NR_API struct nr_arena *nr_net_arena(const struct nr_net *);
NR_API void nr_push(struct nr_net *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "blocks.3", the fourth of `of`: depth that a norm plan's ranges and residual scaling refer to. */
NR_API void nr_push_nth(struct nr_net *, const char *name, int64_t i, int64_t of);
NR_API nr_t *nr_pop(struct nr_net *, nr_t *x);             /* returns x, so that `return nr_pop(n, x)` reads well */
/* Remembers the caller's line for messages; returns the net. The builders' macros call it. */
NR_API struct nr_net *nr_at(struct nr_net *, const char *file, int line);

NR_API nr_t *nr_input(struct nr_net *, const char *name, enum nr_dtype, struct nr_shape);     /* NR_SHAPE(B, T, C) */
NR_API nr_t *nr_param(struct nr_net *, const char *name, int init, struct nr_shape);     /* found or made, under the scope */
NR_API nr_t *nr_buffer(struct nr_net *, const char *name, int init, struct nr_shape);
/* Weights that are made from now on, and would start as NR_XAVIER, start as this instead. */
NR_API void nr_weights_start_as(struct nr_net *, int init);
NR_API nr_t *nr_tap(struct nr_net *, const char *name, nr_t *x);                         /* readable after a run; returns x */
/* A tap that is made only if the net was asked for them (analysis, tests): else it would cost memory. Returns x. */
NR_API nr_t *nr_hidden(struct nr_net *, nr_t *x, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
NR_API void nr_net_keep_hidden(struct nr_net *, int on);
/* Multiplies the initial values of a parameter of the present scope, from this one on (Sub-LN, DeepNorm). */
NR_API void nr_init_gain(struct nr_net *, const char *name, int64_t from, double gain);
/* The same tensor with another meaning of its token axis. */
NR_API nr_t *nr_with_tokens(struct nr_net *, nr_t *x, struct nr_tokens);
/* Applies an op and returns y[0]. attr is copied. NULL inputs return NULL. */
NR_API nr_t *nr_apply_list(struct nr_net *, const struct nr_op *, const void *attr, size_t size, int n_in, nr_t *const *in);
#define nr_apply(net, op, attr, size, ...)                                                                             \
	nr_apply_list(net, op, attr, size, (int)(sizeof((nr_t *[]){ __VA_ARGS__ }) / sizeof(nr_t *)), (nr_t *[]){ __VA_ARGS__ })
/* Fails the net with a message at the current place; returns NULL. */
NR_API nr_t *nr_net_fail(struct nr_net *, enum nr_err, const char *subject, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Views: they cost nothing where the plan can alias. */
NR_API nr_t *nr_span(struct nr_net *, nr_t *x, int64_t from, int64_t to);   /* tokens from .. to-1 of (B,T,C) */
NR_API nr_t *nr_join(struct nr_net *, nr_t *a, nr_t *b);                    /* (B,Ta,C) (B,Tb,C) -> (B,Ta+Tb,C) */
NR_API nr_t *nr_reshape(struct nr_net *, nr_t *x, struct nr_shape);         /* one size may be -1: what is left */
NR_API nr_t *nr_pack(struct nr_net *, nr_t *x);                             /* a copy without gaps */
NR_API nr_t *nr_add(struct nr_net *, nr_t *a, nr_t *b);
/* The same sum, which the plan may undo: backward makes `b` again, and from it `a`, if a reversible sum made that, too. Memory is then
 * independent of the number of such sums; `a` comes back with rounding errors. */
NR_API nr_t *nr_add_reversible(struct nr_net *, nr_t *a, nr_t *b);

/* ---- planning and running ---------------------------------------------------------------------------------------- */

enum nr_plan_flags {
	NR_PLAN_TRAIN = 1 << 0,             /* with backward */
	NR_PLAN_REBUILD = 1 << 1,           /* less memory: cheap outputs are made again in backward */
	NR_PLAN_NO_FUSE = 1 << 2,           /* also NORMA_FUSE=0 */
	NR_PLAN_NO_REUSE = 1 << 3,          /* every buffer has its own memory (debugging) */
	NR_PLAN_NO_NARROW = 1 << 5,         /* also NORMA_NARROW=0 */
	NR_PLAN_SHARE = 1 << 6,             /* threads share the smallest work, too; also NORMA_SHARE=1 */
	NR_PLAN_POISON = 1 << 4,            /* tests: memory that backward did not ask to keep is filled with NaN before it */
};
/* Commit moves the running statistics of all norms below the loss; without NR_PLAN_TRAIN, of those that the output or a tap needs. */
enum nr_run_flags { NR_RUN_FORWARD = 1, NR_RUN_BACKWARD = 2, NR_RUN_COMMIT = 4 };

/* loss: the scalar to differentiate, or the output of inference. Returns the net's first error if there is one. */
NR_API int nr_plan_make(struct nr_plan **, struct nr_net *, nr_t *loss, unsigned flags, struct nr_error *);
/* The same in the memory of another plan, if that is large enough: for one model at several lengths. They never run at the same
 * time, and what one of them left there is gone when another has run. The host is freed after its guests. */
NR_API int nr_plan_make_beside(struct nr_plan **, struct nr_net *, nr_t *loss, unsigned flags, const struct nr_plan *host,
	struct nr_error *);
NR_API void nr_plan_free(struct nr_plan *);
NR_API void nr_plan_run(struct nr_plan *, const struct nr_exec *, unsigned run);
/* Runs forward again with a look at every output: the first node whose output is not finite, or NULL. Slow. */
NR_API const struct nr_node *nr_plan_first_bad(struct nr_plan *, const struct nr_exec *);
/* Memory of an input, the loss or a tap. NULL for tensors that the plan did not keep. */
NR_API void *nr_plan_data(const struct nr_plan *, const nr_t *);
/* The forward call that makes a tensor, and where its value then lies: sure to stay until the next call only, for the plan keeps
 * nothing for whoever looks (see nr_exec.after). Inputs and parameters count as made by call 0. -1: it is not made at all, which
 * NR_WATCHED prevents where the loss reads but some tokens of it. */
NR_API int32_t nr_plan_made(const struct nr_plan *, const nr_t *, struct nr_view *);
/* Gradient of an input flagged NR_GRAD. */
NR_API nr_real *nr_plan_grad(const struct nr_plan *, const nr_t *);
NR_API const nr_t *nr_plan_tap(const struct nr_plan *, const char *name, struct nr_error *);   /* nearest name on error */

struct nr_plan_stats {
	int64_t instructions, forward, backward, narrowed, fused, rebuilt, aliased;
	int64_t arena_bytes, scratch_bytes, no_reuse_bytes;     /* planned; largest scratch; sum of all buffers */
	int64_t param_count, buffer_count;
	double forward_flops, backward_flops;
	double left_out_flops;                                  /* of forward, that narrowing saves */
};
NR_API struct nr_plan_stats nr_plan_stats(const struct nr_plan *);
/* The instructions as text: index, op, scope, shapes, bytes, flops; then the peak and who owns it. */
NR_API void nr_plan_print(const struct nr_plan *, FILE *, int instructions);

#endif
