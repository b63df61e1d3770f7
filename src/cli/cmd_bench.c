/* norma bench NAME: see bench/bench.h. */
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/loader.h"
#include "bench/molecules.h"
#include "cli.h"

static const char *const peers[] = { "none", "eager", "compile", "both", "strong", "all", "onnx", NULL };   /* enum bench_peer */
static const struct nr_option options[] = { NR_OPT_BOOL(struct bench_options, json, "0",
						    "print one line of JSON per record"),
	NR_OPT_FLOAT(struct bench_options, seconds, 6, 0, 3600, "seconds per case (norms: per shape) and round"),
	NR_OPT_ENUM(struct bench_options, peer, "none", peers,
		"alternate with PyTorch (tsne: scikit-learn) and add the ratio; both: eager and compile; strong: the "
		"fastest of several settings; all: these three; onnx: eager and onnxruntime; --peer alone means both "
		"(norms: eager, latency: onnx)"),
	NR_OPT_INT(struct bench_options, rounds, 3, 1, 100, "rounds with --peer: norma, then each peer"),
	NR_OPT_BOOL(struct bench_options, tiny, "0", "a very small version of the case, one step (for tests)"),
	NR_OPT_BOOL(struct bench_options, profile, "0",
		"step: print the time of each kind of instruction and its share of the machine's limit instead"),
	NR_OPT_BOOL(struct bench_options, rebuild, "0", "step: save memory by recomputing cheap outputs in backward"),
	NR_OPT_LIST(struct bench_options, norm,
		"norms: only this norm, may be repeated; step: norm plan of the model"),
	NR_OPT_LIST(struct bench_options, shapes,
		"norms: samples x tokens x channels, e.g. 64x196x384; may be repeated"),
	CLI_TEXT(struct bench_options, text, "", "FILE",
		"tokenize: lines of text, repeated to 10 MB (default: made-up text); embed: lines (default: the STS "
		"sentences)"),
	CLI_TEXT(struct bench_options, vocab, "", "PATH", "tokenize: vocabulary; default: a small BPE and BERT's"),
	CLI_TEXT(struct bench_options, model, "", "DIR", "embed: folder of a text model; default $NORMA_MINILM (scripts/setup-minilm)"),
	NR_OPT_END };

enum { STEP, ALL, LATENCY, SCALING, LOOP, RANKS, GEMM, NORMS, LOADER, TSNE, UNIFORMITY, TOKENIZE, MOLECULES, EMBED, STARTUP };
static const char *const names[] = { "step", "all", "latency", "scaling", "loop", "ranks", "gemm", "norms", "loader", "tsne", "uniformity",
	"tokenize", "molecules", "embed", "startup", NULL };

static void words(struct nr_str *s)
{
	for (int i = 0; names[i]; i++) nr_str_printf(s, "%s\n", names[i]);
	for (const struct bench_case *c = bench_cases; c->name; c++)
		nr_str_printf(s, "%s/train\n%s/infer\n", c->name, c->name);
}

/* `--peer` without a value means both; for norms eager, as compiling each of them takes minutes; for latency onnx. */
static int rewrite(struct cli *c, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--peer")) continue;
		int k = 0;
		while (i + 1 < argc && peers[k] && strcmp(peers[k], argv[i + 1])) k++;
		/* a word that is no case and no subcommand is a misspelt mode: leave it to the parser */
		const bool value =
			i + 1 < argc && (peers[k] || (argv[i + 1][0] != '-' && !strchr(argv[i + 1], '_') && i > 1));
		const char *what = argc ? argv[0] : "";
		const char *all = !strcmp(what, "norms") ? "--peer=eager" : !strcmp(what, "latency") ? "--peer=onnx" : "--peer=both";
		if (!value && !(argv[i] = nr_arena_strdup(c->arena, all)))
			return nr_fail(c->err, NR_EMEMORY, "cannot read the arguments", NULL, "out of memory");
	}
	return NR_OK;
}

static int print_record(const struct bench_options *o, json_t *r, struct nr_error *err)
{
	if (!r) return err->code;
	if (o->json) return bench_json_line(stdout, r, err);
	bench_print(stdout, r);
	json_decref(r);
	return NR_OK;
}

static int step(struct cli *c, const struct bench_options *o, const struct bench_target *t)
{
	const int threads = omp_get_max_threads();
	if (!o->tiny && o->peer == BENCH_NONE) cli_bound_spin(c);
	if (o->profile) return bench_profile(t, o, c->err);
	if (!o->json) bench_print_header(stdout);
	return print_record(o,
		o->peer == BENCH_NONE ? bench_measure(t, o, c->err) : bench_compare(t, o, threads, c->err), c->err);
}

/* Every case in both tasks, or inference of those of one sample. */
static int all(struct cli *c, const struct bench_options *o, bool latency)
{
	if (!o->json) bench_print_header(stdout);
	for (const struct bench_case *k = bench_cases; k->name; k++)
		for (int train = !latency; train >= 0 && bench_is_latency(k) == latency; train--) {
			const struct bench_target t = { k, o->tiny ? &k->tiny : &k->full, train, o->tiny };
			if (print_record(o, bench_compare(&t, o, omp_get_max_threads(), c->err), c->err))
				return c->err->code;
		}
	return NR_OK;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct bench_options *o = conf;
	const char *what = args->count ? args->item[0] : NULL;
	int k = 0;
	while (what && names[k] && strcmp(names[k], what)) k++;
	if (!what || !names[k]) {
		const char *near = what ? nr_nearest(what, names) : NULL;
		struct nr_str all = { 0 };
		for (int i = 0; names[i]; i++) nr_str_printf(&all, "%s%s", i ? ", " : "one of ", names[i]);
		nr_fail(c->err, NR_EUSAGE, what ? "unknown benchmark" : "bench needs a name", what, "%s", nr_str_text(&all));
		nr_str_release(&all);
		return near ? nr_hint(c->err, "did you mean '%s'?", near) : nr_hint(c->err, "norma bench --help");
	}
	const int64_t wanted = k == STEP || k == LOOP || k == RANKS ? 2 : 1;
	if (args->count != wanted) {
		cli_usage(c, "bench %s takes %s", what, wanted == 2 ? "one case" : "no arguments");
		return nr_hint(c->err, "norma bench --help");
	}
	if (o->tiny && o->peer != BENCH_NONE) return cli_usage(c, "--tiny and --peer exclude each other");
	if (o->peer > BENCH_BOTH && k > LATENCY) return cli_usage(c, "--peer %s is for bench step, all and latency", peers[o->peer]);
	if ((k != TOKENIZE && *o->vocab) || (k != TOKENIZE && k != EMBED && *o->text))
		return cli_usage(c, "--vocab is for bench tokenize, --text for bench tokenize and embed");
	if (k != EMBED && *o->model) return cli_usage(c, "--model is for bench embed");
	if (k != NORMS && o->shapes.count) return cli_usage(c, "--shapes is for bench norms");
	if (k != NORMS && o->norm.count && (k != STEP || o->norm.count > 1 || o->peer != BENCH_NONE))
		return cli_usage(c, "--norm is for bench norms, and once for bench step without --peer");
	struct bench_target t;
	if (wanted == 2 && bench_target_parse(&t, args->item[1], o->tiny, c->err)) return c->err->code;
	if (k != STEP && o->rebuild) return cli_usage(c, "--rebuild is for bench step");
	if (k == STEP && o->norm.count) t.norm = o->norm.item[0];
	if (k == STEP) t.rebuild = o->rebuild;
	if (k == STEP) return step(c, o, &t);
	if (k == ALL || k == LATENCY) return all(c, o, k == LATENCY);
	if (k == TOKENIZE) return bench_tokenize(o, c->err);
	if (k == STARTUP) return bench_startup(o, c->err);
	if (!o->tiny && ((k != NORMS && k != EMBED) || o->peer == BENCH_NONE)) cli_bound_spin(c);
	switch (k) {
	case LOOP: return bench_loop(&t, o, c->err);
	case RANKS: return bench_ranks(&t, o, c->err);
	case GEMM: return bench_gemm(o, c->err);
	case SCALING: return bench_scaling(o, c->err);
	case NORMS: return bench_norms(o, omp_get_max_threads(), c->err);
	case LOADER: return bench_loader(o, omp_get_max_threads(), c->err);
	case EMBED: return bench_embed(o, omp_get_max_threads(), c->err);
	case TSNE: return bench_tsne(o, omp_get_max_threads(), c->err);
	case MOLECULES: return bench_molecules(o, omp_get_max_threads(), c->err);
	default: return bench_uniformity(o, c->err);
	}
}

const struct cli_command cli_bench = {
	.name = "bench",
	.title = "time training steps and more, also against PyTorch",
	.usage = "step CASE | all | latency | scaling | loop CASE | ranks CASE | gemm | norms | loader | tsne | uniformity | tokenize | "
		 "molecules | embed | startup",
	.about = "step  a training step (CASE/train) or inference (CASE/infer): median, best and 95th percentile of single\n"
		 "steps, as a share of the peak of multiply-adds and of the rate of a 1576x768x768 matrix product, both measured\n"
		 "in the same process. --profile: each kind of instruction, and its share of what the peak and a copy allow.\n"
		 "\n"
		 "all  every case of several samples, each in its own process.\n"
		 "\n"
		 "latency  a forward pass of one picture and of one sentence; --peer: beside PyTorch and onnxruntime.\n"
		 "\n"
		 "scaling  time and memory of a step, and the time to plan it, for more samples, tokens, channels, blocks and\n"
		 "threads, beside the ratio of operations.\n"
		 "\n"
		 "loop  the replayed plan against the same kernels called from a hand-written loop.\n"
		 "\n"
		 "ranks  a training step on the ranks of mpirun, the case's batch for each: alone, side by side, with gradients\n"
		 "summed after backward, between its calls, and by a thread of their own.\n"
		 "\n"
		 "gemm  matrix products at all shapes of the cases, as a share of the peak of multiply-adds.\n"
		 "\n"
		 "norms  every normalization alone, forward and with backward, beside a plain copy; GB/s count x read\n"
		 "and y written, then x and dy read and dx written. A norm that mixes tokens is also compared with its\n"
		 "matrix products at the rate of our own SGEMM.\n"
		 "\n"
		 "loader  pictures per second of the data loader, from memory and from JPEG files.\n"
		 "\n"
		 "tsne  t-SNE of 10,000 x 128: time, divergence, trustworthiness; --peer: beside scikit-learn.\n"
		 "\n"
		 "uniformity  uniformity of 10,000 x 768: share of the SGEMM rate, and memory.\n"
		 "\n"
		 "tokenize  WordPiece and byte-level BPE on 10 MB of lines, one thread; --peer: beside the tokenizers library.\n"
		 "\n"
		 "molecules  molecules per second from SMILES to the inputs of Graphormer, with shortest paths.\n"
		 "\n"
		 "embed  sentence embeddings of a real model: texts per second and memory; --peer: beside PyTorch with batches\n"
		 "sorted by length.\n"
		 "\n"
		 "startup  the command `norma --version` from start to end; --peer: beside `import torch`.\n"
		 "\n"
		 "With --peer, norma alternates with the PyTorch script in bench/peers; the ratio is the peer's time over ours\n"
		 "within a round, median of rounds. --peer strong takes the fastest of eager, torch.compile and max-autotune with\n"
		 "fused AdamW, tcmalloc and two OpenMP runtimes, chosen in the first round. It needs the environment of\n"
		 "scripts/setup-peers.",
	.conf_size = sizeof(struct bench_options),
	.options = options,
	.words = words,
	.rewrite = rewrite,
	.run = run,
};
