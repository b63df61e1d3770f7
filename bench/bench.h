/* Benchmarks: named cases that are also run by PyTorch (bench/peers), measured as peers/common.py does.
 *
 *   struct bench_target t; bench_target_parse(&t, "vit_tiny_bs8/train", 0, &err);
 *   struct bench *b; bench_open(&b, &t, 0, &err);
 *   bench_step(b);                                 forward, backward, AdamW
 *   bench_close(b);
 */
#ifndef NR_BENCH_H
#define NR_BENCH_H

#include <stdbool.h>

#include "base/json.h"
#include "norma/model.h"
#include "norma/optim.h"

/* ---- cases ---- */

struct bench_size {
	int64_t batch, image, channels, patch;
	const char *model;                      /* backbones: name and options */
	int64_t dim, depth, heads;
	int64_t classes;                        /* ViT */
	int64_t decoder_dim, decoder_depth, decoder_heads;      /* MAE */
	double keep;                            /* MAE: share of patches that the encoder sees */
	int64_t length, vocab;                  /* text: tokens of a sentence */
	const char *sparse;                     /* text: a model of sparse attention with its options; NULL: full attention */
	int64_t nodes, hops;                    /* graphs */
	int64_t crops;                          /* DINO: local ones; classes are prototypes, decoder_dim the head's width */
};

/* What a model declares while it is recorded. Inputs that it does not have stay NULL. */
struct bench_inputs {
	nr_t *image;                            /* (B,C,H,W) */
	nr_t *labels;                           /* (B) int32 */
	nr_t *kept, *restore, *weight;          /* MAE's mask: (B,K) int32, (B,N+1) int32, (B,N) */
	nr_t *ids, *valid;                      /* text: (rows,T), (rows) int32; a sample's rows are the same sentence */
	struct nr_inputs graph;
	nr_t *target;                           /* (B,1); DINO: (2 B,prototypes) */
	nr_t *local;                            /* DINO: (crops B,C,h,w) */
	nr_t *truth, *sizes;                    /* detectors: boxes (B,G,4) with their classes in labels; (B,2) */
};
struct bench;

struct bench_model {
	nr_t *(*train)(struct nr_net *, const struct bench_size *, struct bench_inputs *);      /* the loss */
	nr_t *(*infer)(struct nr_net *, const struct bench_size *, struct bench_inputs *);      /* the output */
	/* Of one forward: products only. NULL: as the recorded graph has them. */
	double (*flops)(const struct bench_size *, bool train);
	struct nr_norm_defaults norms;          /* of a case with a model's name: that model's */
	void (*fill)(const struct bench *);     /* inputs other than texts, pictures and labels; NULL: there are none */
	/* What a training step draws for itself, as the peer does inside its step; NULL: nothing. */
	void (*draw)(const struct bench_size *, const struct bench_inputs *, const struct nr_plan *, int64_t step);
	/* What a training step has beside the plan and AdamW: made once, run before the plan and after AdamW, freed. NULL: nothing. */
	int (*open)(struct bench *, struct nr_error *);
	void (*before)(struct bench *), (*after)(struct bench *), (*close)(struct bench *);
};

struct bench_case {
	const char *name, *title, *peer;        /* peer: script and its arguments */
	const struct bench_model *model;
	struct bench_size full, tiny;
};
extern const struct bench_case bench_cases[];    /* ends with a NULL name */
bool bench_is_latency(const struct bench_case *);        /* one sample: the time of a forward pass is what counts */
extern const struct bench_model bench_vit, bench_backbone, bench_mae, bench_simcse, bench_graphormer, bench_longtext, bench_bigbird,
	bench_reformer, bench_dino, bench_detect;

struct bench_target {
	const struct bench_case *of;
	const struct bench_size *size;
	bool train, tiny, rebuild;              /* rebuild: as NR_PLAN_REBUILD */
	const char *norm;                       /* norm plan; NULL: the model's own */
};
/* "CASE", "CASE/train" or "CASE/infer"; the bare name means train. Unknown names come with the nearest. */
int bench_target_parse(struct bench_target *, const char *text, bool tiny, struct nr_error *);
const char *bench_target_text(const struct bench_target *, char *buf, size_t size);

/* What the models share (block.c). */
int64_t bench_patches(const struct bench_size *);
double bench_block_flops(double batch, double tokens, double dim);

/* ---- one case, ready to run (run.c) ---- */

struct bench {
	struct bench_target target;
	struct nr_store *store;
	struct nr_net *net;
	struct nr_plan *plan;
	nr_t *out;
	struct bench_inputs in;
	struct nr_exec exec;
	struct nr_optim optim;
	struct nr_params params;
	void *own;                              /* of the model, while training */
	double plan_seconds;                    /* to record and to plan, without initial values */
};
int bench_open(struct bench **, const struct bench_target *, unsigned plan_flags, struct nr_error *);
void bench_close(struct bench *);               /* NULL is fine */
void bench_step(struct bench *);                /* training: forward, backward, AdamW; else forward */
double bench_forward_flops(const struct bench *);        /* as recorded, products only */
void bench_update(struct bench *);              /* AdamW alone */
double bench_loss(const struct bench *);        /* of the last training step; 0 for inference */

/* ---- measuring (measure.c) ---- */

struct bench_options {
	double seconds;
	int64_t rounds;
	int32_t peer;                           /* enum bench_peer */
	bool json, tiny, profile, rebuild;
	struct nr_list norm, shapes;            /* of `bench norms`; empty: all of them */
	char *text, *vocab;                     /* of `bench tokenize`; empty: made up, and those of the tests */
	char *model;                            /* of `bench embed`, which takes text too */
};
/* both: eager and compile; strong: the fastest of several settings of PyTorch; all: these three; onnx: eager and onnxruntime. */
enum bench_peer { BENCH_NONE, BENCH_EAGER, BENCH_COMPILE, BENCH_BOTH, BENCH_STRONG, BENCH_ALL, BENCH_ONNX };

/* The system's state before a measurement, for foreign_cpu: CPU seconds of other processes by wall time. */
struct bench_load { double busy, own, wall; };
struct bench_load bench_load_start(void);
double bench_load_share(const struct bench_load *);
double bench_median(double *v, int64_t n);      /* sorts v */
long bench_peak_rss_mib(void);

/* The most that the machine does on all threads: multiply-adds (two operations each) and bytes read and written by a copy beyond the
 * caches (limits.c). 0: not measured. */
struct bench_limits { double gflops, gbs; };
struct bench_limits bench_limits_before(bool tiny);     /* leaves no trace in the peak memory; where it would, all is 0 */
void bench_limits_measure(struct bench_limits *, bool tiny);    /* again: the better figure stays; 25 ms */
/* peak_gflops and copy_gbs and, if gflops > 0, its share_of_peak. */
void bench_limits_put(json_t *record, const struct bench_limits *, double gflops);
void bench_limits_add(json_t *record, bool tiny);       /* measured now, for records that count no operations */

/* GFLOP/s of our own product 1576x768x768: the median of 15. 0 when out of memory. */
double bench_ref_gflops(bool tiny);
json_t *bench_rounded(double);                  /* three digits behind the point are enough for every figure */
/* A record of the target with the keys of peers/common.py and ours. NULL and err on failure. */
json_t *bench_measure(const struct bench_target *, const struct bench_options *, struct nr_error *);
/* Time by kind of instruction and its distance from its limit, as a table or as one record with "ops" (profile.c). */
int bench_profile(const struct bench_target *, const struct bench_options *, struct nr_error *);

/* ---- against the peers, each measurement in its own process (peer.c) ---- */

/* The record of bench_measure plus peer, peer_ms, peer_ms_best, ratio, peer_rss_mib, rss_share (of the fastest peer),
 * and "peers": the same for each mode asked for. */
const char *bench_peer_title(const char *mode);         /* "torch eager" of "eager" */
json_t *bench_compare(const struct bench_target *, const struct bench_options *, int threads, struct nr_error *);

enum { BENCH_MAX_ROUNDS = 100 };
/* Runs a program and returns the lines of its output that are JSON objects, as an array (spawn.c). */
json_t *bench_records(char *const argv[], struct nr_error *);
/* A file of the source tree; not 0: it is not there. */
int bench_find_file(const char *relative, char *buf, size_t size);
/* A file of the source tree, and the Python that has PyTorch; both buffers have `size` bytes. */
int bench_find_peer(const char *relative, char *script, char *python, size_t size, struct nr_error *);

/* ---- normalizations (norms.c, norms_run.c) ---- */

struct bench_shape { int64_t B, T, C; };
int bench_shape_parse(struct bench_shape *, const char *text, struct nr_error *);
/* Special tokens, grid and heads as the peer's script takes them: T = n^2 or 1 + n^2, else the squarest grid; heads of
 * 64 channels. separate: at least one special token. */
struct nr_tokens bench_tokens(struct bench_shape, bool separate);

struct bench_times { double forward, both, flops; };    /* seconds, medians; operations of forward. forward 0: the norm does nothing */
/* Forward alone and forward with backward of one norm, each for so many seconds. */
int bench_norm_time(const char *text, struct bench_shape, bool tiny, double seconds, struct bench_times *, struct nr_error *);
double bench_copy_time(struct bench_shape, bool tiny, double seconds);          /* 0 when out of memory */
int bench_norms(const struct bench_options *, int threads, struct nr_error *);

/* ---- others ---- */

/* MB/s of the tokenizers on one thread, and whether the peer's ids are equal (tokenize.c). */
int bench_tokenize(const struct bench_options *, struct nr_error *);
int bench_startup(const struct bench_options *, struct nr_error *);

/* Texts embedded in a second, and memory, also beside PyTorch (embed.c). */
int bench_embed(const struct bench_options *, int threads, struct nr_error *);

void bench_print_header(FILE *);
void bench_print(FILE *, const json_t *record); /* one row for us and one for each peer (print.c) */
int bench_json_line(FILE *, json_t *record, struct nr_error *);         /* takes the reference; 6 digits */
int bench_gemm(const struct bench_options *, struct nr_error *);        /* gemm.c */
int bench_scaling(const struct bench_options *, struct nr_error *);     /* scaling.c */
/* t-SNE against scikit-learn, uniformity against SGEMM (tsne.c, uniformity.c). */
int bench_tsne(const struct bench_options *, int threads, struct nr_error *);
int bench_uniformity(const struct bench_options *, struct nr_error *);
/* Training steps on the ranks of an MPI launcher (ranks.c). */
int bench_ranks(const struct bench_target *, const struct bench_options *, struct nr_error *);
/* The replayed plan against the same kernels called from a hand-written loop (hand.c). */
int bench_loop(const struct bench_target *, const struct bench_options *, struct nr_error *);

#endif
