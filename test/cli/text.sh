#!/bin/bash
# Texts: mlm, simcse, embed, sts, transfer, norm surgery, on a vocabulary and sentences made up here.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/cli/words.inc
. test/cli/words.inc
export NORMA_DATA=$tmp/none
bpe=test/golden/text/tokenizer/bpe
sentences 1 60 | awk '{ print } NR % 9 == 0 { print "" }' >"$tmp/lines.txt"
{ echo "sent0,sent1,hard_neg"; paste -d, <(sentences 2 40) <(sentences 3 40) <(sentences 4 40); } >"$tmp/triplets.csv"
cut -d, -f1,2 "$tmp/triplets.csv" >"$tmp/pairs.csv"
lines=text:path=$tmp/lines.txt
size=dim=16,depth=2,heads=2,hidden=24,positions=24
quiet() { sed -E 's/"(seconds|out)":[^,]*,?//g' <<<"$out"; }
# weights A B: the same bits, whatever the files say of the runs that wrote them
weights() { [ "$(bits "$1")" = "$(bits "$2")" ] || fail "the weights of $1 and $2 differ"; }
# far A B: mean squared difference of two tables
far() { paste "$1" "$2" | awk '{ for (i = 1; i <= NF / 2; i++) s += ($i - $(i + NF / 2)) ^ 2 } END { printf "%d\n", 1e6 * s }'; }
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }

# ---- data sets
run 0 data info "$lines"; says "60 train"; says "7, separated by blank lines"; says "words"
run 0 data info "text:path=$tmp/triplets.csv" --json; json columns count texts; says '"columns":3'
run 0 data show "text:path=$tmp/triplets.csv" --count 2; says "hard negative"
run 0 data check "$lines"; says "60 samples of 1 texts each"
run 0 data list; says "sts-senteval"
printf 'a,b\n"never closed,x\n' >"$tmp/bad.csv"
run 1 data info "text:path=$tmp/bad.csv"; complains "a quote is not closed"; one_line
printf 'a,b\nx,y\nz\n' >"$tmp/bad.csv"
run 1 data info "text:path=$tmp/bad.csv"; complains "line 3 has 1 columns, but the header line has 2"; one_line

# ---- masked words: threads, a stop and a resume leave the bits alone
mlm="mlm --data $lines,val=0.2 --tokenizer $vocab --model bert:$size --batch 8 --epochs 2 --max-length 16 --lr 1e-3"
# shellcheck disable=SC2086 # words on purpose
{
	run 0 $mlm --out "$tmp/mlm" --threads 1; says "done after 12 of 12"; says "perplexity"; says "15 % of the tokens"
	run 0 $mlm --out "$tmp/mlm2" --threads 2; weights "$tmp/mlm/model.safetensors" "$tmp/mlm2/model.safetensors"
	run 0 $mlm --out "$tmp/nsp" --nsp --json; json train_accuracy eval_loss
	run 0 mlm --data $lines --tokenizer "$bpe" --model roberta:$size,positions=26 --batch 8 --steps 4 --max-length 24 --out "$tmp/bpe"
	run 0 $mlm --out "$tmp/whole" --nsp --steps 60 --checkpoint-steps 5 --eval-every 2
	"$NORMA" $mlm --out "$tmp/killed" --nsp --steps 60 --checkpoint-steps 5 --eval-every 2 >/dev/null 2>&1 & pid=$!
}
await [ -e "$tmp/killed/last.safetensors" ]
kill -9 $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
run 0 mlm --resume "$tmp/killed"; weights "$tmp/whole/model.safetensors" "$tmp/killed/model.safetensors"
same "$vocab" "$tmp/mlm/vocab.txt"
[ -e "$tmp/bpe/merges.txt" ] || fail "the run has no merges.txt"

# ---- contrast: sentences alone, pairs, triplets, all poolers, a term of masked words
contrast="simcse --tokenizer $vocab --init $tmp/mlm/model.safetensors --batch 8 --steps 5 --max-length 16"
for p in cls cls_before_pooler avg avg_top2 avg_first_last; do
	# shellcheck disable=SC2086
	run 0 $contrast --data "$lines" --pooler $p --out "$tmp/sim-$p"; says "each sentence twice"; says "batch statistics  none"
	run 0 embed "$tmp/sim-$p" --format npy --out "$tmp/$p.npy" </dev/null
done
# shellcheck disable=SC2086
{
	run 0 $contrast --data "text:path=$tmp/pairs.csv" --out "$tmp/pairs" --norm "sep(bn,ln) embed=ln"; says "pairs"; says "batch statistics  4 norms"
	run 0 $contrast --data "text:path=$tmp/triplets.csv" --out "$tmp/triplets" --mlm-weight 0.1 --threads 1; says "hard negative"
	run 0 $contrast --data "text:path=$tmp/triplets.csv" --out "$tmp/triplets2" --mlm-weight 0.1 --threads 2
}
weights "$tmp/triplets/model.safetensors" "$tmp/triplets2/model.safetensors"
run 0 inspect "$tmp/triplets/model.safetensors"; says "cls+layer"
# samples that are set apart are no pairs to evaluate on; a site that passes twice counts once
# shellcheck disable=SC2086
{
	run 0 $contrast --data "$lines,val=0.2" --out "$tmp/apart"; says "12 set apart (val)"; says "evaluation        none"; says "done after 5"
	run 0 $contrast --data "$lines" --mlm-weight 1 --norm bn --out "$tmp/passes"; says "bn at 5 of 30 sites"; says "batch statistics  4 norms"
}
run 2 simcse --resume "$tmp/apart" --lr 9 --batch 8; complains "cannot resume with other settings"; complains "its lr is"; one_line
run 0 simcse --resume "$tmp/apart" --log-every 7 --batch 8; complains "resumes with its own settings; not used: log_every"; one_line
# the norms of the weights to begin with stay, unless others are named
run 0 simcse --data "$lines" --init "$tmp/pairs" --batch 8 --steps 2 --max-length 16 --out "$tmp/on"; says "sep(bn,ln)"

run 1 simcse --data "$lines" --init "$tmp/pairs" --batch 8 --steps 2 --max-length 16 --hard-weight 1 --out "$tmp/no"; complains "third text of triplets"; one_line
run 1 simcse --data "$lines" --init "$tmp/pairs" --batch 8 --steps 2 --max-length 16 --pooler avg --keep-layer yes --out "$tmp/no"; complains "only cls has a layer"; one_line

# ---- embeddings: three formats, any order, any number of threads
sentences 9 50 >"$tmp/ask"
run 0 embed "$tmp/triplets" <"$tmp/ask"; cp "$tmp/out" "$tmp/tsv"; silent
[ "$(awk -F'\t' 'NF == 16' "$tmp/tsv" | wc -l)" = 50 ] || fail "not 50 rows of 16"
run 0 embed "$tmp/triplets" --threads 2 --out "$tmp/tsv2" <"$tmp/ask"; same "$tmp/tsv" "$tmp/tsv2"
run 0 embed "$tmp/triplets" --threads 1 <<<"$(tac "$tmp/ask")"; tac "$tmp/out" >"$tmp/tsv2"; same "$tmp/tsv" "$tmp/tsv2"
cat "$tmp/ask" "$tmp/ask" >"$tmp/twice"; run 0 embed "$tmp/triplets" <"$tmp/twice"; cat "$tmp/tsv" "$tmp/tsv" >"$tmp/tsv2"; same "$tmp/out" "$tmp/tsv2"
run 0 embed "$tmp/triplets" --format npy --out "$tmp/e.npy" <"$tmp/ask"
run 0 embed "$tmp/triplets" --format safetensors --out "$tmp/e.safetensors" --json <"$tmp/ask"; json texts width
same <(tail -c 3200 "$tmp/e.npy") <(tail -c 3200 "$tmp/e.safetensors")
[ "$(far <(tail -c 3200 "$tmp/e.npy" | od -An -v -t f4 -w64) "$tmp/tsv")" = 0 ] || fail "other numbers in the array"
run 0 embed "$tmp/triplets" --out /dev/stdout <"$tmp/ask"; same "$tmp/tsv" "$tmp/out"; [ -L /dev/stdout ] || fail "/dev/stdout is a file now"
"$NORMA" embed "$tmp/triplets" --format npy --out /dev/stdout <"$tmp/ask" | cmp - "$tmp/e.npy" || fail "other bytes through a pipe"
mkfifo "$tmp/fifo"; cat "$tmp/fifo" >"$tmp/e2.npy" & pid=$!
run 0 embed "$tmp/triplets" --format npy --out "$tmp/fifo" <"$tmp/ask"; wait $pid; same "$tmp/e.npy" "$tmp/e2.npy"
run 1 embed "$tmp/triplets" --out /dev/full <"$tmp/ask"; complains "No space left on device"; one_line
run 0 embed "$tmp/bpe" --normalize <"$tmp/ask"
run 0 embed "$tmp/triplets" </dev/null; [ -z "$out" ] || fail "rows out of nothing"
# a folder of sentence-transformers says how sentences are pooled
mkdir -p "$tmp/st/1_Pooling"; cp "$tmp/mlm/vocab.txt" "$tmp/st"
run 0 convert "$tmp/mlm/model.safetensors" "$tmp/st/" --to huggingface
modules() { printf '[{"path":"","type":"s.Transformer"},{"path":"1_Pooling","type":"s.Pooling"},{"path":"2","type":"s.%s"}]' "$1" >"$tmp/st/modules.json"; }
pooling() { printf '{"word_embedding_dimension":16,%s}' "$1" >"$tmp/st/1_Pooling/config.json"; }
for p in cls_before_pooler avg; do
	run 0 embed "$tmp/st" --pooler $p <"$tmp/ask"; cp "$tmp/out" "$tmp/$p"
	run 0 embed "$tmp/st" --pooler $p --normalize <"$tmp/ask"; cp "$tmp/out" "$tmp/$p-unit"
done
modules Normalize
pooling '"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false'; run 0 embed "$tmp/st" <"$tmp/ask"; same "$tmp/out" "$tmp/cls_before_pooler-unit"
pooling '"pooling_mode_cls_token":false,"pooling_mode_mean_tokens":true'; run 0 embed "$tmp/st" <"$tmp/ask"; same "$tmp/out" "$tmp/avg-unit"
pooling '"pooling_mode":"cls"'; run 0 embed "$tmp/st" <"$tmp/ask"; same "$tmp/out" "$tmp/cls_before_pooler-unit"
run 0 convert "$tmp/st/model.safetensors" "$tmp/st-ours/" --to norma; run 0 embed "$tmp/st-ours" <"$tmp/ask"; same "$tmp/out" "$tmp/cls_before_pooler-unit"
pooling '"pooling_mode_max_tokens":true'; run 1 embed "$tmp/st" <"$tmp/ask"; complains "pooled by 'max_tokens+normalize'"; complains "avg_top2"; one_line
run 0 embed "$tmp/st" --pooler avg <"$tmp/ask"; same "$tmp/out" "$tmp/avg"
pooling '"a":1'; run 1 embed "$tmp/st" <"$tmp/ask"; complains "1_Pooling/config.json"; one_line
pooling '"pooling_mode":"mean"'; modules Dense; run 1 embed "$tmp/st" <"$tmp/ask"; complains "pooled by 'mean, then Dense'"; one_line
echo '[{' >"$tmp/st/modules.json"; run 1 embed "$tmp/st" <"$tmp/ask"; complains "modules.json"; one_line
printf 'a\0cat\n' >"$tmp/bytes"
run 1 embed "$tmp/triplets" <"$tmp/bytes"; complains "line 1"; one_line
run 1 embed "$tmp/triplets" --max-length 25 <"$tmp/ask"; complains "only 24 positions"; one_line
run 1 embed "$tmp/triplets" --out "$tmp/none/e.tsv" <"$tmp/ask"; complains "none/e.tsv"; one_line
# a weight that is not a number: no embedding comes of it
mkdir "$tmp/nan"; cp "$vocab" "$tmp/nan"; cp "$tmp/mlm/model.safetensors" "$tmp/nan"
printf '\xff\xff\xff\xff' | dd of="$tmp/nan/model.safetensors" bs=1 seek=$(($(stat -c %s "$tmp/nan/model.safetensors") - 4)) conv=notrunc status=none
run 3 embed "$tmp/nan" --out "$tmp/nan.tsv" <"$tmp/ask"; complains "not finite"; one_line
[ ! -e "$tmp/nan.tsv" ] || fail "a file of nothing"

# ---- similarity and transfer on folders made up here
sts=$tmp/data/sts/tokenized senteval=$tmp/data/senteval
mkdir -p "$sts/STSB" "$senteval"
scored() { paste <(awk '{ print NR % 6 }' <(sentences 1 "$3")) <(sentences "$1" "$3") <(sentences "$2" "$3"); }
for s in dev test; do scored 5 6 30 >"$sts/STSB/$s.tsv"; done
run 0 sts "$tmp/triplets" --data-root "$tmp/data" --task STSB; says "STSB"; says "30"
run 0 sts "$tmp/triplets" --data-root "$tmp/data" --task STSB --json; json average STSB; first=$(quiet)
run 0 sts "$tmp/triplets" --data-root "$tmp/data" --task STSB --json --threads 2; [ "$(quiet)" = "$first" ] || fail "other numbers"
run 1 sts "$tmp/triplets" --data-root "$tmp/data" --task STS12; complains "STS12"; one_line
# the original text, packed as it comes; of pairs of equal sentences the order says nothing
mkdir -p "$tmp/raw/STSB"; cp "$sts/STSB/"*.tsv "$tmp/raw/STSB"; tar -C "$tmp" -czf "$tmp/data/sts/raw.tar.gz" raw
run 0 sts "$tmp/triplets" --data-root "$tmp/data" --task STSB --raw --json; [ "$(quiet | sed s/raw/tokenized/)" = "$first" ] || fail "other numbers"
run 1 sts "$tmp/triplets" --data-root "$tmp/data" --task SICK --raw; complains "no file 'raw/SICK/dev.tsv'"; one_line
run 1 sts "$tmp/triplets" --task STSB; complains "--data-root (or NORMA_DATA)"
# shellcheck disable=SC2086
run 0 $contrast --data "$lines" --sts "$tmp/data" --out "$tmp/dev" --json; json eval_sts best_sts eval_uniformity
rated() { paste <(awk '{ print NR % 2 }' <(sentences 1 "$2")) <(sentences "$1" "$2"); }
rated 7 40 >"$senteval/CR.tsv"
run 0 transfer "$tmp/triplets" --data-root "$tmp/data" --task CR; says "CR"; says "40"
run 0 transfer "$tmp/triplets" --data-root "$tmp/data" --task CR --json; json average CR; first=$out
run 0 transfer "$tmp/triplets" --data-root "$tmp/data" --task CR --json --threads 2; [ "$out" = "$first" ] || fail "other numbers"
run 1 transfer "$tmp/triplets" --data-root "$tmp/data" --task MR; complains "senteval/MR.tsv.gz"
rated 8 5 >"$senteval/MR.tsv"
run 1 transfer "$tmp/triplets" --data-root "$tmp/data" --task MR; complains "cannot evaluate 'MR': it has 5 rows instead of 30"; one_line

# ---- norm surgery
run 0 convert "$tmp/mlm/model.safetensors" "$tmp/same/" --norm "sep(ln,ln) embed=ln"; says "not calibrated"; [[ $out != *fitted* ]] || fail "columns of nothing"
run 0 convert "$tmp/mlm/model.safetensors" "$tmp/cut/" --norm "sep(bn,ln) embed=ln"; says "norms replaced at 4 sites"
run 0 convert "$tmp/mlm/model.safetensors" "$tmp/fit/" --norm "sep(bn,ln) embed=ln" --calibrate "$lines" --samples 60 --json
json surgery; says "change_special"
run 0 embed "$tmp/mlm" <"$tmp/ask"; cp "$tmp/out" "$tmp/tsv"
run 0 embed "$tmp/same" <"$tmp/ask"; same "$tmp/tsv" "$tmp/out"
run 0 embed "$tmp/cut" <"$tmp/ask"; cp "$tmp/out" "$tmp/cut.tsv"
run 0 embed "$tmp/fit" <"$tmp/ask"; cp "$tmp/out" "$tmp/fit.tsv"
[ "$(far "$tmp/tsv" "$tmp/fit.tsv")" -lt "$(far "$tmp/tsv" "$tmp/cut.tsv")" ] || fail "calibration does not bring the outputs nearer"
run 0 simcse --data "$lines" --init "$tmp/fit" --batch 8 --steps 2 --max-length 16 --out "$tmp/after"; says "sep(bn,ln)"
made_up "$tmp/data/mnist" train 40
made_up "$tmp/data/mnist" t10k 10
run 0 models vit:image=28,patch=7,dim=16,depth=2,heads=2,classes=10,channels=1 --write "$tmp/vit"
run 0 convert "$tmp/vit" "$tmp/vit2" --norm "sep(bn,ln)"; says "norms replaced at 5 sites"
run 0 convert "$tmp/vit" "$tmp/vit3" --norm "sep(bn,ln)" --calibrate mnist --data-root "$tmp/data" --samples 32; says "special tokens"
run 1 convert "$tmp/vit" "$tmp/vit4" --norm bn --calibrate "$lines"; complains "pictures are needed"; one_line
run 2 convert "$tmp/vit" "$tmp/vit4" --calibrate mnist; complains "--calibrate needs --norm"
run 1 convert "$tmp/mlm/model.safetensors" "$tmp/never/" --norm gn:groups=7; complains "groups"; one_line
[ ! -e "$tmp/never" ] || fail "an empty folder stays"

# ---- analysis: [CLS] against the other tokens, of texts of one length
run 0 analyze "$tmp/fit/model.safetensors" --data "$lines" --batch 16 --out "$tmp/look" --threads 1; says "[CLS]"; says "similarity of layers"
[ -s "$tmp/look/layers.svg" ] || fail "no layers.svg"
run 0 analyze "$tmp/fit/model.safetensors" --data "$lines" --batch 16 --json --threads 1; json layers distributions map cost; first=$out
run 0 analyze "$tmp/fit/model.safetensors" --data "$lines" --batch 16 --json --threads 2; [ "$out" = "$first" ] || fail "other numbers"
run 0 analyze "$tmp/fit" --data "$lines" --only cost; run 0 inspect "$tmp/fit"; says "sep(bn,ln)"        # a folder will do
run 0 models "bert:$size,length=24" --write "$tmp/blank"
run 2 analyze "$tmp/blank" --only cost; complains "--data text:path=FILE"; one_line
run 2 analyze "$tmp/fit/model.safetensors" --data "$lines" --only views; complains "this part does not support them (there are layers, spectrum, distributions,"; one_line
run 1 analyze "$tmp/fit/model.safetensors" --data "$lines" --tokens 25; complains "24 positions"; one_line

# ---- what does not fit gets one line
run 2 mlm --data "$lines" --out "$tmp/no"; complains "no tokenizer was given"
run 1 train --data "$lines" --out "$tmp/no"; complains "its samples are texts, but pictures are needed"; one_line
run 1 simcse --data mnist --data-root "$tmp/data" --tokenizer "$vocab" --out "$tmp/no"; complains "its samples are pictures"
run 1 simcse --data "$lines" --tokenizer "$bpe" --init "$tmp/mlm" --batch 8 --max-length 16 --out "$tmp/no"; complains "tokens, but the model"; one_line
run 1 embed "$tmp/mlm" --tokenizer "$bpe" <"$tmp/ask"; complains "it has 1500 tokens, but the model has 25"; one_line
run 1 mlm --data "$lines" --tokenizer "$vocab" --model bert:$size --max-length 25 --batch 8 --out "$tmp/no"; complains "24 positions"; one_line
run 1 mlm --data "text:path=$tmp/pairs.csv" --tokenizer "$vocab" --model bert:$size --nsp --batch 8 --max-length 16 --out "$tmp/no"; complains "lines that follow"
run 1 simcse --data "$lines" --init "$tmp/mlm" --sts "$tmp/nowhere" --batch 8 --max-length 16 --out "$tmp/no"; complains "STSB/dev.tsv"
run 1 mlm --data "$lines" --tokenizer "$vocab" --model bert:$size --batch 100 --max-length 16 --out "$tmp/no"; complains "60 samples do not fill"
mkdir "$tmp/bare"; cp "$tmp/mlm/model.safetensors" "$tmp/bare"
run 1 embed "$tmp/bare" <"$tmp/ask"; complains "cannot find a tokenizer in"; one_line
run 1 simcse --data "$lines" --init "$tmp/mlm" --batch 1 --max-length 16 --out "$tmp/no"; complains "a batch of one sample"; one_line
for m in mlm "simcse --mlm-weight 1"; do
	# shellcheck disable=SC2086
	run 1 $m --data "$lines" --init "$tmp/mlm" --mask 0 --batch 8 --max-length 16 --out "$tmp/no"; complains "0 leaves no word"; one_line
done
run 2 mlm --data "$lines" --tokenizer "$vocab" --model bert:$size --norm "sep(bn,lm)" --batch 8 --max-length 16 --out "$tmp/no"
complains "no normalization 'lm': no such name (did you mean 'ln'?)"; one_line
run 2 data info "$lines,foo=1"; complains "there are path, form, val"; one_line
run 1 convert "$tmp/mlm" "$tmp/never/" --norm bn --calibrate "text:path=$tmp/bad.csv"; complains "bad.csv"
head -5 "$tmp/lines.txt" >"$tmp/few.txt"
run 1 convert "$tmp/mlm" "$tmp/never/" --norm bn --calibrate "text:path=$tmp/few.txt"; complains "5 training samples do not fill a batch of 32"; one_line
run 2 convert "$tmp/mlm" "$tmp/never/" --to official; complains "bert has no such names (there are huggingface,"; one_line
[ ! -e "$tmp/never" ] || fail "a folder with a config.json stays"
run 2 embed "$tmp/mlm" --format npy <"$tmp/ask"; complains "needs --out"
exit "$failed"
