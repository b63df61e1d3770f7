#!/bin/bash
# A new model is one file and one line (CONTRIBUTING.md): list, norm plans, trainings, files under public names and their config.json
# know it, and a public file is recognised, without another edit.
set -euo pipefail
# shellcheck source=test/cli/add_one.inc
. "$(dirname "$0")/add_one.inc"
# shellcheck source=test/cli/made_up.inc
. "$source/test/cli/made_up.inc"
# shellcheck source=test/cli/strip.inc
. "$source/test/cli/strip.inc"

add_line models/models.def 'MODEL(bag)'
cat >"$dir/tree/src/models/bag.c" <<'END'
/* bag: a bag of patches: norm, one layer, mean. */
#include "models/guess.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

struct bag { int64_t image, channels, patch, dim, classes; };
static const struct nr_option options[] = {
	NR_OPT_INT(struct bag, image, 28, 1, 4096, "size of the square picture"),
	NR_OPT_INT(struct bag, channels, 1, 1, 64, "channels of the picture"),
	NR_OPT_INT(struct bag, patch, 7, 1, 512, "size of a patch"),
	NR_OPT_INT(struct bag, dim, 16, 1, 65536, "width of a token"),
	NR_OPT_INT(struct bag, classes, 10, 1, 1000000, "outputs of the head"),
	NR_OPT_END
};
static const struct nr_preset presets[] = { { "bag_wide", "dim=64" }, { NULL, NULL } };
static const struct nr_rename public[] = { { "patch_embed.proj.", "stem." }, { "mixing.", "dense." }, { "final.", "norm." }, { NULL, NULL } };
static const struct nr_naming namings[] = { { .name = "satchel", .rules = public }, { .name = NULL } };

static nr_t *embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	const struct bag *c = conf;
	return nr_patch_linear(n, "patch_embed.proj", nr_patches(n, in->image, c->patch, NR_PATCH_CHANNEL_ROW_COL), c->patch, c->dim);
}
static nr_t *encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	const struct bag *c = conf;
	return nr_norm(n, "final", nr_linear(n, "mixing", x, c->dim));
}
static nr_t *pool(struct nr_net *n, nr_t *x, const void *conf) { return nr_mean_tokens(n, x, NULL); }

static const char *const signs[] = { "patch_embed.proj.weight", "mixing.weight", "final.weight", NULL };
static bool measure(const struct nr_look *l, struct nr_sighting *s)
{
	const struct nr_st_tensor *proj = nr_look_find(l, "patch_embed.proj.weight");
	if (!proj || proj->nd != 4 || nr_look_rows(l, "mixing.weight", proj->shape[0]) != proj->shape[0]) return false;
	nr_saw_key(s, "dim", proj->shape[0]);
	nr_saw(s, "channels", proj->shape[1]);
	nr_saw(s, "patch", proj->shape[2]);
	nr_saw(s, "classes", nr_look_rows(l, "head.weight", proj->shape[0]));
	if (l->config) nr_saw(s, "image", json_integer_value(json_object_get(l->config, "side"))), nr_saw_all(s);
	return true;
}
static json_t *config(const struct nr_saved *w)
{
	return json_pack("{s:s, s:I}", "model_type", "bag", "side", (json_int_t)((const struct bag *)w->model->conf)->image);
}
static const struct nr_model_file file = {
	.signs = signs, .measure = measure, .config = config, .doubt = "the picture's size cannot be seen: 28 is assumed",
};

const struct nr_model nr_model_bag = {
	.name = "bag", .title = "bag of patches", .cite = "none", .conf_size = sizeof(struct bag), .options = options, .presets = presets,
	.namings = namings, .norms = { .norm = "layer", .placement = "pre", .eps = 1e-5 }, .embed = embed, .encode = encode, .pool = pool,
	.file = &file,
};
END
build norma

knows "the list" "bag_wide" "$norma" models
knows "one model" "mixing" "$norma" models bag_wide
knows "completion" "bag_wide" "$norma" completion bash
knows "its names" "satchel" "$norma" convert --help
made_up "$dir/data/mnist" train 40
made_up "$dir/data/mnist" t10k 10
export NORMA_DATA=$dir/data
knows "a training" "step" "$norma" train --data mnist --model bag_wide:patch=14 --norm rms --batch 20 --steps 2 --out "$dir/run"
knows "evaluation" "top-1" "$norma" eval "$dir/run/model.safetensors"

# ---- a public file: other names, and nothing that says what it is
knows "convert" "norma names to satchel names" "$norma" convert "$dir/run/model.safetensors" "$dir/public/" --to satchel
grep -q '"side": 28' "$dir/public/config.json" || fail "no config.json of its own"
strip "$dir/public/model.safetensors" "$dir/plain"
knows "names of a public file" "satchel" "$norma" inspect "$dir/plain"
knows "a public file" "--model bag_wide:patch=14 --norm rms (the picture's size cannot be seen" "$norma" inspect "$dir/plain"
mv "$dir/plain" "$dir/public/model.safetensors"
knows "a public file with its config" "the config.json beside it)" "$norma" inspect "$dir/public/model.safetensors"
knows "opening it" "top-1" "$norma" eval "$dir/public" --data mnist
misses "a name that is nearly right" "did you mean 'bag_wide'?" "$norma" models bag_wid
exit "$failed"
