/* For building models: normalizations, and the norm plan that says where they sit.
 *
 * Example:
 *   const struct nr_norm_defaults defaults = { .norm = "layer", .placement = "pre" };
 *   struct nr_store *store;
 *   int64_t count;
 *   if (nr_store_make(&store, 1, &err)) return 1;
 *   struct nr_net *net = nr_net_make(store);
 *   if (!nr_norms_use(net, "rms final=ln", &defaults, &err)) {
 *           nr_t *x = nr_input(net, "x", NR_REAL, NR_SHAPE(2, 5, 12));
 *           nr_norm(net, "final", nr_norm(net, "mlp.in", x));
 *           nr_norms_done(net, &err);
 *           const struct nr_site *site = nr_sites(net, &count);
 *           for (int64_t i = 0; i < count; i++) printf("%s: %s\n", site[i].name, site[i].norm);
 *   }
 *   nr_net_free(net);
 *   nr_store_free(store);
 */
#ifndef NORMA_NORM_H
#define NORMA_NORM_H

#include "norma/graph.h"

enum nr_norm_needs { NR_NEED_GRID = 1, NR_NEED_HEADS = 2, NR_NEED_BATCH = 4 };

struct nr_norm {
	const char *name, *alias;           /* "layer", "ln" (NULL: none) */
	const char *title, *cite, *equation;
	const char *about;                  /* a few sentences: what its statistics see and what sets it apart */
	const char *const *laws;            /* "dtn:lam=1 = layer": what `norma prove` shows of it; ends with NULL, or NULL */
	uint32_t needs;
	size_t conf_size;
	const struct nr_option *options;
	nr_t *(*build)(struct nr_net *, nr_t *x, const void *conf);
	const struct nr_op *op[4];          /* its own ops, so that tests and bench find them */
};

NR_API const struct nr_norm *const *nr_norms(void);         /* ends with NULL */
/* By name or alias; an unknown name is an error with the nearest match. */
NR_API const struct nr_norm *nr_norm_find(const char *name, struct nr_error *);
/* Builds the norm that a text such as "layer:eps=1e-6" describes, with its parameters under `scope`. */
NR_API nr_t *nr_norm_make(struct nr_net *, const char *scope, const char *text, nr_t *x);

/* For the try_case of a norm's op. The text is "TOKENS | OPTIONS" or OPTIONS alone: options as in a plan ("eps=1e-3"), and
 * tokens some of `sum` (x[0] + the next input is normalised), `special=1`, `heads=3`, `grid=3x4`, `valid` (the next input
 * holds the lengths), `pos` (the next input holds the places on the grid). Inputs are taken in the order of the words. */
NR_API nr_t *nr_norm_try(struct nr_net *, const struct nr_norm *, nr_t **x, const char *text);

/* ---- where norms sit ----------------------------------------------------------------------------------------------
 *
 * Models name sites; a norm plan maps sites to norms. A plan is a list of items:
 *
 *   NORM            at the default sites, those of the placement
 *   PATTERN=NORM    at the sites that match; the last rule that matches wins
 *   placement=P     pre post prepost sandwich respost none, or two of them, "pre,post": attention, MLP; normformer, subln,
 *                   subln_before_act, peri, peri_embed, mix, mix:post=3, hybrid, hybrid_star, keel, ngpt, parallel, olmo2, gemma2
 *   patch=V         Dual PatchNorm and its ablations: dual pre post post_posemb rms only_learnable no_learnable none
 *   residual=R      plain, layerscale:init=1e-4, rezero, deepnorm, keel:alpha=24, ngpt:init=0.05
 *   qk=S            what a norm at attn.qk and attn.v sees: head, heads (each with a gain of its own), width
 *   eps=E           of every norm whose text gives none, instead of the model's
 *
 * PATTERN: `attn.in`, `blocks[0:6].attn.in`, `blocks[-1].*`; `*` stands for the default sites, `**` for all. A plan without
 * NORM and PATTERN puts the model's own norm at the default sites. */

struct nr_norm_defaults {
	const char *norm, *placement;       /* "layer", "pre" */
	const char *sites;                  /* default sites apart from the blocks and "final": "embed"; or NULL */
	const char *plan;                   /* "ln stages[0].*=dtn": instead of `norm` where the user's plan names no norm; or NULL */
	const char *rules;                  /* "embed=layer residual=layerscale": items that hold before the plan's own; or NULL */
	double eps;                         /* where a norm's text gives none; 0: the norm's own */
};
/* Gives the net its plan; text NULL or "" is the model's default. */
NR_API int nr_norms_use(struct nr_net *, const char *text, const struct nr_norm_defaults *, struct nr_error *);
/* The norm that the plan has for this site of the present scope, with its parameters under SITE; x itself if there is none. */
NR_API nr_t *nr_norm(struct nr_net *, const char *site, nr_t *x);
/* The text of that norm, for models that apply it themselves; NULL if there is none. */
NR_API const char *nr_norm_at(struct nr_net *, const char *site);
/* What goes into a branch: norm BRANCH.carry on the stream itself, which *x becomes, then norm BRANCH.in. */
NR_API nr_t *nr_branch(struct nr_net *, const char *branch, nr_t **x);
/* x + y as the plan has it: norm BRANCH.out on y, the residual's scaling, drop path, the sum, norm BRANCH.res. */
NR_API nr_t *nr_residual(struct nr_net *, const char *branch, nr_t *x, nr_t *y, double drop_path);
/* The same by nr_add_reversible. */
NR_API nr_t *nr_residual_reversible(struct nr_net *, const char *branch, nr_t *x, nr_t *y);
/* What the plan (Sub-LN, DeepNorm) multiplies the initial values of value, output and MLP weights with. */
NR_API double nr_norms_gain(const struct nr_net *);
/* Calls watch.at at every site that has a norm, which its result then replaces: it may note what goes in and out, or put something
 * behind it (analysis). After nr_norms_use; site: the name in the model, full: with its scope, "blocks.3.attn.in". */
struct nr_norm_watch {
	nr_t *(*at)(void *context, struct nr_net *, const char *site, const char *full, nr_t *before, nr_t *after);
	void *context;
};
NR_API void nr_norms_watch(struct nr_net *, struct nr_norm_watch);
/* Does a pattern such as `blocks[3].attn.in` mean this site? For a watch, while its site is the present one. */
NR_API int nr_site_matches(struct nr_net *, const char *pattern, const char *site, const char *full);
/* After the model is recorded: a rule that no site matched is an error with the nearest site. */
NR_API int nr_norms_done(struct nr_net *, struct nr_error *);

/* A plan in parts, as the flags --norm, --placement, --patch-norm and --residual give it. NULL: none. */
struct nr_norm_choice { char *norm, *placement, *patch, *residual; };

struct nr_site { const char *name, *norm, *rule; };        /* "blocks.0.attn.in", "layer" (NULL: none) and who said so */
NR_API const struct nr_site *nr_sites(const struct nr_net *, int64_t *count);
NR_API const char *const *nr_placements(void);              /* names, ends with NULL; likewise: */
NR_API const char *const *nr_patch_norms(void);
NR_API const char *const *nr_residuals(void);

#endif
