/* A norm plan from flags, and plans cut down. */
#ifndef NR_CHOICE_H
#define NR_CHOICE_H

#include "norma/norm.h"

/* The flags --norm, --placement, --patch-norm and --residual; the rows of an option table for a field `f` of type
 * struct nr_norm_choice, and the plan that they make. NULL when out of memory. */
#define NR_NORM_ROW(S, f, part, name_, var, help_)                                                                          \
	{ .name = name_, .type = NR_TSTRING, .offset = offsetof(S, f.part), .size = sizeof(char *), .text = "", .metavar = var, \
	  .help = help_ }
#define NR_OPT_NORMS(S, f)                                                                                                   \
	NR_NORM_ROW(S, f, norm, "norm", "PLAN", "norms and where they sit: \"ln\", \"sep(bn,ln)\", \"blocks[0:6].*=dtn mlp.in=ln\""), \
	NR_NORM_ROW(S, f, placement, "placement", "P", "pre, post, prepost, sandwich, respost, \"pre,post\", normformer, subln, peri, " \
		"peri_embed, mix, mix:post=K, hybrid, hybrid_star, keel, ngpt, parallel, olmo2, gemma2"), \
	NR_NORM_ROW(S, f, patch, "patch_norm", "V", "Dual PatchNorm: dual, pre, post, post_posemb, rms, ..."),                     \
	NR_NORM_ROW(S, f, residual, "residual", "R", "plain, layerscale:init=1e-4, rezero, deepnorm, keel, ngpt")
const char *nr_norm_choice_text(const struct nr_norm_choice *, struct nr_arena *);
/* A plan's text without the rules whose pattern begins with this scope: that of an encoder without its "decoder". */
const char *nr_norms_without(const char *text, const char *scope, struct nr_arena *);

#endif
