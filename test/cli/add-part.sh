#!/bin/bash
# A new part of an analysis is one file and one line (CONTRIBUTING.md): command, help, table of the documentation and report know it.
set -euo pipefail
# shellcheck source=test/cli/add_one.inc
. "$(dirname "$0")/add_one.inc"
# shellcheck source=test/cli/made_up.inc
. "$source/test/cli/made_up.inc"

add_line analysis/parts.def 'PART(tally)'
cat >"$dir/tree/src/analysis/part_tally.c" <<'END'
/* tally: how many samples were seen, and made-up numbers for each layer. */
#include "analysis/analysis.h"

struct tally { int64_t samples; };

static int take(struct nr_analysis *a, void *own, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	((struct tally *)own)->samples += b->samples;
	return NR_OK;
}

static json_t *json(const struct nr_analysis *a, const void *own)
{
	json_t *all = json_array();
	for (int64_t i = 0; i < a->taps.layers; i++)
		json_array_append_new(all, json_pack("{s:s, s:[f,f]}", "layer", a->taps.layer[i].name, "heads",
			(double)((const struct tally *)own)->samples, (double)i));
	return all;
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	nr_str_printf(text, "\ntally: %lld samples\n", (long long)((const struct tally *)own)->samples);
}

static const struct nr_part_number numbers[] = { { "tally", "how many there were", "nobody's" }, { .name = NULL } };
static const struct nr_part_curve curves[] = { { "Tally by layer", "samples", "It counts.", "[].heads[]", NR_LINEAR }, { .title = NULL } };
static struct nr_part_matrix heads(const json_t *analysis, struct nr_arena *arena)
{
	return nr_part_matrix_rows(json_object_get(analysis, "tally"), "layer", "heads", NULL, arena);
}
static const struct nr_part_heat heats[] = { { "Tally of heads", "layer", "head", "It counts.", 0, 0, heads }, { .title = NULL } };

const struct nr_part nr_part_tally = {
	.name = "tally", .title = "tally", .size = sizeof(struct tally), .texts = true, .take = take, .json = json, .show = show,
	.told = { .about = "how many samples there are", .numbers = numbers, .curves = curves, .heats = heats, .measure = "tally",
		.cite = "Anon. 2026" },
};
END
build norma

knows "help" "tally          how many samples there are" "$norma" analyze --help
knows "the documentation" "| \`tally\` | pictures, texts | tally | how many there were | nobody's |" "$norma" analyze --parts
made_up "$dir/data/mnist" train 40
made_up "$dir/data/mnist" t10k 10
export NORMA_DATA=$dir/data
knows "a training" "step" "$norma" train --data mnist --model vit_nano:dim=8,depth=2,heads=1,patch=14 --batch 20 --steps 1 --out "$dir/run"
knows "the analysis" "tally: 10 samples" "$norma" analyze "$dir/run/model.safetensors" --only tally,layers --out "$dir/run"
grep -q '"tally":' "$dir/run/analysis.json" || fail "analysis.json lacks it"
knows "the report" "" "$norma" report "$dir/run" --output "$dir/page.html"
for text in "Tally by layer" "Tally of heads" "measure, tally: Anon. 2026"; do
	grep -qF "$text" "$dir/page.html" || fail "the report lacks '$text'"
done
misses "a name that is nearly right" "did you mean 'tally'?" "$norma" analyze "$dir/run/model.safetensors" --only taly
exit "$failed"
