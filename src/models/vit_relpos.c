/* vit_relpos: timm's ViTs with relative positions, from a table or from an MLP on log-spaced offsets as in Swin v2 (arXiv:2111.09883), also
 * with norms behind the branches (rpn: placement=respost). See vit_graph.c. */
#include "models/vit.h"

static const struct nr_preset presets[] = {
	{ "relpos/b", "dim=768,heads=12,pos=none,class_token=0,qkv_bias=0,rel_pos=mlp,pool=avg" }, { NULL, NULL },
};
static const struct nr_preset plans[] = { { "relpos/b", "layer residual=layerscale:init=1e-5" }, { NULL, NULL } };

#define KNOWN(name, text, norms) { name, text, norms },
static const struct nr_architecture known[] = {
#include "models/vit_relpos_timm.def"
	{ NULL, NULL, NULL },
};
#undef KNOWN

static const struct nr_rename timm[] = {
	{ "attn.rel_pos.table", "attn.rel_pos.relative_position_bias_table" },
	{ "shared_rel_pos.table", "shared_rel_pos.relative_position_bias_table" },
	{ "attn.in.", "norm1." }, { "mlp.in.", "norm2." }, { "attn.out.", "norm1." }, { "mlp.out.", "norm2." },
	{ "attn.qk.q.", "attn.q_norm." }, { "attn.qk.k.", "attn.k_norm." }, { "attn.scale.", "ls1." }, { "mlp.scale.", "ls2." },
	{ "fc.", "fc_norm." }, { "final.", "norm." }, { NULL, NULL },
};
static const char *const unused[] = { "*relative_position_index", "*rel_coords_log", NULL };
static const struct nr_naming namings[] = { { .name = "timm", .rules = timm, .ignored = unused }, { .name = NULL } };

static const struct nr_model_file file = {
	.signs = nr_vit_signs, .measure = nr_vit_measure, .config = nr_vit_config, .doubt = NR_VIT_DOUBT,
};

const struct nr_model nr_model_vit_relpos = {
	.name = "vit_relpos", .title = "ViT with relative positions", .cite = "arXiv:2111.09883", .presets = presets, .known = known,
		.plans = plans,
	.namings = namings, .norms = NR_VIT_NORMS, .file = &file, NR_VIT_GRAPH,
};
