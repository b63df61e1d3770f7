/* norma vtab CKPT...: the Visual Task Adaptation Benchmark with 1000 samples a task. For each checkpoint a study of fine-tunings: tasks
 * times learning rates times seeds, resumed where it stopped; then the chosen ones are tested. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/save.h"
#include "base/yaml.h"
#include "infer/weights.h"
#include "lists.h"
#include "study/results.h"
#include "vtab.h"

struct settings {
	char *tasks, *rates, *data_root, *out, *optimizer;
	struct nr_list extra;
	int64_t seeds, steps, batch, image, limit, parallel;
	int32_t pixels;
	double weight_decay;
	bool list, json;
	struct cli_study how;
};
static const char *const pixel_choices[] = { "half", "imagenet", NULL };

static const struct nr_option options[] = {
	NR_OPT_BOOL(struct settings, list, "0", "list the tasks, which of them are there, and where to get the others"),
	CLI_TEXT(struct settings, tasks, "", "NAMES", "tasks, separated by commas; default: all that are there"),
	{ .name = "extra", .type = NR_TLIST, .offset = offsetof(struct settings, extra), .size = sizeof(struct nr_list), .text = "",
	  .metavar = "DATA", .help = "a further data set by the same protocol, such as cifar10 or folder:path=DIR; may be repeated" },
	CLI_TEXT(struct settings, rates, "0.03,0.01,0.003", "LIST", "learning rates to choose from"),
	NR_OPT_INT(struct settings, seeds, 3, 1, VTAB_SEEDS, "runs of each task and learning rate"),
	NR_OPT_INT(struct settings, steps, 2500, 1, 1e9, "steps of a run"),
	NR_OPT_INT(struct settings, batch, 64, 1, 1e6, "samples of a step"),
	CLI_TEXT(struct settings, optimizer, "sgd", "NAME", "update rule of the runs"),
	NR_OPT_FLOAT(struct settings, weight_decay, 0, 0, 1000, "weight decay of the runs"),
	NR_OPT_INT(struct settings, image, 0, 0, 4096, "size that pictures are resized to, without cropping; 0: the checkpoint's"),
	NR_OPT_ENUM(struct settings, pixels, "half", pixel_choices,
		"half: from -1 to 1, as the benchmark's code; imagenet: by its mean and standard deviation"),
	NR_OPT_INT(struct settings, limit, 0, 0, 1e15, "test on the first N samples only; 0: all, as the protocol has it"),
	NR_OPT_INT(struct settings, parallel, 1, 1, 64, "runs at once; they share the threads"),
	CLI_TEXT(struct settings, data_root, "", "DIR", "folder of the data sets"),
	CLI_TEXT(struct settings, out, "runs/vtab", "DIR", "folder of the runs and of vtab.json and vtab.md"),
	NR_OPT_BOOL(struct settings, json, "0", "print one line of JSON"),
	NR_OPT_END
};

/* The last part of a path: files have the same names in all runs. */
static bool says_nothing(const char *part)
{
	return !*part || !strcmp(part, "model") || !strcmp(part, "best") || !strcmp(part, "last");
}

/* A checkpoint goes by the last part of its path that says something; a number tells those apart that are the same. */
static int name_checkpoints(struct cli *c, struct vtab_all *all, const struct nr_list *args)
{
	all->checkpoints = args->count;
	all->checkpoint = nr_arena_alloc(c->arena, (size_t)args->count * sizeof *all->checkpoint);
	all->name = nr_arena_alloc(c->arena, (size_t)args->count * sizeof *all->name);
	all->score = nr_arena_alloc(c->arena, (size_t)(args->count * all->entries + 1) * sizeof *all->score);
	if (!all->checkpoint || !all->name || !all->score) return nr_fail(c->err, NR_EMEMORY, "cannot start", "vtab", "out of memory");
	for (int64_t i = 0; i < args->count; i++) {
		char *name = nr_arena_strdup(c->arena, args->item[i]);
		all->checkpoint[i] = nr_weights_path(args->item[i], c->arena);
		if (!name || !all->checkpoint[i]) return nr_fail(c->err, NR_EMEMORY, "cannot start", "vtab", "out of memory");
		char *end = strstr(name, ".safetensors");
		if (end) *end = 0;
		while ((end = strrchr(name, '/')) && says_nothing(end + 1)) *end = 0;
		all->name[i] = end ? end + 1 : name;
		for (int64_t k = 0; k < i; k++)
			if (all->name[i] && !strcmp(all->name[k], all->name[i]))
				all->name[i] = nr_arena_printf(c->arena, "%s-%lld", all->name[i], (long long)i + 1);
		if (!all->name[i]) return nr_fail(c->err, NR_EMEMORY, "cannot start", "vtab", "out of memory");
	}
	return NR_OK;
}

/* ---- a checkpoint's study -------------------------------------------------------------------------------------------------------- */

static void quoted(struct nr_str *s, const char *text)
{
	nr_str_add(s, "\"");
	for (const char *p = text; *p; p++) nr_str_printf(s, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
	nr_str_add(s, "\"");
}

static void add_arm(struct nr_str *s, const struct vtab_entry *e, double rate)
{
	nr_str_add(s, "  - {name: ");
	quoted(s, e->id);
	s->len--;                                       /* the name goes on */
	nr_str_printf(s, ", %g\", data: ", rate);
	quoted(s, e->data);
	nr_str_printf(s, ", lr: %g}\n", rate);
}

/* test: the chosen arms alone, with a stage that tests them; their fine-tunings are there already. */
static void study_text(const struct settings *v, const struct vtab_all *all, int64_t k, bool test, struct nr_str *s)
{
	nr_str_printf(s, "title: VTAB\nseeds: %lld\nparallel: %lld\nmetric: finetune.eval_top1\n", (long long)v->seeds,
		(long long)v->parallel);
	nr_str_printf(s, "out: \"%s/%s\"\n", v->out, all->name[k]);
	if (*v->data_root) nr_str_add(s, "base: {data_root: "), quoted(s, v->data_root), nr_str_add(s, "}\n");
	nr_str_add(s, "stages:\n  - finetune: {from: ");
	quoted(s, all->checkpoint[k]);
	nr_str_printf(s, ", steps: %lld, batch: %lld, optimizer: %s, weight_decay: %g, schedule: cosine, warmup: 0.1, eval_split: val, "
			 "eval_every: 0, crop: resize", (long long)v->steps, (long long)v->batch, v->optimizer, v->weight_decay);
	if (v->image) nr_str_printf(s, ", image: %lld", (long long)v->image);
	nr_str_add(s, "}\n");
	if (test) nr_str_printf(s, "  - eval: {split: test, limit: %lld}\n", (long long)v->limit);
	nr_str_add(s, "arms:\n");
	for (int64_t i = 0; i < all->entries; i++)
		for (int64_t r = 0; !all->entry[i].missing && r < all->rates; r++)
			if (!test || r == all->score[k * all->entries + i].rate) add_arm(s, &all->entry[i], all->rate[r]);
}

static double result_at(struct cli *c, const struct nr_study *s, int64_t arm, int64_t seed, const char *file, const char *key)
{
	struct nr_error ignored = { 0 };
	const char *path = nr_study_path(s, arm, seed, file, c->arena);
	json_t *o = path ? nr_json_load(path, &ignored) : NULL;
	double value = NAN;
	if (o && !nr_result_number(o, key, &value)) value = NAN;
	json_decref(o);
	return value;
}

static int run_study(struct cli *c, const struct settings *v, const struct vtab_all *all, int64_t k, bool test, struct nr_study *s)
{
	struct nr_str text = { 0 };
	struct nr_yaml_errors errors = { 0 };
	const struct nr_study_command *commands = cli_study_commands(c);
	study_text(v, all, k, test, &text);
	char *kept = nr_arena_strdup(c->arena, nr_str_text(&text));
	const bool whole = kept && commands && !text.failed;
	nr_str_release(&text);
	if (!whole) return nr_fail(c->err, NR_EMEMORY, "cannot start", "vtab", "out of memory");
	if (nr_study_parse(s, kept, strlen(kept), "vtab", commands, c->arena, &errors, c->err)) {
		struct nr_str list = { 0 };
		nr_yaml_errors_text(&errors, &list);
		fputs(nr_str_text(&list), stderr);
		nr_str_release(&list);
		return c->err->code;
	}
	return cli_study_runs(c, s, &v->how, "the same command");
}

static int measure(struct cli *c, const struct settings *v, struct vtab_all *all, int64_t k)
{
	struct nr_study s;
	int64_t arm = 0;
	if (run_study(c, v, all, k, false, &s)) return c->err->code;
	for (int64_t i = 0; i < all->entries; i++) {
		struct vtab_score *to = &all->score[k * all->entries + i];
		*to = (struct vtab_score){ .rate = -1 };
		for (int64_t r = 0; !all->entry[i].missing && r < all->rates; r++, arm++) {
			double mean = 0;
			for (int64_t n = 0; n < v->seeds; n++)
				mean += result_at(c, &s, arm, n, "finetune.json", "eval_top1") / (double)v->seeds;
			if (to->rate < 0 || mean > to->val) to->rate = r, to->val = mean;       /* of equals the first */
		}
	}
	arm = 0;
	if (run_study(c, v, all, k, true, &s)) return c->err->code;
	for (int64_t i = 0; i < all->entries; i++) {
		struct vtab_score *to = &all->score[k * all->entries + i];
		if (all->entry[i].missing) continue;
		for (int64_t n = 0; n < v->seeds; n++) to->test[n] = result_at(c, &s, arm, n, "eval.json", "top1");
		to->sample = nr_sample(to->test, v->seeds);
		arm++;
	}
	return NR_OK;
}

/* ---- the command ---------------------------------------------------------------------------------------------------------------- */

static int write_files(struct cli *c, const struct vtab_all *all, const char *out, json_t *json)
{
	struct nr_str table = { 0 };
	vtab_table(all, true, &table);
	char *text = nr_json_dump(json, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	const char *to = nr_arena_printf(c->arena, "%s/vtab.json", out), *page = nr_arena_printf(c->arena, "%s/vtab.md", out);
	int code = text && to && page && !table.failed ? NR_OK : nr_fail(c->err, NR_EMEMORY, "cannot write", out, "out of memory");
	if (!code) code = nr_save_file(to, text, strlen(text), c->err);
	if (!code) code = nr_save_file(page, nr_str_text(&table), table.len, c->err);
	free(text);
	nr_str_release(&table);
	return code;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct settings *v = conf;
	struct vtab_all *all = nr_arena_alloc(c->arena, sizeof *all);
	if (!all) return nr_fail(c->err, NR_EMEMORY, "cannot start", "vtab", "out of memory");
	all->seeds = v->seeds;
	if (!v->list && !args->count) return cli_usage(c, "vtab needs at least one checkpoint, or --list");
	if (vtab_find(c, all, v->tasks, &v->extra, pixel_choices[v->pixels], *v->data_root ? v->data_root : NULL)) return c->err->code;
	if (v->list) return vtab_print_there(all), NR_OK;
	int64_t there = 0;
	for (int64_t i = 0; i < all->entries; i++) {
		struct vtab_entry *e = &all->entry[i];
		there += !e->missing;
		if (v->limit && v->limit < e->test) e->test = v->limit, e->origin.partial |= e->task != NULL;
	}
	if (!there) {
		nr_fail(c->err, NR_EIO, "cannot run", "vtab", "no task is there");
		return nr_hint(c->err, "`norma vtab --list` says where to get them");
	}
	static const struct cli_numbers of_rates = { "rates", "a positive number", DBL_TRUE_MIN, INFINITY, false, VTAB_RATES };
	if ((all->rates = cli_list_numbers(c, &of_rates, v->rates, all->rate)) <= 0 || name_checkpoints(c, all, args)) return c->err->code;
	for (int64_t k = 0; k < all->checkpoints; k++)
		if (measure(c, v, all, k)) return c->err->code;
	json_t *json = vtab_json(all);
	int code = write_files(c, all, v->out, json);
	if (!code && v->json) code = cli_print_json(json_incref(json), c->err);
	json_decref(json);
	if (code || v->json) return code;
	struct nr_str text = { 0 };
	vtab_table(all, false, &text);
	fputs(nr_str_text(&text), stdout);
	nr_str_release(&text);
	printf("tables            %s/vtab.md, vtab.json\n", v->out);
	return NR_OK;
}

const struct cli_command cli_vtab = {
	.name = "vtab",
	.title = "fine-tune on the tasks of VTAB-1k, or on your own sets by its protocol",
	.usage = "CHECKPOINT... | --list",
	.about = "Fine-tunes each checkpoint on every task of the Visual Task Adaptation Benchmark that is there (19 sets in three\n"
		 "groups): 800 samples to train on, 200 to choose with. Of the learning rates the one with the best mean validation\n"
		 "accuracy over the seeds is taken, and its runs are tested on the whole test split. The table has means with 95 %\n"
		 "intervals, and the mean of each group, for each checkpoint.\n"
		 "\n"
		 "Published splits are used where their lists are (vtab-1k/NAME/train800.txt, val200.txt, test.txt below the data\n"
		 "root); otherwise 1000 samples are drawn here, always the same ones, which the list says. A set with fewer samples\n"
		 "than the benchmark has is marked as partial and left out of the means. Literature normalises pixels in two ways;\n"
		 "--pixels chooses, and the table states it.\n"
		 "\n"
		 "Runs are resumed by the same command; they are kept in --out, as those of a study.",
	.conf_size = sizeof(struct settings),
	.options = options,
	.run = run,
};
