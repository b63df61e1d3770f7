#!/bin/bash
# A new task is one file and one line (CONTRIBUTING.md): a copy of the tree gets one, and help, completion, training, resuming, recipes,
# records, report and study know it without another edit.
set -euo pipefail
# shellcheck source=test/cli/add_one.inc
. "$(dirname "$0")/add_one.inc"
# shellcheck source=test/cli/made_up.inc
. "$source/test/cli/made_up.inc"

# ---- the one line
add_line tasks/tasks.def 'TASK(bright)'

# ---- the one file
cat >"$dir/tree/src/tasks/bright.c" <<'END_OF_FILE'
/* bright: how bright a picture is, as a value; loss = weight mean (y - mean of the input)^2. */
#include <math.h>

#include "norma/nn.h"
#include "train/task.h"

struct settings { double weight; };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct settings, weight, 1, 0, 100, "of the squared error"),
	NR_OPT_END
};

struct bright { nr_t *image, *target, *output; struct nr_runner eval; };

static double brightness(const float *image, int64_t n)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++) sum += (double)image[i];
	return sum / (double)n;
}

static int settle(struct nr_task_run *r, struct nr_error *err)
{
	if (nr_model_expect(&r->w->model, NR_PICTURES, err)) return err->code;
	return nr_task_set(r, "classes", 1, err) ? (int)err->code : nr_task_set(r, "channels", r->source->channels, err);
}

static nr_t *record(struct nr_task_run *r)
{
	struct bright *s = r->own;
	const struct settings *o = r->settings;
	const int64_t size = nr_model_int(&r->w->model, "image");
	s->image = nr_input(r->net, "image", NR_REAL, NR_SHAPE(r->c->batch, nr_model_int(&r->w->model, "channels"), size, size));
	s->target = nr_input(r->net, "target", NR_REAL, NR_SHAPE(r->c->batch, 1));
	s->output = nr_tap(r->net, "output", nr_model_logits(r->net, &r->w->model, &(struct nr_inputs){ .image = s->image }));
	return nr_scale(r->net, nr_known_loss(r->net, s->output, s->target, NR_KNOWN_SQUARE), o->weight);
}

static int ready(struct nr_task_run *r, int64_t batch, struct nr_error *err)
{
	return nr_runner_open(&((struct bright *)r->own)->eval, r->w, batch, err);
}

static void bind(struct nr_task_run *r, const struct nr_batch *b, int64_t number)
{
	const struct bright *s = r->own;
	const int64_t each = nr_len(s->image) / r->c->batch;
	nr_real *target = nr_plan_data(r->plan, s->target);
	(void)number;
	nr_from_floats(nr_plan_data(r->plan, s->image), b->image, nr_len(s->image));
	for (int64_t i = 0; i < r->c->batch; i++) target[i] = (nr_real)brightness(b->image + i * each, each);
}

static void measure(struct nr_task_run *r, const struct nr_batch *b, double *sum)
{
	const struct bright *s = r->own;
	const nr_real *y = nr_plan_data(r->plan, s->output), *target = nr_plan_data(r->plan, s->target);
	(void)b;
	for (int64_t i = 0; i < r->c->batch; i++) sum[0] += fabs((double)y[i] - (double)target[i]);
}

static void add_batch(void *out, const struct nr_runner *r, const struct nr_batch *b, int64_t first)
{
	double *error = out;
	const nr_real *y = nr_plan_data(r->plan, r->logits);
	const int64_t each = r->channels * r->size * r->size;
	(void)first;
	for (int64_t i = 0; i < b->samples; i++, error[1] += 1) error[0] += fabs((double)y[i] - brightness(b->image + i * each, each));
}

static int evaluate(struct nr_task_run *r, const struct nr_evaluation *e, double *value, int64_t *samples, struct nr_error *err)
{
	double error[2] = { 0 };
	if (nr_run_over(&((struct bright *)r->own)->eval, e, add_batch, error, err)) return err->code;
	value[0] = error[0] / error[1];
	*samples = (int64_t)error[1];
	return NR_OK;
}

static void close(struct nr_task_run *r) { nr_runner_close(&((struct bright *)r->own)->eval); }

static const struct nr_task_default defaults[] = { { "epochs", "3" }, { "lr", "1e-3" }, { NULL, NULL } };
static const struct nr_task_metric of_step[] = { { .name = "error", .title = "Error of brightness, training" }, { .name = NULL } };
static const struct nr_task_metric of_eval[] = {
	{ .name = "error", .label = "off", .title = "Error of brightness, held-out", .unit = "of the input", .lower = true, .wide = true },
	{ .name = NULL },
};

const struct nr_task nr_task_bright = {
	.name = "bright",
	.title = "brightness of pictures",
	.cite = "none but this test",
	.command = "brightness",
	.summary = "learn how bright pictures are",
	.usage = "[RECIPE.yaml] | --resume DIRECTORY",
	.about = "Learns the mean of a picture.",
	.options = options,
	.settings_size = sizeof(struct settings),
	.defaults = defaults,
	.sample = "picture",
	.own_size = sizeof(struct bright),
	.of_step = of_step,
	.of_eval = of_eval,
	.settle = settle,
	.record = record,
	.ready = ready,
	.bind = bind,
	.measure = measure,
	.evaluate = evaluate,
	.close = close,
};
END_OF_FILE

build norma unit-tasks
[ "$(sort -u "$dir/compiled" | grep -cvE '^test/|/generated/')" -le 2 ] || fail "more than the task and its registry is compiled: $(cat "$dir/compiled")"

# ---- who knows it
made_up "$dir/data/mnist" train 160
made_up "$dir/data/mnist" t10k 40
export NORMA_DATA=$dir/data
tiny=(--data mnist --model "vit_nano:dim=16,depth=1,heads=2,patch=7" --batch 16 --threads 1)
knows "the registry's test" "PASSED" "$dir/b/test/unit-tasks"
knows "help" "  brightness  learn how bright pictures are" "$norma" help
knows "its help" "--weight X" "$norma" brightness --help
knows "its help" "(default: 3;" "$norma" brightness --help
knows "completion" "brightness:*) list=" "$norma" completion bash
knows "the manual" "norma-brightness(1)" "$norma" man brightness

knows "a training" "done after 30 of 30 steps" "$norma" brightness "${tiny[@]}" --out "$dir/run"
knows "its result" '"best_error":' "$norma" brightness "${tiny[@]}" --out "$dir/one" --weight 2 --json
grep -q 'samples_per_s,train_loss,train_error,eval_error' <<<"$(head -1 "$dir/run/metrics.csv")" || fail "columns: $(head -1 "$dir/run/metrics.csv")"
awk -F, 'NR > 1 && $NF != "" { last = $NF; if (first == "") first = last } END { exit !(last < first / 2) }' "$dir/run/metrics.csv" ||
	fail "it learns nothing"
grep -q '^weight: 2' "$dir/one/config.yaml" || fail "config.yaml lacks its setting"
grep -q '"sample": "picture"' "$dir/run/env.json" || fail "the record lacks the word for a sample"

# killed and resumed: the same bits
"$norma" brightness "${tiny[@]}" --checkpoint-steps 2 --out "$dir/killed" >/dev/null 2>&1 & pid=$!
for ((i = 0; i < 6000; i++)); do [ ! -e "$dir/killed/last.safetensors" ] || break; sleep 0.05; done
kill -9 $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
knows "resuming" "after 30 of 30 steps" "$norma" brightness --resume "$dir/killed"
[ "$(bits "$dir/run/model.safetensors")" = "$(bits "$dir/killed/model.safetensors")" ] || fail "a resumed run ends with other bits"

# recipes: its own, and one of it given to another command
knows "a recipe" "done after 2 of 2" "$norma" brightness "$dir/run/config.yaml" --steps 2 --out "$dir/again"
"$norma" train "$dir/run/config.yaml" --out "$dir/no" >"$dir/out" 2>&1 && fail "train takes a recipe of another task"
grep -q "norma brightness $dir/run/config.yaml" "$dir/out" || fail "no hint at its command: $(cat "$dir/out")"
"$norma" train --task brigt --out "$dir/no" >"$dir/out" 2>&1 || true
grep -q "did you mean 'bright'?" "$dir/out" || fail "no nearest match: $(cat "$dir/out")"

knows "the runs" "brightness" "$norma" runs --store "$dir/runs.db"
knows "the report" "page.html" "$norma" report "$dir/run" -o "$dir/page.html"
for text in "Error of brightness, held-out" "pictures/s" "brightness of pictures: none but this test"; do
	grep -qF "$text" "$dir/page.html" || fail "the report lacks '$text'"
done
cat >"$dir/study.yaml" <<'END'
title: weights
stages: [brightness: {epochs: 1}]
base: {data: mnist, model: "vit_nano:dim=16,depth=1,heads=2,patch=7", batch: 16}
grid: {weight: [1, 2]}
out: study
END
(cd "$dir" && "$norma" study study.yaml >out 2>&1) || fail "a study: $(cat "$dir/out")"
grep -q "brightness.eval_error" "$dir/out" || fail "a study does not decide by the task's metric: $(cat "$dir/out")"
exit "$failed"
