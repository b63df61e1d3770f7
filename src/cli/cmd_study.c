/* norma study FILE: arms x seeds from a file, with intervals and tests. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/args.h"
#include "base/share.h"
#include "study.h"

struct settings {
	char *out;
	int64_t seeds, parallel;
	struct cli_study how;
	struct nr_list run, sbatch;
	bool slurm;
	char *partition, *time, *mem, *account, *qos, *constraint, *launch, *jobs_from;
	int64_t nodes, ntasks, cpus_per_task;
};

static const struct nr_option options[] = {
	CLI_TEXT(struct settings, out, "", "DIR", "folder of the study, overriding the file's"),
	NR_OPT_INT(struct settings, seeds, 0, 0, NR_STUDY_MAX_SEEDS,
		"number of seeds, from 0, overriding the file's; more can be added later"),
	NR_OPT_INT(struct settings, parallel, 0, 0, 64,
		"runs at once, overriding the file's; they share the threads. With --slurm: tasks of an array at once"),
	CLI_STUDY_OPTIONS(struct settings, how),
	{ .name = "run", .type = NR_TLIST, .offset = offsetof(struct settings, run), .size = sizeof(struct nr_list), .text = "",
	  .metavar = "ARM/seed-S",
	  .help = "only this run, without a table; may be given several times, and at once on several machines" },
	CLI_TEXT(struct settings, jobs_from, "", "FILE",
		"leave the runs to another scheduler: write the command of each that is not done to FILE (- prints them)"),
	NR_OPT_BOOL(struct settings, slurm, "0", "submit the runs to Slurm as a job array, watch them, collect the results"),
	CLI_TEXT(struct settings, partition, "", "NAMES", "partition, as sbatch takes it; so are the following ones"),
	CLI_TEXT(struct settings, time, "", "TIME", "time limit of a run; one that is cut off is submitted again and resumes"),
	NR_OPT_INT(struct settings, nodes, 0, 0, 100000, "nodes of a run"),
	NR_OPT_INT(struct settings, ntasks, 0, 0, 1000000, "MPI ranks of a run"),
	NR_OPT_INT(struct settings, cpus_per_task, 0, 0, 100000, "CPUs of a run, or of each rank; each has as many threads"),
	CLI_TEXT(struct settings, mem, "", "SIZE", "memory of a run on each node: 8G"),
	CLI_TEXT(struct settings, account, "", "NAME", "account that pays"),
	CLI_TEXT(struct settings, qos, "", "NAME", "quality of service"),
	CLI_TEXT(struct settings, constraint, "", "FEATURES", "features that nodes must have"),
	{ .name = "sbatch", .type = NR_TLIST, .offset = offsetof(struct settings, sbatch), .size = sizeof(struct nr_list), .text = "",
	  .metavar = "WORDS", .help = "further settings for sbatch: --sbatch=\"--exclusive --mail-type=FAIL\"" },
	CLI_TEXT(struct settings, launch, "", "WORDS",
		"before the command of every stage that trains: \"mpirun -n 4\"; with several nodes or ranks: srun --mpi=pmix"),
	NR_OPT_END
};

/* ---- Slurm and others -------------------------------------------------------------------------------------------------------------- */

static int no_memory(struct cli *c) { return nr_fail(c->err, NR_EMEMORY, "cannot read the study", NULL, "out of memory"); }

static int add_setting(struct cli *c, struct nr_list *to, const char *name, const char *value)
{
	if (!*value) return NR_OK;
	if (strpbrk(value, "\n\r")) return nr_fail(c->err, NR_EVALUE, "cannot use", name, "it has several lines");
	char *text = *name ? nr_arena_printf(c->arena, strpbrk(value, " \"\\") ? "--%s='%s'" : "--%s=%s", name, value)
			   : nr_arena_strdup(c->arena, value);
	return text && !nr_list_add(to, text, c->arena) ? NR_OK : no_memory(c);
}

static int add_number(struct cli *c, struct nr_list *to, const char *name, int64_t value)
{
	char digits[32];
	snprintf(digits, sizeof digits, "%lld", (long long)value);
	return value ? add_setting(c, to, name, digits) : NR_OK;
}

static int read_sbatch(struct cli *c, const struct settings *v, struct nr_list *to)
{
	if (add_setting(c, to, "partition", v->partition) || add_setting(c, to, "time", v->time) || add_number(c, to, "nodes", v->nodes) ||
		add_number(c, to, "ntasks", v->ntasks) || add_number(c, to, "cpus-per-task", v->cpus_per_task) ||
		add_setting(c, to, "mem", v->mem) || add_setting(c, to, "account", v->account) || add_setting(c, to, "qos", v->qos) ||
		add_setting(c, to, "constraint", v->constraint)) return c->err->code;
	for (int64_t i = 0; i < v->sbatch.count; i++) {
		const char *words = v->sbatch.item[i];
		if (*words != '-') {
			nr_fail(c->err, NR_EUSAGE, "cannot use the setting for sbatch", words, "it does not begin with '-'");
			return nr_hint(c->err, "e.g. --sbatch=\"--exclusive --mail-type=FAIL\"");
		}
		if (add_setting(c, to, "", words)) return c->err->code;
	}
	return NR_OK;
}

/* Variables that norma reads go with the commands: schedulers start them in an environment of their own. */
static const char *const *environment(struct cli *c)
{
	int64_t n = 0;
	for (const struct cli_env *e = cli_environment; e->name; e++) n++;
	const char **all = nr_arena_alloc(c->arena, (size_t)(n + 1) * sizeof *all);
	int64_t count = 0;
	for (const struct cli_env *e = cli_environment; all && e->name; e++) {
		const char *value = strncmp(e->name, "NORMA_", 6) ? NULL : getenv(e->name);
		if (value && *value && !(all[count++] = nr_arena_printf(c->arena, "%s=%s", e->name, value))) return NULL;
	}
	return all;
}

static int make_away(struct cli *c, const struct settings *v, struct nr_study_away *a)
{
	char program[PATH_MAX], folder[PATH_MAX];
	const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	if (n < 0 || !getcwd(folder, sizeof folder))
		return nr_fail(c->err, NR_EIO, "cannot find", "the program and its folder", "%s", strerror(errno));
	program[n] = 0;
	const bool ranks = v->slurm && (v->nodes > 1 || v->ntasks > 1);
	const char *launch = *v->launch ? v->launch : ranks ? "srun --mpi=pmix" : "";
	struct nr_str flags = { 0 };
	if (v->how.retry) nr_str_add(&flags, " --retry");
	if (v->how.force) nr_str_add(&flags, " --force");
	if (c->common->threads) nr_str_printf(&flags, " --threads %lld", (long long)c->common->threads);
	if (strchr(launch, '\'')) return nr_fail(c->err, NR_EUSAGE, "cannot use", "--launch", "it has a quote");
	if (*launch) nr_str_printf(&flags, " --launch '%s'", launch);
	*a = (struct nr_study_away){ .norma = nr_arena_strdup(c->arena, program), .folder = nr_arena_strdup(c->arena, folder),
		.flags = nr_str_keep(&flags, c->arena), .env = environment(c), .at_once = v->parallel };
	return a->norma && a->folder && a->flags && a->env ? read_sbatch(c, v, &a->sbatch) : no_memory(c);
}

/* What says nothing without --slurm, or together. */
static int check_flags(struct cli *c, const struct settings *v)
{
	const bool jobs = *v->jobs_from;
	const char *needs = *v->partition ? "--partition" : *v->time ? "--time" : v->nodes ? "--nodes" : v->ntasks ? "--ntasks"
		: v->cpus_per_task ? "--cpus-per-task" : *v->mem ? "--mem" : *v->account ? "--account" : *v->qos ? "--qos"
		: *v->constraint ? "--constraint" : v->sbatch.count ? "--sbatch" : NULL;
	if (needs && !v->slurm) return cli_usage(c, "%s is for --slurm, which is not given", needs);
	if (v->slurm && jobs) return cli_usage(c, "--slurm and --jobs-from exclude each other");
	if (v->run.count && (v->slurm || jobs)) return cli_usage(c, "--run is what --slurm and --jobs-from start; give it alone");
	return NR_OK;
}

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
	if (check_flags(c, v)) return c->err->code;
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
	struct cli_study how = v->how;
	struct nr_study_away away;
	const bool elsewhere = v->slurm || *v->jobs_from;
	if (elsewhere && make_away(c, v, &away)) return c->err->code;
	how.slurm = v->slurm;
	how.launch = v->launch;
	how.jobs_from = *v->jobs_from ? v->jobs_from : NULL;
	how.away = elsewhere ? &away : NULL;
	how.only = v->run.count ? &v->run : NULL;
	const char *again = elsewhere || how.only ? cli_command_line(c) : nr_arena_printf(c->arena, "norma study %s/study.yaml", s.out);
	if (!again) again = "norma study";
	return how.only ? cli_study_alone(c, &s, &how, again) : cli_study_go(c, &s, &how, again);
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
		 "Processes on one or several machines that share the folder share the work: start the same command again. With\n"
		 "--slurm the runs are tasks of a job array; the command submits them, watches, submits what was preempted or killed\n"
		 "again, and makes the table. Ctrl-C leaves the jobs running, and the same command watches them again. --jobs-from\n"
		 "writes a file of commands, one for each run that is not done, for GNU parallel, PBS, HTCondor and others; each may\n"
		 "be killed and repeated at any time.\n"
		 "\n"
		 "A study that came with norma goes by its name, such as sepnorm/table4 or dpn/table1 (share/norma/recipes).",
	.conf_size = sizeof(struct settings),
	.options = options,
	.run = run,
};
