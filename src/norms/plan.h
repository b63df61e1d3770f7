/* The inside of a norm plan: rules in the order given, the placement's default sites, and the sites seen so far. */
#ifndef NR_NORM_PLAN_H
#define NR_NORM_PLAN_H

#include <stdbool.h>

#include "base/mem.h"
#include "norma/norm.h"

enum { NR_MAXRULES = 256, NR_MAXSITES = 32 };

/* x + y in other forms: gamma y (LayerScale), alpha y with alpha = 0 at first (ReZero), a x + y (DeepNorm, Keel), a step on the sphere
 * (nGPT). */
enum nr_residual_kind {
	NR_RESIDUAL_PLAIN, NR_RESIDUAL_LAYERSCALE, NR_RESIDUAL_REZERO, NR_RESIDUAL_DEEPNORM, NR_RESIDUAL_KEEL, NR_RESIDUAL_NGPT
};
/* What a norm at attn.qk or attn.v sees: each head, with one gain for all or one for each head, or the whole width. */
enum nr_qk { NR_QK_HEAD, NR_QK_HEADS, NR_QK_WIDTH };
/* How a block is built: attention, then the MLP; both from one norm; or nGPT's block on the sphere. */
enum nr_block_layout { NR_LAYOUT_SERIAL, NR_LAYOUT_PARALLEL, NR_LAYOUT_NGPT };

struct nr_rule {
	const char *text, *pattern, *norm;  /* "attn.in=ln", its left and right side */
	int64_t used;
};

struct nr_norm_plan {
	struct nr_arena *arena;             /* the net's */
	struct nr_norm_defaults defaults;
	struct nr_rule rule[NR_MAXRULES];
	int32_t rules;
	const char *sites[NR_MAXSITES];     /* that `*` stands for */
	int32_t n_sites;
	bool subln;                         /* Sub-LN's initial values */
	enum nr_residual_kind residual;
	double residual_number;             /* first value of LayerScale's or nGPT's gain; Keel's factor, 0: two for each block */
	enum nr_residual_kind residual_of_placement;   /* where the plan names none: */
	bool residual_named;
	enum nr_qk qk;
	enum nr_block_layout layout;
	const char *placement;              /* as the plan names it */
	bool block_seen;                    /* the model is made of nr_block, which knows layouts and BRANCH.carry */
	struct nr_norm_watch watch;         /* at NULL: none */
	struct nr_site *seen;
	int64_t n_seen, cap_seen;
};

/* Does the site get a norm? Leaves no trace, unlike nr_norm_at. */
bool nr_norm_there(struct nr_net *, const char *site);
/* Reads the items of a plan. */
int nr_norm_plan_parse(struct nr_norm_plan *, const char *text, struct nr_error *);
/* Does the pattern match the site (its full name and its name in the model)? of(ctx, at): how many there are of the thing
 * whose number stands at that place of the name, 0 when unknown. */
struct nr_site_name {
	const char *full, *local;
	int64_t (*of)(const void *context, int64_t at);
	const void *context;
};
bool nr_pattern_match(const struct nr_norm_plan *, const char *pattern, const struct nr_site_name *);
/* The pattern that means one site: "blocks[3].attn.in" of "blocks.3.attn.in"; NULL: out of memory. */
char *nr_pattern_of(const char *site, struct nr_arena *);
/* 0, or what is wrong with the pattern's form. */
int nr_pattern_check(const char *pattern, struct nr_error *);

#endif
