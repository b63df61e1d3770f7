/* See levit_names.h. timm has stages with a downsampling at the start of each; Graham's code counts all branches of the model, Hugging
 * Face's those of a stage, with the downsampling at its end. Deployed, norms are folded into their layers. */
#include "models/levit_names.h"

#include <string.h>

#include "base/mem.h"
#include "base/safetensors.h"
#include "models/names.h"

#define TIMM                                                                                                                    \
	{ "shrink.attn.", "downsample.attn_downsample." }, { "shrink.", "downsample." }, { "attn.in.", "norm1." },                \
	{ "mlp.in.", "norm2." }, { "biases", "attention_biases" }
static const struct nr_rename timm[] = {
	{ "stem.#.norm.", "stem.conv#+.bn." }, { "stem.#.", "stem.conv#+.linear." }, TIMM,
	{ "qkv.norm.", "qkv.bn." }, { "qkv.weight", "qkv.linear.weight" }, { "kv.norm.", "kv.bn." }, { "kv.weight", "kv.linear.weight" },
	{ "q.norm.", "q.ln.bn." }, { "q.weight", "q.ln.linear.weight" }, { "proj.norm.", "proj.ln.bn." },
	{ "proj.weight", "proj.ln.linear.weight" }, { "fc1.norm.", "ln1.bn." }, { "fc1.weight", "ln1.linear.weight" },
	{ "fc2.norm.", "ln2.bn." }, { "fc2.weight", "ln2.linear.weight" }, { "head.norm.", "head.bn." },
	{ "head_dist.norm.", "head_dist.bn." }, { "head.weight", "head.linear.weight" }, { "head.bias", "head.linear.bias" },
	{ "head_dist.weight", "head_dist.linear.weight" }, { "head_dist.bias", "head_dist.linear.bias" }, { NULL, NULL },
};
static const struct nr_rename timm_folded[] = {
	{ "stem.#.", "stem.conv#+." }, TIMM, { "q.", "q.ln." }, { "proj.", "proj.ln." }, { "fc1.", "ln1." }, { "fc2.", "ln2." },
	{ NULL, NULL },
};
static const struct nr_rename official[] = {
	{ "biases", "attention_biases" }, { "qkv.norm.", "qkv.bn." }, { "qkv.weight", "qkv.c.weight" }, { "kv.norm.", "kv.bn." },
	{ "kv.weight", "kv.c.weight" }, { "q.norm.", "q.1.bn." }, { "q.weight", "q.1.c.weight" }, { "proj.norm.", "proj.1.bn." },
	{ "proj.weight", "proj.1.c.weight" }, { "fc1.norm.", "0.bn." }, { "fc1.weight", "0.c.weight" }, { "fc2.norm.", "2.bn." },
	{ "fc2.weight", "2.c.weight" }, { "head.norm.", "head.bn." }, { "head_dist.norm.", "head_dist.bn." },
	{ "head.weight", "head.l.weight" }, { "head.bias", "head.l.bias" }, { "head_dist.weight", "head_dist.l.weight" },
	{ "head_dist.bias", "head_dist.l.bias" }, { NULL, NULL },
};
static const struct nr_rename official_folded[] = {
	{ "biases", "attention_biases" }, { "q.", "q.1." }, { "proj.", "proj.1." }, { "fc1.", "0." }, { "fc2.", "2." }, { NULL, NULL },
};
#define HF_STEM "levit.patch_embeddings.embedding_layer_#+."
static const struct nr_rename hf[] = {
	{ "stem.#.norm.", HF_STEM "batch_norm." }, { "stem.#.", HF_STEM "convolution." }, { "biases", "attention_biases" },
	{ "qkv.norm.", "queries_keys_values.batch_norm." }, { "qkv.", "queries_keys_values.linear." },
	{ "kv.norm.", "keys_values.batch_norm." }, { "kv.", "keys_values.linear." }, { "q.norm.", "queries.batch_norm." },
	{ "q.", "queries.linear." }, { "proj.norm.", "projection.batch_norm." }, { "proj.", "projection.linear." },
	{ "fc1.norm.", "linear_up.batch_norm." }, { "fc1.", "linear_up.linear." }, { "fc2.norm.", "linear_down.batch_norm." },
	{ "fc2.", "linear_down.linear." }, { "head.norm.", "classifier.batch_norm." }, { "head.", "classifier.linear." },
	{ "head_dist.norm.", "classifier_distill.batch_norm." }, { "head_dist.", "classifier_distill.linear." }, { NULL, NULL },
};

/* ---- branches by number -------------------------------------------------------------------------------------------------- */

enum { STEM = 6 };                          /* convolutions, at most */

struct list { struct nr_rename *rule; int64_t count; struct nr_arena *arena; bool failed; };

static void add(struct list *l, const char *ours, const char *theirs)
{
	l->failed |= !ours || !theirs;
	l->rule[l->count++] = (struct nr_rename){ ours, theirs };
}

static struct list make(const int64_t *depth, struct nr_arena *arena)
{
	int64_t rules = 2 * STEM + 1;
	for (int i = 0; i < NR_MAXLEVELS; i++) rules += 2 * depth[i] + 2;
	struct list l = { nr_arena_alloc(arena, (size_t)rules * sizeof *l.rule), 0, arena, false };
	l.failed = !l.rule;
	return l;
}

static const struct nr_rename *finish(struct list *l)
{
	add(l, "", "");
	l->rule[l->count - 1] = (struct nr_rename){ NULL, NULL };
	return l->failed ? NULL : l->rule;
}

/* Both branches of a block or of a downsampling, with the text before their number; `inside` is the name of what a skip path goes round. */
static void branches(struct list *l, const char *scope, const char *before, int64_t number, const char *attention_inside)
{
	add(l, nr_arena_printf(l->arena, "%s.attn.", scope), nr_arena_printf(l->arena, "%s%lld.%s", before, (long long)number,
		attention_inside));
	add(l, nr_arena_printf(l->arena, "%s.mlp.", scope), nr_arena_printf(l->arena, "%s%lld.m%s.", before, (long long)number + 1,
		*before == 'b' ? "" : "odule"));
}

static const struct nr_rename *by_stage(const struct nr_numbers *numbers, struct nr_arena *arena)
{
	const int64_t *depth = numbers->depth;
	struct list l = make(depth, arena);
	for (int i = 0; i < NR_MAXLEVELS && !l.failed; i++) {
		const char *here = nr_arena_printf(arena, "levit.encoder.stages.%d.layers.", i);
		for (int64_t j = 0; j < depth[i] && here; j++)
			branches(&l, nr_arena_printf(arena, "stages.%d.blocks.%lld", i, (long long)j), here, 2 * j, "module.");
		if (here && depth[i]) branches(&l, nr_arena_printf(arena, "stages.%d.shrink", i + 1), here, 2 * depth[i], "");
	}
	return finish(&l);
}

static const struct nr_rename *by_model(const int64_t *depth, struct nr_arena *arena, bool folded)
{
	struct list l = make(depth, arena);
	int64_t number = 0;
	for (int i = 0; i < STEM && !l.failed; i++) {           /* activations stand between them */
		if (!folded) add(&l, nr_arena_printf(arena, "stem.%d.norm.", i), nr_arena_printf(arena, "patch_embed.%d.bn.", 2 * i));
		add(&l, nr_arena_printf(arena, "stem.%d.", i), nr_arena_printf(arena, "patch_embed.%d.%s", 2 * i, folded ? "" : "c."));
	}
	for (int i = 0; i < NR_MAXLEVELS && !l.failed; i++) {
		for (int64_t j = 0; j < depth[i]; j++, number += 2)
			branches(&l, nr_arena_printf(arena, "stages.%d.blocks.%lld", i, (long long)j), "blocks.", number, "m.");
		if (!depth[i]) continue;
		branches(&l, nr_arena_printf(arena, "stages.%d.shrink", i + 1), "blocks.", number, "");
		number += 2;
	}
	return finish(&l);
}
static const struct nr_rename *by_model_plain(const struct nr_numbers *n, struct nr_arena *arena)
{
	return by_model(n->depth, arena, false);
}
static const struct nr_rename *by_model_folded(const struct nr_numbers *n, struct nr_arena *arena)
{
	return by_model(n->depth, arena, true);
}

/* ---- blocks of each stage in a file ---------------------------------------------------------------------------------------- */

static void depths_by_stage(const struct nr_st_file *f, int64_t *depth)
{
	for (int i = 0; i < NR_MAXLEVELS; i++)
		for (char name[128]; depth[i] < 1024; depth[i]++) {
			snprintf(name, sizeof name, "levit.encoder.stages.%d.layers.%lld.module.attention_biases", i,
				2 * (long long)depth[i]);
			if (!nr_st_find(f, name) && !nr_st_find(f, name + strlen("levit."))) break;
		}
}

static void depths_by_model(const struct nr_st_file *f, int64_t *depth)
{
	int64_t number = 0;
	for (int i = 0; i < NR_MAXLEVELS; i++, number += 2)
		for (char name[128]; depth[i] < 1024; depth[i]++, number += 2) {
			snprintf(name, sizeof name, "blocks.%lld.m.attention_biases", (long long)number);
			if (!nr_st_find(f, name)) break;
		}
}

static const char *const ignored[] = { "*.num_batches_tracked", "*.attention_bias_idxs", NULL };
const struct nr_naming nr_levit_namings[] = {
	{ .name = "timm", .rules = timm, .ignored = ignored },
	{ .name = "official", .rules = official, .numbered = by_model_plain, .depths = depths_by_model, .ignored = ignored },
	{ .name = "huggingface", .rules = hf, .numbered = by_stage, .depths = depths_by_stage, .ignored = ignored },
	{ .name = "huggingface_base", .rules = hf, .without = "levit.", .numbered = by_stage, .depths = depths_by_stage,
		.ignored = ignored },
	{ .name = "timm_folded", .rules = timm_folded, .ignored = ignored },
	{ .name = "official_folded", .rules = official_folded, .numbered = by_model_folded, .depths = depths_by_model, .ignored = ignored },
	{ .name = NULL },
};
