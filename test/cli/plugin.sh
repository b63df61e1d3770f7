#!/bin/bash
# Plug-ins with an installed copy alone, by the commands of docs/plugins.md: every kind is used, recorded, found again, and refused where
# it should be.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
[ -z "${NORMA_SANITIZE:-}" ] || exit 77

DESTDIR=$tmp/stage cmake --install "$NORMA_BUILD" --prefix /opt/norma >/dev/null
cp examples/own_norm.c docs/plugins.md "$tmp"
cd "$tmp"
lib=$(dirname "$(find "$tmp/stage" -name libnorma.so)")
NORMA=$tmp/stage/opt/norma/bin/norma
export PKG_CONFIG_PATH=$lib/pkgconfig NORMA_DATA=$tmp/data OMP_NUM_THREADS=2
made_up data/mnist train 60
made_up data/mnist t10k 20
# plug SOURCE OBJECT FLAG...: the documented command, without a warning
plug() {
	# shellcheck disable=SC2046 # pkg-config gives words
	cc -O1 -Wall -Wextra -Werror -shared -fPIC "$1" $(pkg-config --cflags norma) -o "$2" "${@:3}"
}
# ---- the page: its commands in order, in a folder of their own with the study of the page
made_up data/fashion-mnist train 300
made_up data/fashion-mnist t10k 50
mkdir page
awk '/^```yaml$/ { on = 1; next } /^```$/ { on = 0 } on' plugins.md >page/study.yaml
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' plugins.md >page/commands
[ "$(grep -c . page/commands)" -ge 10 ] || { echo "docs/plugins.md has lost its commands" >&2; exit 1; }
(cd page && PATH=$(dirname "$NORMA"):$PATH bash -euo pipefail commands >out 2>err) ||
	{ echo "a command of docs/plugins.md fails:" >&2; tail -5 page/err >&2; exit 1; }
grep -q my_norm page/study.html || { echo "the report of docs/plugins.md does not name the norm" >&2; exit 1; }

train=(train --data mnist --model "vit_nano:dim=16,depth=1,heads=2,patch=7" --batch 20 --steps 3 --warmup 0)
[ "$(grep -c . own_norm.c)" -le 60 ] || fail "the example is too long"

# ---- one norm: by flag before and after the command, variable and recipe; recorded, and found again
plug own_norm.c own_norm.so
run 0 --plugin ./own_norm.so "${train[@]}" --norm partial --out run
sum=$(sha256sum own_norm.so | cut -d' ' -f1)
grep -qF "plugins: [\"$(realpath own_norm.so) sha256=$sum\"]" run/config.yaml || fail "no record: $(grep plugins run/config.yaml)"
run 0 "${train[@]}" --norm partial:p=0.25 --plugin=own_norm.so --plugin ./own_norm.so --out after
NORMA_PLUGINS=:own_norm.so run 0 norms partial; says "a part of RMS normalization"
sed 's/ \.cite = "none",//; s/^\t\.equation = "[^"]*",/\t/' own_norm.c >bare.c                                      # no paper, no equation
! grep -q 'cite\|equation' bare.c || fail "the example has another form"
plug bare.c bare.so
run 0 norms partial --plugin ./bare.so; says "a part of RMS normalization"
run 0 norms --plugin ./bare.so; says "partial"
run 0 norms partial --plugin ./bare.so --json; json name cite
mkdir recipes
{ echo 'plugins: ../own_norm.so'; echo 'norm: partial'; echo 'data: mnist'; } >recipes/own.yaml
run 0 train recipes/own.yaml "${train[@]:3}" --out by-recipe
[ "$(bits run/model.safetensors)" = "$(bits by-recipe/model.safetensors)" ] || fail "a recipe gives another run"
run 0 train --resume --out run; says "done after 3 of 3 steps"
run 0 eval run; says "top-1"
run 0 eval run/model.safetensors; says "top-1"
run 0 analyze run --out analysis
run 0 probe run/model.safetensors --data mnist --epochs 1 --out probed
run 0 report run --output report.html; silent
grep -q 'partial' report.html || fail "the report does not name the norm"
run 0 prove all --plugin own_norm.so; says "partial:p=1 = rms"
run 0 bench norms --tiny --norm partial --plugin own_norm.so; says "partial"

# ---- a run whose plug-in is elsewhere, changed or gone; weights that are far from their run
mkdir far
cp run/model.safetensors far
run 2 eval far/model.safetensors --data mnist; complains "it was trained with the plug-in own_norm.so: add --plugin PATH"; one_line
mv own_norm.so moved.so
run 1 eval run; complains "cannot load the plug-in '$(realpath moved.so | sed s/moved/own_norm/)': No such file"; one_line
complains "run/config.yaml needs it: if it is elsewhere, add --plugin PATH (sha256 ${sum:0:12}"
run 0 --plugin ./moved.so eval run; says "top-1"
run 0 report run --output report.html; complains "warning: cannot load the plug-in"
plug own_norm.c own_norm.so -DCHANGED -g
run 1 eval run; complains "the plug-in is not the one of the run"; complains "add --allow-changed-plugins"; one_line
run 1 train --resume --out run; complains "the plug-in is not the one of the run"
run 1 eval run --plugin own_norm.so; complains "the plug-in is not the one of the run"
run 0 eval run --allow-changed-plugins; says "top-1"
mv moved.so own_norm.so

# ---- a study: its file names the plug-in, its children have it, its folder names it again
cat >study.yaml <<-'END_OF_FILE'
	plugins: [own_norm.so]
	base: {data: mnist, model: "vit_nano:dim=16,depth=1,heads=2,patch=7", batch: 20, steps: 2, warmup: 0}
	stages: [train, eval]
	grid: {norm: [ln, partial]}
	metric: eval.top1
	out: study
END_OF_FILE
run 0 study study.yaml; says "partial"
grep -q '^plugins: \["/.*own_norm.so sha256=' study/study.yaml || fail "the study does not name its plug-in: $(cat study/study.yaml)"
run 0 study study/study.yaml; says "partial"
run 0 report study --output study.html; silent
cp own_norm.so kept.so
echo >>own_norm.so
run 1 study study/study.yaml; complains "the plug-in is not the one of the run"
run 1 study study.yaml; complains "sha256"
mv kept.so own_norm.so

# ---- checks: the source; the object, which wants a twin; what is wrong is found
run 0 check own_norm.c --no-speed; silent
for what in "gradient in double against finite differences" "float against double" "NaN in memory" "padding" "threads" "views with gaps"; do
	grep -q 'ok$' <<<"$(grep -F "$what" <<<"$out")" || fail "the check of '$what' is not ok: $out"
done
run 1 check ./own_norm.so; complains "there is no 'own_norm64.so' beside it"; complains "pkg-config --cflags norma64"; one_line
# shellcheck disable=SC2046 # pkg-config gives words
cc -O1 -shared -fPIC own_norm.c $(pkg-config --cflags norma64) -o own_norm64.so
run 0 check ./own_norm.so --json; json ok subjects times_layer; says '"ok":true'
# wrong TEXT EXPRESSION: with this change of the source the check fails and says so
wrong() {
	sed "$2" own_norm.c >wrong.c
	! cmp -s own_norm.c wrong.c || fail "no change: $2"
	run 1 check wrong.c --no-speed; grep -q failed <<<"$(grep -F "$1" <<<"$out")" || fail "'$1' is not told: $out"
	complains "checks failed"
}
wrong "gradient in double" 's/- x\[i\] \* shared/+ x[i] * shared/'
wrong "gradients add" 's/, k->add\[0\]);$/, 0);/'
wrong "views with gaps" 's/x = nr_row(&k->x\[0\], r)/x = (const nr_real *)k->x[0].p + r * k->x[0].c/'
sed 's/NR_KEEP_X(0) | NR_KEEP_X(1)/NR_KEEP_X(1)/' own_norm.c >wrong.c
run 1 check wrong.c --no-speed; complains "'partial' crashed (does backward read what .keeps does not name?)"
echo 'int x = ;' >broken.c
run 1 check broken.c; complains "cannot compile 'broken.c'"
run 2 check laer; complains "did you mean 'layer'?"; one_line
run 2 check; one_line

# ---- refusals, each one line that names the file
# refused CODE TEXT FILE
refused() { run "$1" --plugin "./$3" norms; complains "$2"; complains "$3"; one_line; }
head -c 4096 own_norm.c >text.so
refused 1 "invalid ELF header" text.so; complains "cc -shared -fPIC FILE.c"
refused 1 "No such file" none.so
plug_text() { printf '#include <norma/plugin.h>\n%s\n' "$2" >"$1.c"; plug "$1.c" "$1.so" "${@:3}"; }
plug_text no_table 'int nothing;'
refused 1 "it has no symbol nr_plugin" no_table.so
plug_text no_symbol 'int nr_nothing(void); NR_DATA int f(void); int f(void) { return nr_nothing(); } NR_PLUGIN(.norms = NULL)'
refused 1 "undefined symbol: nr_nothing" no_symbol.so; complains "compile it with the headers of this norma"
sed 's/^NR_PLUGIN/#undef NR_PLUGIN_VERSION\n#define NR_PLUGIN_VERSION 99\n&/' own_norm.c >version.c
plug version.c version.so
refused 1 "it has version 99 of plug-ins, this norma has 1" version.so; complains "compile it again"
refused 1 "it was compiled for numbers of 8 bytes" own_norm64.so
sed 's/^NR_PLUGIN(\(.*\))$/NR_DATA const struct nr_plugin nr_plugin = { .version = 1, .real_size = 4, .size = { 1 }, \1 };/' own_norm.c >sizes.c
plug sizes.c sizes.so
refused 1 "it was made with other headers: a norm has 1 bytes there" sizes.so
sed 's/\.name = "partial", .title/.name = "ln", .title/' own_norm.c >taken.c
plug taken.c taken.so
refused 2 "cannot register the norm 'ln': the name 'ln' is taken" taken.so
sed 's|\.about = "[^"]*",||' own_norm.c >field.c
plug field.c field.so
refused 1 "its .about is missing" field.so
cp own_norm.so twice.so
echo >>twice.so
run 2 --plugin own_norm.so --plugin twice.so norms; complains "the name 'partial' is taken"; complains twice.so; one_line
echo 'plugins: {a: b}' >bad.yaml
run 1 train bad.yaml; complains "'plugins' should be a list of paths"; one_line

# ---- sources to begin with: each compiles, passes, and works
for kind in norm model task optimizer data; do
	run 0 new "$kind" "my_$kind"; says "norma check my_$kind.c"
	run 0 check "my_$kind.c" --no-speed; silent
	plug "my_$kind.c" "my_$kind.so"
done
run 1 new norm my_norm; complains "it exists already"
run 2 new norn x; complains "did you mean 'norm'?"
run 0 "${train[@]}" --plugin my_norm.so --norm my_norm:eps=1e-3 --out of-norm
run 0 "${train[@]}" --plugin my_model.so --model my_model:depth=1 --norm my_norm --plugin my_norm.so --out of-model
run 0 models my_model_wide --plugin my_model.so; says "attn.in"
run 0 eval of-model; says "top-1"
run 0 --plugin my_task.so my_task "${train[@]:1}" --weight 2 --out of-task; says "error"
run 0 my_task --resume --plugin my_task.so --out of-task; says "done after 3 of 3 steps"
run 0 report of-task --output task.html; grep -q "Error, held-out" task.html || fail "the report does not know the task's metric"
run 0 "${train[@]}" --plugin my_optimizer.so --optimizer my_optimizer --my-optimizer-blend 0.25 --out of-optimizer
grep -q '^my_optimizer_blend: 0.25$' of-optimizer/config.yaml || fail "the optimizer's option is not recorded"
run 0 train --resume --out of-optimizer; says "done after 3 of 3 steps"
run 0 "${train[@]}" --plugin my_data.so --data my_data:count=40 --out of-data; says "my_data"
run 0 eval of-data; says "top-1"
cat >rule.c <<-'END_OF_FILE'
	#include <norma/plugin.h>
	static double at(const struct nr_schedule *s, struct nr_schedule_at a) { return s->base * (1 - a.x * a.x); }
	static const struct nr_schedule_rule rule = { "square", "base (1 - x^2)", at };
	NR_PLUGIN(.schedules = NR_LIST(nr_schedule_rule, &rule))
END_OF_FILE
plug rule.c rule.so
run 0 "${train[@]}" --plugin rule.so --schedule square --lr 0.9 --log-every 1 --out of-schedule
[ "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "lr") c = i } NR == 3 { printf "%.2f", $c }' of-schedule/metrics.csv)" = 0.80 ] ||
	fail "the schedule does not count: $(cat of-schedule/metrics.csv)"

# ---- a program that brings its own norm, without a file
{ sed 's/^NR_PLUGIN(\(.*\))$//' own_norm.c; cat <<-'END_OF_FILE'; } >program.c
	#include <norma/norma.h>
	int main(void)
	{
		const struct nr_plugin mine = { NR_PLUGIN_HEAD, .norms = NR_LIST(nr_norm, &partial) };
		struct nr_error err = { 0 };
		char text[512];
		if (nr_register(&mine, &err) || !nr_norm_find("partial", &err)) return 1;
		nr_register(&mine, &err);
		puts(nr_error_text(&err, text, sizeof text));
		return 0;
	}
END_OF_FILE
# shellcheck disable=SC2046 # pkg-config gives words
cc -O1 -Wall -Wextra -Werror program.c -o program $(pkg-config --cflags --libs norma) -lm
out=$(LD_LIBRARY_PATH=$lib ./program) ran=program
says "cannot register the norm 'partial': it is registered already"
exit $failed
