/* norma robust CKPT...: corrupted and otherwise shifted pictures, with and without adaptation at test time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/save.h"
#include "data/names_in.h"
#include "infer/evaluate.h"
#include "lists.h"
#include "robust.h"

enum { AUTO_SETTING, SETTING_32, SETTING_224 };
static const char *const settings[] = { "auto", "32", "224", NULL };
static const struct nr_option options[] = {
	CLI_TEXT(struct robust, model, "", "MODEL", "model, if the file does not name it"),
	CLI_TEXT(struct robust, norm, "", "PLAN", "norm plan, if the file does not name it"),
	CLI_TEXT(struct robust, data, "", "NAME", "data set; default: the one the model was trained on"),
	CLI_TEXT(struct robust, data_root, "", "DIR", "folder of the data sets"),
	CLI_TEXT(struct robust, split, "auto", "SPLIT", "split to evaluate on; auto: test, val or train, the first that there is"),
	NR_OPT_INT(struct robust, samples, 0, 0, 1e15, "use only N samples of the split, the same random ones for all; 0: all"),
	CLI_TEXT(struct robust, corruptions, "all", "LIST",
		"which, e.g. gaussian_noise,fog; or groups: noise, blur, weather, digital; none"),
	CLI_TEXT(struct robust, severities, "1,2,3,4,5", "LIST", "which severities"),
	NR_OPT_ENUM(struct robust, setting, "auto", settings,
		"severities of CIFAR-10-C (32 px) or ImageNet-C (224 px); auto: the nearer size"),
	NR_OPT_BOOL(struct robust, stored, "0", "corrupted pictures go through a JPEG of quality 85, as those of ImageNet-C did"),
	CLI_TEXT(struct robust, frost, "", "DIR",
		"photographs of frost; without them frost is a texture of ours, which compares with nothing published"),
	CLI_TEXT(struct robust, corrupted, "", "DIR",
		"corrupted pictures that are there: DIR/CORRUPTION/SEVERITY/CLASS/..., as ImageNet-C has them"),
	CLI_TEXT(struct robust, adapt, "none", "LIST",
		"how the model adapts while it is tested: none, stats, tent, sar; several are compared"),
	NR_OPT_FLOAT(struct robust, prior, 16, 0, 1e9, "stats: the running statistics count as so many samples"),
	NR_OPT_FLOAT(struct robust, adapt_lr, 0, 0, 10, "tent, sar: learning rate; 0: 0.001"),
	NR_OPT_FLOAT(struct robust, margin, 0.4, 0, 1, "sar: only pictures whose entropy is below this share of log(classes) count"),
	NR_OPT_FLOAT(struct robust, radius, 0.05, 0, 10, "sar: how far the sharpness-aware step looks"),
	NR_OPT_FLOAT(struct robust, floor, 0.2, 0, 100, "sar: a moving mean entropy below it starts the model anew"),
	NR_OPT_FLOAT(struct robust, leave, 0.25, 0, 1,
		"sar: share of the blocks, from the last one back, whose norms stay as they are, as do those behind them"),
	NR_OPT_BOOL(struct robust, adapt_all, "0",
		"tent, sar: all parameters of norms, such as DTN's lambda and P, not gain and bias alone"),
	CLI_TEXT(struct robust, relative_to, "", "ARM", "corruption errors relative to those of this arm (mCE and relative mCE)"),
	CLI_TEXT(struct robust, classes, "", "FILE", "names of the model's classes, one per line, if the file does not have them"),
	NR_OPT_INT(struct robust, batch, 128, 1, 1000000, "samples at once: what batch statistics see, and how often tent and sar step"),
	CLI_TEXT(struct robust, resample, "timm", "KIND", "how to resize a position table of another size: timm, mae, dino, bigvision"),
	NR_OPT_FLOAT(struct robust, crop_share, 0, 0, 1, "share of the picture that the centre crop keeps; 0: as in training"),
	NR_OPT_INT(struct robust, seed, 0, 0, 1e15, "seed of the corruptions and of the order of the pictures"),
	CLI_TEXT(struct robust, out, "", "DIR", "folder for robust.html, robust.json, errors.csv, and the pictures as pictures.png"),
	NR_OPT_BOOL(struct robust, json, "0", "print one line of JSON"),
	NR_OPT_END
};

/* ---- settings ----------------------------------------------------------------------------------------------------------------- */

/* Calls take for every word of a list separated by commas or blanks. */
static int each_word(struct robust_job *j, const char *text, int (*take)(struct robust_job *, const char *word))
{
	char word[CLI_WORD];
	int code = NR_OK;
	while (!code && cli_list_word(&text, word)) code = take(j, word);
	return code;
}

static int take_corruption(struct robust_job *j, const char *word)
{
	const bool none = !strcmp(word, "none");
	bool some = none;
	bool on[NR_CORRUPTIONS] = { false };
	for (int i = 0; i < j->corruptions; i++) on[j->corruption[i]] = true;
	for (int i = 0; i < NR_CORRUPTIONS && !none; i++) {
		if (strcmp(word, "all") && strcmp(word, nr_corruption_group(i))) continue;
		on[i] = some = true;
	}
	const int number = some ? 0 : nr_corruption_find(word, j->c->err);
	if (number < 0) return cli_usage(j->c, "--corruptions: %s", j->c->err->hint[0] ? j->c->err->hint : word);
	if (!some) on[number] = true;
	j->corruptions = 0;
	for (int i = 0; i < NR_CORRUPTIONS; i++)
		if (on[i]) j->corruption[j->corruptions++] = i;
	return NR_OK;
}

static int take_severity(struct robust_job *j, const char *word)
{
	int64_t number;
	if (!nr_parse_int(word, &number) || number < 1 || number > NR_SEVERITIES)
		return cli_usage(j->c, "--severities: '%s' is not a severity from 1 to %d", word, (int)NR_SEVERITIES);
	for (int i = 0; i < j->severities; i++)
		if (j->severity[i] == number) return cli_usage(j->c, "--severities: %s is there twice", word);
	j->severity[j->severities++] = (int)number;
	return NR_OK;
}

static int take_adapt(struct robust_job *j, const char *word)
{
	const struct robust *v = j->v;
	int kind = 0;
	while (nr_adapt_names[kind] && strcmp(nr_adapt_names[kind], word)) kind++;
	if (!nr_adapt_names[kind]) {
		const char *near = nr_nearest(word, nr_adapt_names);
		cli_usage(j->c, "--adapt: there is no '%s'", word);
		return nr_hint(j->c->err, near ? "did you mean '%s'?" : "use none, stats, tent or sar", near);
	}
	for (int i = 0; i < j->adapts; i++)
		if ((int)j->adapt[i].kind == kind) return cli_usage(j->c, "--adapt: %s is there twice", word);
	j->adapt[j->adapts++] = (struct nr_adapt){ .kind = (enum nr_adapt_kind)kind, .prior = v->prior, .lr = v->adapt_lr,
		.margin = v->margin, .radius = v->radius, .floor = v->floor, .leave = v->leave, .whole = v->adapt_all };
	return NR_OK;
}

static int settle(struct robust_job *j)
{
	const struct robust *v = j->v;
	if (each_word(j, v->corruptions, take_corruption) || each_word(j, v->severities, take_severity) ||
		each_word(j, v->adapt, take_adapt))
		return j->c->err->code;
	if (!j->adapts) return cli_usage(j->c, "--adapt: no value");
	if (j->corruptions && !j->severities) return cli_usage(j->c, "--severities: no value");
	if (*v->corrupted && (*v->frost || v->stored || v->setting))
		return cli_usage(j->c, "--corrupted: the pictures are there; --frost, --setting and --stored make others");
	return *v->frost ? nr_frost_open(&j->frost, v->frost, j->c->err) : NR_OK;
}

/* runs/study/ARM/seed-3/train/model.safetensors -> ARM: seeds of an arm of a study; else the file itself. */
static const char *arm_of(struct cli *c, const char *path)
{
	const char *seed = strstr(path, "/seed-"), *from = seed;
	if (!seed) return path;
	while (from > path && from[-1] != '/') from--;
	return nr_arena_printf(c->arena, "%.*s", (int)(seed - from), from);
}

static int add_arm(struct robust_job *j, const char *name, enum nr_adapt_kind adapt)
{
	for (int64_t i = 0; i < j->arms; i++)
		if (!strcmp(j->arm[i].name, name) && j->arm[i].adapt == adapt) return NR_OK;
	j->arm[j->arms++] = (struct robust_arm){ name, adapt };
	return NR_OK;
}

/* ---- one checkpoint ------------------------------------------------------------------------------------------------------------ */

struct watching { struct nr_progress *bar; int64_t before; };

static int watch(void *context, int64_t done)
{
	const struct watching *w = context;
	nr_progress_update(w->bar, w->before + done, NULL);
	return 0;
}

struct measured {                               /* one checkpoint, open */
	struct cli_opened o;
	struct nr_shift_set *set;
	struct nr_adapter *adapter;
	bool *present;                          /* NULL: all classes occur */
	struct nr_progress bar;
	int64_t done;                           /* pictures, for the bar */
};

static int score(struct robust_job *j, struct measured *m, struct nr_shift_set *set, const struct nr_corrupt *how,
	struct nr_calibration *out)
{
	struct watching w = { &m->bar, m->done };
	const struct nr_shift shift = { .corrupt = how, .present = m->present, .batch = j->v->batch, .watch = watch, .context = &w };
	const int code = nr_shift_score(set, m->adapter, &shift, out, j->c->err);
	m->done += nr_shift_set_count(set);
	return code;
}

/* Which classes the softmax is limited to: those that occur. */
static int find_present(struct robust_job *j, struct measured *m, const struct nr_shift_set *set)
{
	j->classes = nr_model_int(&m->o.w->model, "classes");
	if (nr_classes_fit(j->classes, m->o.source, j->c->err)) return j->c->err->code;
	bool *present = nr_arena_alloc(j->c->arena, (size_t)j->classes * sizeof *present);
	if (!present) return nr_fail(j->c->err, NR_EMEMORY, "cannot measure", m->o.source->of->name, "out of memory");
	j->present = nr_shift_set_present(set, present);
	m->present = j->present < j->classes ? present : NULL;
	return NR_OK;
}

static struct cli_model flags_of(const struct robust *v, const char *data)
{
	return (struct cli_model){ .model = v->model, .norm = v->norm, .data = (char *)(uintptr_t)data, .data_root = v->data_root,
		.split = v->split, .resample = v->resample, .batch = v->batch, .workers = 1, .crop_share = v->crop_share,
		.split_alone = true, .names = v->classes };
}

static int open_set(struct robust_job *j, struct cli_opened *o, struct nr_shift_set **set)
{
	return nr_shift_set_open(set, &(struct nr_shift_source){ .source = o->source, .split = o->e.split, .samples = j->v->samples,
		.seed = (uint64_t)j->v->seed, .view = o->e.augment }, j->c->err);
}

/* DIR/CORRUPTION/SEVERITY/CLASS/...: what the authors of ImageNet-C hand out. */
static int score_stored(struct robust_job *j, struct measured *m, int corruption, int severity, struct nr_calibration *out,
	const char *path)
{
	const char *folder = nr_arena_printf(j->c->arena, "%s/%s/%d", j->v->corrupted, nr_corruption_name(corruption), severity);
	const char *data = folder ? nr_arena_printf(j->c->arena, "folder:path=%s,val=0", folder) : NULL;
	const struct cli_model flags = flags_of(j->v, data);
	struct cli_opened o = { 0 };
	struct nr_shift_set *set = NULL;
	if (!data) return nr_fail(j->c->err, NR_EMEMORY, "cannot measure", path, "out of memory");
	if (!nr_is_folder(folder)) {
		nr_fail(j->c->err, NR_EIO, "cannot read corrupted pictures", folder, "no such folder");
		return nr_hint(j->c->err, "name those that are there: --corruptions gaussian_noise,fog --severities 1,3");
	}
	int code = cli_model_open(&o, j->c, &flags, path);
	nr_progress_release(&o.bar);
	if (!code) code = open_set(j, &o, &set);
	if (!code) code = score(j, m, set, NULL, out);
	nr_shift_set_close(set);
	cli_model_close(&o);
	return code;
}

static int score_all(struct robust_job *j, struct measured *m, struct robust_result *r)
{
	const struct robust *v = j->v;
	int code = score(j, m, m->set, NULL, &r->clean);
	for (int k = 0; k < j->corruptions && !code; k++)
		for (int s = 0; s < j->severities && !code; s++) {
			const int number = j->corruption[k], severity = j->severity[s];
			struct nr_calibration *to = &r->cell[number][severity - 1];
			const struct nr_corrupt how = { .number = number, .severity = severity, .setting = j->setting,
				.seed = (uint64_t)v->seed, .frost = *v->frost ? &j->frost : NULL, .stored = j->stored };
			code = *v->corrupted ? score_stored(j, m, number, severity, to, r->file) : score(j, m, m->set, &how, to);
			r->restarts += nr_adapter_restarts(m->adapter);
		}
	return code;
}

static int measure(struct robust_job *j, struct measured *m, const char *path)
{
	struct nr_error *err = j->c->err;
	const int64_t side = nr_model_int(&m->o.w->model, "image");
	j->setting = j->v->setting == SETTING_32 ? NR_CORRUPT_32 : NR_CORRUPT_224;
	if (j->v->setting == AUTO_SETTING) j->setting = nr_corrupt_setting_for(side);
	j->stored = j->v->stored;
	j->data = nr_arena_printf(j->c->arena, "%s/%s", m->o.source->of->name, nr_split_name(m->o.e.split));
	if (open_set(j, &m->o, &m->set) || find_present(j, m, m->set)) return err->code;
	j->samples = nr_shift_set_count(m->set);
	char label[64];
	snprintf(label, sizeof label, "checkpoint %lld", (long long)(j->results / j->adapts + 1));
	nr_progress_init(&m->bar, stderr, label, j->samples * j->adapts * (1 + j->corruptions * j->severities), 0);
	int code = NR_OK;
	for (int a = 0; a < j->adapts && !code; a++) {
		struct robust_result *r = &j->result[j->results++];
		*r = (struct robust_result){ .arm = arm_of(j->c, path), .file = path, .norms = nr_arena_strdup(j->c->arena, m->o.w->norms),
			.adapt = j->adapt[a].kind };
		if (!r->arm || !r->norms || !j->data) return nr_fail(err, NR_EMEMORY, "cannot measure", path, "out of memory");
		code = nr_adapter_open(&m->adapter, m->o.w, j->v->batch, &j->adapt[a], err);
		if (code) break;
		r->free = nr_adapter_free(m->adapter), r->batchwise = nr_adapter_batchwise(m->adapter);
		code = score_all(j, m, r);
		nr_adapter_close(m->adapter);
		if (!code) code = add_arm(j, r->arm, r->adapt);
	}
	nr_progress_release(&m->bar);
	return code;
}

static int checkpoint(struct robust_job *j, const char *path, bool first)
{
	struct measured m = { 0 };
	const struct cli_model flags = flags_of(j->v, j->v->data);
	int code = cli_model_open(&m.o, j->c, &flags, path);
	nr_progress_release(&m.o.bar);
	if (!code) code = measure(j, &m, path);
	if (!code && first && *j->v->out && j->corruptions && !*j->v->corrupted) code = robust_picture_grid(j, m.set);
	nr_shift_set_close(m.set);
	cli_model_close(&m.o);
	return code;
}

/* ---- the command --------------------------------------------------------------------------------------------------------------- */

static void warn(const struct robust_job *j)
{
	if (robust_own_frost(j))
		nr_log_line(NR_LOG_WARNING, "frost is a texture of ours, for want of --frost: its error compares with no published one");
	bool none = false;
	for (int64_t i = 0; i < j->results; i++) none |= j->result[i].adapt == NR_ADAPT_STATS && !j->result[i].batchwise;
	if (none) nr_log_line(NR_LOG_WARNING, "where no norm keeps running statistics, --adapt stats changes nothing");
}

static int check_baseline(struct robust_job *j)
{
	const char *name = j->v->relative_to;
	j->alexnet = *j->v->corrupted && !*name && j->classes == 1000 && j->corruptions == NR_CORRUPTIONS && j->severities == NR_SEVERITIES;
	for (int64_t i = 0; i < j->arms && *name; i++)
		if (!strcmp(j->arm[i].name, name)) return NR_OK;
	if (!*name) return NR_OK;
	struct nr_near near = { .word = name };
	for (int64_t i = 0; i < j->arms; i++) nr_near_try(&near, j->arm[i].name);
	cli_usage(j->c, "--relative-to: there is no arm '%s'", name);
	return nr_hint(j->c->err, near.best ? "did you mean '%s'?" : "arms are called as in the table", near.best);
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct robust *v = conf;
	struct robust_job j = { .c = c, .v = v };
	if (args->count < 1) return cli_usage(c, "at least one checkpoint is needed");
	for (int64_t i = 0; i < args->count && *v->relative_to; i++) {
		const char *arm = arm_of(c, args->item[i]);
		if (arm && !strcmp(arm, v->relative_to)) break;
		if (i + 1 == args->count) return cli_usage(c, "--relative-to: none of the checkpoints is of an arm '%s'", v->relative_to);
	}
	int code = settle(&j);
	if (!code && *v->out) code = nr_folder_make(v->out, c->err);
	const size_t most = (size_t)args->count * ROBUST_ADAPTS;
	j.result = calloc(most, sizeof *j.result);
	j.arm = calloc(most, sizeof *j.arm);
	if (!code && (!j.result || !j.arm)) code = nr_fail(c->err, NR_EMEMORY, "cannot start", "robust", "out of memory");
	if (!code) cli_bound_spin(c);
	for (int64_t i = 0; i < args->count && !code; i++) code = checkpoint(&j, args->item[i], i == 0);
	if (!code) code = check_baseline(&j);
	if (!code) warn(&j);
	if (!code && *v->out) code = robust_write(&j, v->out);
	if (!code && v->json) code = cli_print_json(robust_json(&j, false), c->err);
	else if (!code) robust_print(&j);
	free(j.result);
	free(j.arm);
	nr_picture_release(&j.pictures);
	nr_frost_close(&j.frost);
	return code;
}

const struct cli_command cli_robust = {
	.name = "robust",
	.title = "corrupted and shifted pictures, with and without adaptation",
	.usage = "CHECKPOINT...",
	.about = "Measures error, likelihood and calibration on pictures with the 15 corruptions of ImageNet-C at 5 severities, made\n"
		 "here from any data set: the same for every model, seeded. Checkpoints of a study (ARM/seed-S/...) are seeds of their\n"
		 "arm; several give 95 % intervals. --out writes a page with heat maps, reliability diagrams and the pictures.\n"
		 "\n"
		 "--corrupted DIR reads ImageNet-C itself; then mCE is relative to AlexNet's published errors (its clean error of\n"
		 "43.5 % is unchecked). Elsewhere there is the mean error, or mCE relative to an arm: --relative-to LN.\n"
		 "ImageNet-R, -A and -V2 are data sets without corruptions: --data folder:path=imagenet-r,val=0 --corruptions none;\n"
		 "the softmax is limited to the classes that occur, by the names of their folders.\n"
		 "\n"
		 "--adapt lets norms adapt to the pictures they are tested on, batch after batch, from the start for each corruption:\n"
		 "stats mixes the batch's statistics with the running ones, tent lowers the entropy of the predictions by the gain and\n"
		 "bias of all norms, sar does so from sure pictures and towards flat minima.",
	.conf_size = sizeof(struct robust),
	.options = options,
	.run = run,
};
