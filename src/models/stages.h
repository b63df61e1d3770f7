/* What hierarchical models share: a setting for each stage in one text, tokens as grids, and the list of blocks. */
#ifndef NR_STAGES_H
#define NR_STAGES_H

#include <stdbool.h>

#include "models/guess.h"

/* "64-128-320-512", or one number for all stages. */
struct nr_stage_list { const char *option, *text; double *to; };
/* Reads lists, which end with a NULL option: the first says how many stages there are. False: the net has failed. */
bool nr_stages_read(struct nr_net *, const struct nr_stage_list *, int64_t *count);
/* The first number of such a text, and what follows it: "-..." or "". NULL: it is none. */
const char *nr_stages_next(const char *text, double *number);
/* Of "8x4-7": "8-7" for part 0, "4-7" for part 1, as a number alone is both. "": out of memory. */
const char *nr_stages_part(const char *text, int part, struct nr_arena *);
/* Numbers as such a text; NULL: out of memory. */
int64_t nr_stages_count(const char *text);
int64_t nr_stages_last(const char *text);                      /* the number of the last stage; 0: it is no such text */
const char *nr_stages_text(const double *, int64_t count, struct nr_arena *);
/* In a file: widths, depths, ratios of MLPs and reductions of the stages, by patch.proj, mlp.fc1 and attn.sr; how many. -1: none. */
int64_t nr_look_stages(const struct nr_look *, double *dim, double *depth, double *mlp, double *sr);
/* The eps of a config of Hugging Face, which all norms of both PVTs share there, also those after patches and reductions. */
void nr_look_saw_eps(const struct nr_look *, struct nr_sighting *, const double *sr, int64_t count);

/* Tokens (B,T,C) without special ones as a grid (B,h,w,C), and back. */
nr_t *nr_as_grid(struct nr_net *, nr_t *tokens);
nr_t *nr_as_tokens(struct nr_net *, nr_t *grid);
/* A picture (B,C,H,W) as a grid (B,H,W,C). */
nr_t *nr_picture_grid(struct nr_net *, nr_t *image);
/* Tokens that feed attention of so many heads: norms that go by heads take them from the tokens. */
nr_t *nr_with_heads(struct nr_net *, nr_t *tokens, int64_t heads);
/* The part of samples that skip block `number` of `count`: the last one skips most. */
double nr_drop_path_at(double most, int64_t number, int64_t count);
/* Linear layer with a bias or without. */
nr_t *nr_linear_or(struct nr_net *, const char *name, nr_t *x, int64_t out, bool bias);

/* Attention of queries q (B,T,C) with packed keys and values (B,S,2C) between the block's sites attn.qk, attn.heads, attn.inner, then
 * the projection. */
struct nr_stage_attention { int64_t heads; double dropout, attention_dropout; nr_t *bias; };      /* bias: (H,T,S), or NULL */
nr_t *nr_kv_branch(struct nr_net *, nr_t *q, nr_t *kv, const struct nr_stage_attention *);

#endif
