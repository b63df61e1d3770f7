/* For building models: functions that record layers and losses. Tensor names follow timm and Hugging Face.
 *
 * Every builder takes and returns NULL after an error; the first one sticks in the net with scope, file and line.
 *
 * Example:
 *   struct nr_store *store;
 *   if (nr_store_make(&store, 1, &err)) return 1;
 *   struct nr_net *net = nr_net_make(store);
 *   nr_t *tokens = nr_input(net, "tokens", NR_REAL, NR_SHAPE(2, 5, 12));                    // (B,T,C)
 *   nr_t *a = nr_attention(net, nr_linear(net, "qkv", tokens, 3 * 12), 4);                   // 4 heads
 *   nr_t *y = nr_add(net, tokens, nr_linear(net, "proj", a, 12));
 *   if (!y) err = *nr_net_error(net);
 *   else printf("%lld tokens of %lld channels\n", (long long)y->d[1], (long long)nr_cols(y));
 *   nr_net_free(net);
 *   nr_store_free(store);
 */
#ifndef NORMA_NN_H
#define NORMA_NN_H

#include "norma/graph.h"
#include "norma/patch.h"

/* All ops of nn and graph, for the tests that come for free; ends with NULL. Those of norms hang on their registry. */
NR_API const struct nr_op *const *nr_ops(void);

/* y = x W^T + b: parameters name.weight (out,in) and name.bias (out). */
NR_API nr_t *nr_linear(struct nr_net *, const char *name, nr_t *x, int64_t out);
NR_API nr_t *nr_linear_no_bias(struct nr_net *, const char *name, nr_t *x, int64_t out);
NR_API nr_t *nr_linear_tied(struct nr_net *, nr_t *x, nr_t *weight, nr_t *bias);           /* with a weight of someone else's */
NR_API nr_t *nr_linear_tied_no_bias(struct nr_net *, nr_t *x, nr_t *weight);
NR_API nr_t *nr_linear_gelu(struct nr_net *, const char *name, nr_t *x, int64_t out);      /* gelu(linear(x)), erf form */
/* Activation by name: relu gelu gelu_tanh quick_gelu hard_swish tanh sigmoid silu exp. */
NR_API nr_t *nr_activate(struct nr_net *, const char *name, nr_t *x);

/* Softmax attention of packed qkv (B,T,3C) -> (B,T,C). Key padding comes from the tokens' valid lengths. */
NR_API nr_t *nr_attention(struct nr_net *, nr_t *qkv, int64_t heads);
struct nr_attention_options {
	int64_t heads, window;              /* window > 0: only keys within that distance */
	int causal;
	float scale;                        /* 0: 1 / sqrt(head width) */
	float dropout;
	nr_t *bias;                         /* (H,Tq,Tk), (n,H,Tq,Tk) with sample b using b % n; or NULL */
	nr_t *valid;                        /* (B) int32 key lengths, or NULL */
	int64_t value;                      /* packed: width of a head of the values, where it is another; 0: it is not */
	int per_head;                       /* packed: channels are ordered by head, then q k v (LeViT) */
};
NR_API nr_t *nr_attention_with(struct nr_net *, nr_t *qkv, struct nr_attention_options);
/* Queries (B,Tq,H*d), keys (B,Tk,H*d), values (B,Tk,H*dv) -> (B,Tq,H*dv). */
NR_API nr_t *nr_cross_attention(struct nr_net *, nr_t *q, nr_t *k, nr_t *v, struct nr_attention_options);
/* The same with keys and values packed: (B,Tk,2C). */
NR_API nr_t *nr_kv_attention(struct nr_net *, nr_t *q, nr_t *kv, struct nr_attention_options);
/* Swin: attention inside windows of a grid of tokens, read and written where they lie. See nn/window_attention.c. */
struct nr_window_attention {
	int64_t heads;
	int64_t h, w;                       /* the grid, multiples of the window; the first roll_h x roll_w of it are shifted cyclically, */
	int64_t roll_h, roll_w;             /* the rest is padding behind them; 0: all */
	int64_t window_h, window_w, shift_h, shift_w;
	float dropout;
	nr_t *bias;                         /* (H,n,n) for the n tokens of a window, or NULL */
};
NR_API nr_t *nr_window_attention(struct nr_net *, nr_t *qkv, struct nr_window_attention);
/* The probabilities (B,H,T,T), for analysis only: T x T is stored. No gradient. */
NR_API nr_t *nr_attention_map(struct nr_net *, nr_t *qkv, struct nr_attention_options);

/* Long sequences: T x T is never made. BigBird's blocks, of packed qkv (B,T,3C); see nn/block_attention.c. */
struct nr_block_attention_options {
	int64_t heads, block, random;       /* tokens of a block; random blocks that each block sees beside ends and neighbours */
	int64_t layer, seed;                /* which random blocks: drawn for (seed, layer, head, block) */
	int zero_in_eval;                   /* in evaluation they are all block 0, counted again (as Hugging Face does) */
	float dropout;
	nr_t *given;                        /* (layers,H,blocks-2,random) int32 instead of drawn ones, or NULL */
	nr_t *valid;                        /* (B) int32 lengths, or NULL: those of the tokens */
};
NR_API nr_t *nr_block_attention(struct nr_net *, nr_t *qkv, struct nr_block_attention_options);
/* Reformer's: buckets of similar queries. (B,T,2C), qk and v, -> (B,T,C); see nn/lsh_attention.c. */
enum { NR_LSH_FACTORS = 4 };
struct nr_lsh_options {
	int64_t heads, rounds, layer;
	int64_t buckets[NR_LSH_FACTORS];    /* of a round: the product, up to the first 0 */
	int64_t chunk;                      /* tokens of a chunk; 0: as many chunks as buckets */
	int64_t multiple;                   /* tokens are filled up to a multiple of it with zeros; 0: of chunk */
	int64_t before, after;              /* chunks that a chunk sees beside itself */
	int normalize_keys;                 /* keys are queries over their root mean square */
	int masked, not_self;               /* padding is no key; a token is its own key only if it has no other */
	int one_rotation;                   /* rotations serve all heads */
	float scale, dropout;               /* scale 0: 1 / sqrt(head width) */
	nr_t *rotations;                    /* (layers,H,d,rounds,sum of buckets / 2) instead of drawn ones, or NULL; no H: one_rotation */
	nr_t *valid;                        /* (B) int32 lengths, or NULL: those of the tokens */
};
/* buckets: NULL, or becomes (B,H,rounds,T filled up) int32, to be tapped. */
NR_API nr_t *nr_lsh_attention(struct nr_net *, nr_t *qk_v, struct nr_lsh_options, nr_t **buckets);
/* Chunks of neighbouring tokens, of packed qkv (B,T,3C): heads, chunk, before, after, masked, dropout are read. */
NR_API nr_t *nr_local_attention(struct nr_net *, nr_t *qkv, struct nr_lsh_options);

/* a (H,3) -> (H,T,S), T = special + h w: a_h . (d^2, dx, dy) between tokens of the grid, a bias for attention. Keys stand on a grid that is
 * `stride` times coarser; 1: on the same, S = T. */
NR_API nr_t *nr_position_bias(struct nr_net *, nr_t *a, int64_t h, int64_t w, int64_t special, int64_t stride);

/* A bias of attention (H,qh qw,kh kw) from a table of offsets between two places of a grid: |dy| kw + |dx| of a table (H,kh kw) as in
 * LeViT or, with signs, (dy + kh - 1) (2 kw - 1) + dx + kw - 1 of a table ((2 kh - 1) (2 kw - 1),H) as in Swin. Queries stand on every
 * stride-th row and column of the keys' grid, d is from key to query. Special tokens that come before the grid as queries and keys get
 * zeros or, with signs, the values of three further rows of the table: of special queries, of special keys, of both (BEiT). */
struct nr_grid_bias { int64_t kh, kw, stride; int with_signs; int64_t special; int special_rows; };
NR_API nr_t *nr_grid_bias(struct nr_net *, nr_t *table, struct nr_grid_bias);
/* A linear layer on all offsets (dy, dx) of a grid, in the order of that table: weight (D,2), bias (D) -> ((2 h - 1) (2 w - 1),D).
 * It reads sign(d) log(1 + |d|), as the biases of Swin v2 and timm's relpos ViTs do. */
NR_API nr_t *nr_log_offsets(struct nr_net *, nr_t *weight, nr_t *bias, int64_t h, int64_t w);

/* Rotary positions on a grid: pairs of channels of each head turn by angles that depend on the token's row, or on its column.
 * x (B,T,heads d): the first `turned` heads turn, so that packed qkv (B,T,3C) takes 2 H of them. See nn/rope.c. */
enum nr_rope_kind { NR_ROPE_NONE, NR_ROPE_EVA, NR_ROPE_DINOV3 };
struct nr_rope {
	enum nr_rope_kind kind;
	int64_t width, turned;              /* channels of a head; heads that turn */
	double theta;                       /* the longest period, about: 10000 in EVA-02, 100 in DINOv3 */
	int64_t reference;                  /* EVA-02: places are counted as on a grid of that many rows and columns; 0: of their own */
	int64_t reference_w;                /* its columns, where they are not as many as rows; 0: they are */
};
NR_API nr_t *nr_rope(struct nr_net *, nr_t *x, struct nr_rope);

/* Performer's attention of one head from packed k q v (B,T,3C), with positive random features of w (m,C): (B,T,C). See nn/performer.c. */
NR_API nr_t *nr_performer(struct nr_net *, nr_t *kqv, nr_t *w, double eps);

/* Graphormer's bias of attention between N nodes and the virtual node before them: (B,H,N+1,N+1). See nn/path_bias.c. */
struct nr_path_bias {
	nr_t *distance_table, *distance;    /* (count,H); (B,N,N) int32: edges on the shortest path + 1, 0: padding */
	nr_t *virtual_distance;             /* (1,H): of every pair with the virtual node */
	nr_t *edge_table, *edges;           /* (count,H); int32 (B,N,N,F) of the edge between, or (B,N,N,L,F) on the path; or NULL */
	nr_t *hop_table;                    /* (hops H H,1): a matrix for each place on the path, with edges on paths */
	int64_t hops;                       /* places on a path that count; 0: all */
	int64_t cut;                        /* pairs this many edges apart, or more, do not attend; 0: all do */
};
NR_API nr_t *nr_path_bias(struct nr_net *, const struct nr_path_bias *);

/* Pictures. (B,C,H,W) -> patches (B,T,p*p*C), features in the order row, column, channel, or channel, row, column. */
NR_API nr_t *nr_patches(struct nr_net *, nr_t *image, int64_t patch, enum nr_patch_order);
/* Patches (channel, row, column) times timm's weight name.weight (D,C,p,p). */
NR_API nr_t *nr_patch_linear(struct nr_net *, const char *name, nr_t *patches, int64_t patch, int64_t dim);
NR_API nr_t *nr_patch_linear_no_bias(struct nr_net *, const char *name, nr_t *patches, int64_t patch, int64_t dim);
/* x (B,T,C) + table (1,T,C) or (T,C) */
NR_API nr_t *nr_add_table(struct nr_net *, nr_t *x, nr_t *table);
/* Puts a learned token (1,n,C) before every sample; the tokens' special count and lengths grow by n. */
NR_API nr_t *nr_prepend(struct nr_net *, nr_t *token, nr_t *x);
/* y[b,i] = x[b, index[b,i]]: MAE keeps visible tokens. index (B,K) int32. */
NR_API nr_t *nr_take_tokens(struct nr_net *, nr_t *x, nr_t *index);
/* MAE's decoder input: y[b,i] = x[b, restore[b,i]] if that is < K, else the mask token. x (B,K,C), restore (B,T) int32. */
NR_API nr_t *nr_restore_tokens(struct nr_net *, nr_t *x, nr_t *mask_token, nr_t *restore);
NR_API nr_t *nr_mean_tokens(struct nr_net *, nr_t *x, nr_t *valid);                        /* (B,T,C) -> (B,C); special tokens left out */
NR_API nr_t *nr_mean_all_tokens(struct nr_net *, nr_t *x, nr_t *valid);                    /* the same with them */
/* (B,H,W,C), weight name.weight (out,in/groups,k,k) as in checkpoints; groups is 1 or C (depthwise). */
NR_API nr_t *nr_conv(struct nr_net *, const char *name, nr_t *x, int64_t out, int64_t k, int64_t stride, int64_t pad,
	int64_t groups, int bias);
/* The windows of a convolution as rows, (B,H,W,C) -> (B,T,k*k*C): T2T's soft split, Swin's merging, with k = 1 a subset. */
NR_API nr_t *nr_unfold_windows(struct nr_net *, nr_t *x, int64_t k, int64_t stride, int64_t pad, enum nr_patch_order);
/* (B,H,W,C) -> (B,h,w,C): zeros at the right and bottom, or less of it. */
NR_API nr_t *nr_fit_grid(struct nr_net *, nr_t *x, int64_t h, int64_t w);
NR_API nr_t *nr_pool_to(struct nr_net *, nr_t *x, int64_t h, int64_t w);                   /* adaptive mean, (B,H,W,C) -> (B,h,w,C) */
NR_API nr_t *nr_resample(struct nr_net *, nr_t *x, int64_t h, int64_t w);                  /* bilinear, half-pixel centres; likewise */
NR_API nr_t *nr_resample_dino(struct nr_net *, nr_t *x, int64_t h, int64_t w);             /* bicubic with DINO's step; likewise */
NR_API nr_t *nr_upsample_add(struct nr_net *, nr_t *x, nr_t *coarse);                      /* x + a coarser map, its places repeated */
NR_API nr_t *nr_channels(struct nr_net *, nr_t *x, int64_t from, int64_t to);              /* channels from .. to-1 */
NR_API nr_t *nr_pool(struct nr_net *, const char *kind, nr_t *x, int64_t k, int64_t stride, int64_t pad);   /* "mean" "max" */
/* ids (B,T) int32 -> rows of name.weight (count,C); pad_id < 0: none, else its row gets no gradient. */
NR_API nr_t *nr_embedding(struct nr_net *, const char *name, nr_t *ids, int64_t count, int64_t dim, int32_t pad_id);
/* The same with ids (B,T), or (B,T,F) whose rows are added up: (B,T,C). Row 0 starts as zeros and gets no gradient. */
NR_API nr_t *nr_embedding_sum(struct nr_net *, const char *name, nr_t *ids, int64_t count, int64_t dim);
/* RoBERTa's places: pad_id + the number of ids up to here that are not pad_id; pads get pad_id. (B,T) int32, both. */
NR_API nr_t *nr_text_positions(struct nr_net *, nr_t *ids, int32_t pad_id);
/* How long each text is that the token end_id ends or, if that is < 0, its largest id: up to the first of these. (B,T) -> (B), int32. */
NR_API nr_t *nr_text_lengths(struct nr_net *, nr_t *ids, int32_t end_id);

/* x (B,T,C) + sin and cos of its places: channels 2i and 2i+1 of place p are sin and cos of p 10000^(-2i/C). */
NR_API nr_t *nr_add_sines(struct nr_net *, nr_t *x);
/* x (B,T,C) + places on a grid of rows x columns tokens: a (rows,1,Ca) and b (1,columns,C-Ca) side by side (Reformer's axial positions). */
NR_API nr_t *nr_add_axial(struct nr_net *, nr_t *x, nr_t *a, nr_t *b);

/* Elementwise and small. */
NR_API nr_t *nr_mul(struct nr_net *, nr_t *a, nr_t *b);
NR_API nr_t *nr_scale(struct nr_net *, nr_t *x, double factor);
/* LayerScale: x * gain (C); with (C/k) gains each serves k channels. */
NR_API nr_t *nr_scale_channels(struct nr_net *, nr_t *x, nr_t *gain);
NR_API nr_t *nr_shift_channels(struct nr_net *, nr_t *x, nr_t *shift);                    /* x + shift (C) or (C/k) */
NR_API nr_t *nr_dropout(struct nr_net *, nr_t *x, double p);                              /* x itself if p = 0 */
NR_API nr_t *nr_drop_path(struct nr_net *, nr_t *x, double p);                            /* whole samples */
NR_API nr_t *nr_softmax(struct nr_net *, nr_t *x, double scale, nr_t *mask);              /* mask: rows added, or NULL */
NR_API nr_t *nr_log_softmax(struct nr_net *, nr_t *x);
NR_API nr_t *nr_transpose(struct nr_net *, nr_t *x);                                      /* (B,T,C) -> (B,C,T) */
NR_API nr_t *nr_matmul(struct nr_net *, nr_t *a, nr_t *b, int ta, int tb);                /* batched (B,m,k) (B,k,n) */

/* Losses: a scalar, the mean over what counts. */
NR_API nr_t *nr_cross_entropy(struct nr_net *, nr_t *logits, nr_t *labels, double smoothing, int32_t ignore);
NR_API nr_t *nr_soft_cross_entropy(struct nr_net *, nr_t *logits, nr_t *targets);
/* The entropy of each row's softmax, averaged over the rows whose number in counts (B) int32 is not 0 and whose entropy is below `margin`
 * (0: any): what test-time adaptation lowers (Tent, SAR). rows: NULL, or becomes (B), each row's entropy, to be tapped. */
NR_API nr_t *nr_entropy_loss(struct nr_net *, nr_t *logits, nr_t *counts, double margin, nr_t **rows);
/* Segmentation: logits (B,h,w,K) of a coarse grid, enlarged to the labels (B,H,W) by bilinear interpolation (half-pixel centres, or
 * first and last places on first and last pixels: align_corners); the mean over all pixels whose label is not `ignore`. */
NR_API nr_t *nr_pixel_cross_entropy(struct nr_net *, nr_t *logits, nr_t *labels, int32_t ignore, int align_corners);
enum nr_bce_mean { NR_BCE_MEAN_ALL, NR_BCE_MEAN_ROWS };                                   /* rows: summed over classes (big_vision) */
NR_API nr_t *nr_sigmoid_cross_entropy(struct nr_net *, nr_t *logits, nr_t *targets, enum nr_bce_mean);
/* MAE: mean over masked tokens of the mean square error per token; weight (B,T) is 1 where it counts. normalize: targets
 * are standardised per token first (eps 1e-6, variance with N-1). */
NR_API nr_t *nr_masked_mse(struct nr_net *, nr_t *pred, nr_t *target, nr_t *weight, int normalize);
NR_API nr_t *nr_mse(struct nr_net *, nr_t *pred, nr_t *target);
/* Of values whose target is known: targets that are NaN do not count. No target at all: loss 0. */
enum nr_known { NR_KNOWN_ABSOLUTE, NR_KNOWN_SQUARE, NR_KNOWN_BCE };         /* errors; binary cross entropy of logits */
NR_API nr_t *nr_known_loss(struct nr_net *, nr_t *pred, nr_t *target, enum nr_known);
NR_API nr_t *nr_weighted_sum(struct nr_net *, nr_t *x, nr_t *weight);                     /* sum x * weight: a scalar */

/* Over all pairs of rows of (N,C), or of the rows of each sample of (B,T,C): see nn/pairs.c. */
enum nr_pair_kind { NR_PAIRS_SQUARE, NR_PAIRS_LINEAR, NR_PAIRS_GAUSS };
struct nr_pair_options { enum nr_pair_kind kind; int normalize, self; };
NR_API nr_t *nr_pair_loss(struct nr_net *, nr_t *x, struct nr_pair_options);
/* SimCSE: z (B,2,C) or (B,3,C), a sentence, its positive, its hard negative. The loss; *sim (B,B) or (B,2B): cosines over the
 * temperature, with the weight of a hard negative on its own sentence's; sim may be NULL. See nn/simcse.c. */
NR_API nr_t *nr_simcse_loss(struct nr_net *, nr_t *z, double temperature, double hard_weight, nr_t **sim);
/* DINO: student (V B,K), the outputs of V views one after the other, against the teacher's probabilities of the first two (2 B,K). See
 * nn/dino.c. */
NR_API nr_t *nr_dino_loss(struct nr_net *, nr_t *student, nr_t *teacher, double temperature);

/* Rows of length 1: x / max(|x|, 1e-12). */
NR_API nr_t *nr_unit_rows(struct nr_net *, nr_t *x);
/* Images and their texts (B,C), rows of length 1: logits e^t image . text + bias, t and bias (1). Without a bias the softmax loss of CLIP
 * and LiT, with one the sigmoid loss of SigLIP; *logits (B,B) may be NULL. See nn/contrast.c. */
NR_API nr_t *nr_contrast_loss(struct nr_net *, nr_t *images, nr_t *texts, nr_t *t, nr_t *bias, nr_t **logits);

/* The caller's line, for messages: inside nn the plain functions are wanted. */
#ifndef NR_INSIDE_NN
#define nr_linear(n, ...) nr_linear(nr_at(n, __FILE__, __LINE__), __VA_ARGS__)
#define nr_linear_no_bias(n, ...) nr_linear_no_bias(nr_at(n, __FILE__, __LINE__), __VA_ARGS__)
#define nr_linear_gelu(n, ...) nr_linear_gelu(nr_at(n, __FILE__, __LINE__), __VA_ARGS__)
#define nr_activate(n, ...) nr_activate(nr_at(n, __FILE__, __LINE__), __VA_ARGS__)
#define nr_attention(n, ...) nr_attention(nr_at(n, __FILE__, __LINE__), __VA_ARGS__)
#define nr_attention_with(n, ...) nr_attention_with(nr_at(n, __FILE__, __LINE__), __VA_ARGS__)
#define nr_patch_linear(n, ...) nr_patch_linear(nr_at(n, __FILE__, __LINE__), __VA_ARGS__)
#define nr_prepend(n, ...) nr_prepend(nr_at(n, __FILE__, __LINE__), __VA_ARGS__)
#define nr_conv(n, ...) nr_conv(nr_at(n, __FILE__, __LINE__), __VA_ARGS__)
#define nr_add(n, ...) nr_add(nr_at(n, __FILE__, __LINE__), __VA_ARGS__)
#endif

#endif
