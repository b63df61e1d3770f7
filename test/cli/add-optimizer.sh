#!/bin/bash
# A new optimizer is one file and one line, a new schedule one function and one line (CONTRIBUTING.md): trainings, help, page and
# completion know them without another edit.
set -euo pipefail
# shellcheck source=test/cli/add_one.inc
. "$(dirname "$0")/add_one.inc"
# shellcheck source=test/cli/made_up.inc
. "$source/test/cli/made_up.inc"

# ---- an optimizer with an option of its own, which looks at the sizes of matrices
add_line optim/optimizers.def 'OPTIMIZER(signs)'
cat >"$dir/tree/src/optim/signs.c" <<'END'
/* signs: w -= lr sign(g) / sqrt(columns), where |g| is above a floor. */
#include "optim/optimizers.h"

struct signs { double sign_floor; };
static const struct nr_option own[] = {
	NR_OPT_FLOAT(struct signs, sign_floor, 0, 0, 1e30, "gradients below it move nothing"),
	NR_OPT_END
};

static int slots(const struct nr_optim *o) { return 0; }
static size_t scratch(const struct nr_segment *s, int64_t count, int64_t chunks) { return 0; }

static void apply(const struct nr_optim_call *k, struct nr_optim_chunk c)
{
	const struct nr_segment *s = &k->segment[c.parameter];
	const double floor_ = ((const struct signs *)k->own)->sign_floor, cols = s->d && s->nd == 2 ? (double)s->d[1] : 1;
	const real lr = (real)(k->arg[c.parameter].lr / sqrt(cols));
	for (int64_t i = c.at; i < c.at + c.n; i++)
		if (fabs((double)s->grad[i]) > floor_) s->value[i] -= s->grad[i] > 0 ? lr : -lr;
}
static void step(const struct nr_optim_call *k) { nr_optim_each(k, apply); }

const struct nr_optimizer nr_optimizer_signs = {
	.name = "signs", .title = "signs of gradients", .cite = "none", .formula = "w -= lr sign(g) / sqrt(columns)",
	.own = own, .own_size = sizeof(struct signs), .slots = slots, .scratch = scratch, .step = step,
};
END
# ---- a schedule
add_line optim/schedules.def 'SCHEDULE(half, "base / 2")'
sed -i 's/^static double at_constant.*/&\nstatic double at_half(const struct nr_schedule *s, struct nr_schedule_at a) { return s->base \/ 2; }/' "$dir/tree/src/optim/schedule.c"
build norma

knows "the list" "signs of gradients" "$norma" optimizers
knows "the page" "| half | base / 2 |" "$norma" optimizers --markdown
knows "its option" "--sign-floor X" "$norma" train --help
knows "whose option it is" "gradients below it move nothing (signs)" "$norma" train --help
knows "completion" "sign-floor" "$norma" completion bash
made_up "$dir/data/mnist" train 40
made_up "$dir/data/mnist" t10k 10
export NORMA_DATA=$dir/data
model=vit_nano:dim=8,depth=1,heads=1,patch=14
# shellcheck disable=SC2317 # `knows` calls it
train() { "$norma" train --data mnist --model "$model" --batch 20 --optimizer signs --schedule half --warmup 0 --lr 0.01 "$@"; }
knows "a training" "step" train --steps 1 --out "$dir/one"
knows "a longer one" "step" train --steps 3 --out "$dir/three"
knows "one that does not move" "step" train --steps 1 --sign-floor 1e30 --out "$dir/still"
knows "a longer one that does not move" "step" train --steps 3 --sign-floor 1e30 --out "$dir/stiller"
weights() { tail -c 2000 "$dir/$1/model.safetensors" | cksum; }
[ "$(weights one)" != "$(weights three)" ] || fail "the optimizer moves nothing"
[ "$(weights still)" = "$(weights stiller)" ] || fail "its own option does not count"
grep -q '^sign_floor: 1e+*30$' "$dir/still/config.yaml" || fail "the record lacks the option: $(grep sign "$dir/still/config.yaml")"
[ "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "lr") c = i } NR == 2 { print $c }' "$dir/one/metrics.csv")" = 0.005 ] ||
	fail "the schedule does not count"
misses "a name that is nearly right" "did you mean 'signs'?" train --optimizer sings --out "$dir/none"
exit "$failed"
