/* norma study FILE: arms x seeds from a file, with intervals and tests. */
#include <stdio.h>
#include <string.h>

#include "base/share.h"
#include "study.h"

struct settings { char *out; int64_t seeds, parallel; struct cli_study how; };

static const struct nr_option options[] = {
	CLI_TEXT(struct settings, out, "", "DIR", "folder of the study, overriding the file's"),
	NR_OPT_INT(struct settings, seeds, 0, 0, NR_STUDY_MAX_SEEDS,
		"number of seeds, from 0, overriding the file's; more can be added later"),
	NR_OPT_INT(struct settings, parallel, 0, 0, 64,
		"runs at once, overriding the file's; they share the threads"),
	CLI_STUDY_OPTIONS(struct settings, how),
	NR_OPT_END
};

/* Flags count more than the file. */
static int apply(struct cli *c, struct nr_study *s, const struct settings *v)
{
	if (*v->out) s->out = v->out;
	if (v->parallel) s->parallel = v->parallel;
	s->stop.on |= v->how.stop;
	if (cli_study_tune(c, s, &v->how)) return c->err->code;
	if (!v->seeds) return NR_OK;
	s->seed = nr_arena_alloc(c->arena, (size_t)v->seeds * sizeof *s->seed);
	if (!s->seed) return nr_fail(c->err, NR_EMEMORY, "cannot read the study", NULL, "out of memory");
	for (s->seeds = 0; s->seeds < v->seeds; s->seeds++) s->seed[s->seeds] = s->seeds;
	return NR_OK;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct settings *v = conf;
	if (args->count != 1) return cli_usage(c, "study needs one file");
	const struct nr_study_command *commands = cli_study_commands(c);
	if (!commands) return nr_fail(c->err, NR_EMEMORY, "cannot start", "study", "out of memory");
	struct nr_yaml_errors errors = { 0 };
	struct nr_study s;
	size_t size;
	const char *file = nr_recipe_find(args->item[0], c->arena);
	char *text = nr_yaml_load(file, &size, c->arena, c->err);
	if (!text) return c->err->code;
	if (nr_study_parse(&s, text, size, file, commands, c->arena, &errors, c->err)) {
		struct nr_str all = { 0 };
		nr_yaml_errors_text(&errors, &all);
		fputs(nr_str_text(&all), stderr);
		nr_str_release(&all);
		return c->err->code;
	}
	if (apply(c, &s, v)) return c->err->code;
	const char *again = nr_arena_printf(c->arena, "norma study %s/study.yaml", s.out);
	return cli_study_go(c, &s, &v->how, again ? again : "norma study");
}

const struct cli_command cli_study = {
	.name = "study",
	.title = "compare arms over seeds: stages, grid and metric from a file",
	.usage = "FILE.yaml|RECIPE",
	.about = "Runs every arm with every seed through the stages of the file (pretrain, probe, train, eval, mlm, simcse, sts,\n"
		 "...), each in its own process, and prints a table: mean with its 95 % interval, difference from the baseline paired\n"
		 "by seed, p-values (t and Wilcoxon, with Holm's correction), seeds still needed, time and FLOPs. All options of all\n"
		 "runs are checked before the first one starts.\n"
		 "\n"
		 "    title: a separate norm for [CLS]\n"
		 "    base: {data: fashion-mnist, batch: 128}  # for every arm\n"
		 "    stages:\n"
		 "      - train: {epochs: 5}                   # a command and its options\n"
		 "      - knn: {k: 20}                         # on the checkpoint before it\n"
		 "    grid:\n"
		 "      norm: [ln, bn, \"sep(bn,ln)\"]         # or arms: [{name: A, norm: ln}]\n"
		 "    seeds: 5\n"
		 "    metric: knn.top1                         # STAGE.KEY of a stage's JSON\n"
		 "    also: [train.eval_top1]\n"
		 "    tune: {lr: [1e-3, 2e-3], epochs: 2}      # each arm's best value first\n"
		 "    stop: decided                            # early, at levels that allow it\n"
		 "    published: sepnorm/table4                # a paper's numbers beside ours\n"
		 "\n"
		 "An option of base, grid and arms goes to the first stage that has it; data, data_root and workers go to all;\n"
		 "`knn.k` goes to the stage named. After a kill or an interruption the same command resumes at the first unfinished\n"
		 "stage; finished stages are kept. A run that fails does not stop the others.\n"
		 "\n"
		 "A study that came with norma goes by its name, such as sepnorm/table4 or dpn/table1 (share/norma/recipes).",
	.conf_size = sizeof(struct settings),
	.options = options,
	.run = run,
};
