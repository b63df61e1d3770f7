/* norma remove IN --out DIR: norms are taken out one site at a time, with some training after each. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/table.h"
#include "cli.h"
#include "infer/weights.h"
#include "norms/plan.h"
#include "surgery/surgery.h"

struct removal { char *data, *data_root, *out, *sites; int64_t steps, batch, samples, eval_limit, seed; double lr, tolerance; bool json; };

static const struct nr_option options[] = {
	CLI_TEXT(struct removal, data, NULL, "DATA", "data set to train, calibrate and evaluate on"),
	CLI_TEXT(struct removal, data_root, "", "DIR", "folder of the data sets"),
	CLI_TEXT(struct removal, out, NULL, "DIR", "new folder: a run for each site, and model.safetensors, folded, at the end"),
	CLI_TEXT(struct removal, sites, "*", "PATTERN", "sites to try: all that have a layer or rms norm, or those that match"),
	NR_OPT_INT(struct removal, steps, 200, 1, 1000000000, "training steps after each site"),
	NR_OPT_FLOAT(struct removal, lr, 2e-4, 0, 1e6, "learning rate of these steps"),
	NR_OPT_INT(struct removal, batch, 128, 1, 1000000, "samples per step"),
	NR_OPT_INT(struct removal, samples, 512, 32, 1000000, "samples that the constants are fitted to"),
	NR_OPT_INT(struct removal, eval_limit, 0, 0, 1000000000, "evaluate on the first N samples; 0: all"),
	NR_OPT_FLOAT(struct removal, tolerance, 0.1, 0, 1e6,
		"a norm stays if its removal leaves the loss higher than at first by this share"),
	NR_OPT_INT(struct removal, seed, 0, 0, 9e15, "seed of the training"),
	NR_OPT_BOOL(struct removal, json, "0", "print one line of JSON at the end"),
	NR_OPT_END
};

struct score { double loss, top1; };
struct row { const char *site, *norm; struct score cut, tuned; bool removed; };
struct work { struct cli *c; const struct removal *o; const char *norms, *file; struct row *row; int64_t rows; struct score first, last; };

/* ---- the commands that do the work ---------------------------------------------------------------------------------------- */

/* Runs norma with these words (the last is NULL); what it prints goes to the log. */
static int norma(const struct work *w, const char *log, char *const *words)
{
	posix_spawn_file_actions_t act;
	pid_t pid;
	int status = 0;
	if (posix_spawn_file_actions_init(&act)) return nr_fail(w->c->err, NR_EMEMORY, "cannot start", words[1], "out of memory");
	posix_spawn_file_actions_addopen(&act, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&act, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	posix_spawn_file_actions_adddup2(&act, 1, 2);
	const int code = posix_spawn(&pid, "/proc/self/exe", &act, NULL, words, environ);
	posix_spawn_file_actions_destroy(&act);
	if (code) return nr_fail(w->c->err, NR_EIO, "cannot start", words[1], "%s", strerror(code));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
	if (!status) return NR_OK;
	nr_fail(w->c->err, NR_EVALUE, "cannot go on", words[1], "`norma %s` failed", words[1]);
	return nr_hint(w->c->err, "'%s' has what it said", log);
}

#define text(w, ...) nr_arena_printf((w)->c->arena, __VA_ARGS__)

/* The last line of a log, as an object. */
static json_t *last_line(const char *log)
{
	FILE *f = fopen(log, "r");
	char *line = NULL;
	size_t room = 0;
	json_t *last = NULL;
	while (f && getline(&line, &room, f) >= 0) {
		json_t *j = json_loads(line, 0, NULL);
		if (!j) continue;
		json_decref(last);
		last = j;
	}
	free(line);
	if (f) fclose(f);
	return last;
}

static int evaluate(const struct work *w, const char *file, const char *log, struct score *s)
{
	char root[] = "--data-root", limit[] = "--limit", json[] = "--json", data[] = "--data", self[] = "norma", eval[] = "eval";
	char *const words[] = { self, eval, text(w, "%s", file), json, data, w->o->data, limit,
		text(w, "%lld", (long long)w->o->eval_limit), *w->o->data_root ? root : NULL, w->o->data_root, NULL };
	if (norma(w, log, words)) return w->c->err->code;
	json_t *j = last_line(log);
	*s = (struct score){ json_number_value(json_object_get(j, "nll")), json_number_value(json_object_get(j, "top1")) };
	json_decref(j);
	return s->loss > 0 ? NR_OK : nr_fail(w->c->err, NR_EVALUE, "cannot read the score of", file, "'%s' has none", log);
}

static int cut(const struct work *w, const char *norms, const char *to, const char *log)
{
	char self[] = "norma", convert[] = "convert", norm[] = "--norm", calibrate[] = "--calibrate", samples[] = "--samples",
		root[] = "--data-root";
	char *const words[] = { self, convert, text(w, "%s", w->file), text(w, "%s", to), norm, text(w, "%s", norms), calibrate, w->o->data,
		samples, text(w, "%lld", (long long)w->o->samples), *w->o->data_root ? root : NULL, w->o->data_root, NULL };
	return norma(w, log, words);
}

static int tune(const struct work *w, const char *file, const char *dir, const char *log)
{
	char self[] = "norma", finetune[] = "finetune", data[] = "--data", root[] = "--data-root", every[] = "--eval-every=0",
		warmup[] = "--warmup=0";
	char *const words[] = { self, finetune, text(w, "%s", file), data, w->o->data, text(w, "--out=%s", dir),
		text(w, "--store=%s/runs.db", w->o->out), text(w, "--steps=%lld", (long long)w->o->steps),
		text(w, "--lr=%.9g", w->o->lr), text(w, "--batch=%lld", (long long)w->o->batch),
		text(w, "--seed=%lld", (long long)w->o->seed), every, warmup, *w->o->data_root ? root : NULL, w->o->data_root, NULL };
	return norma(w, log, words);
}

/* ---- the walk over the sites -------------------------------------------------------------------------------------------------- */

static int try_site(struct work *w, int64_t i)
{
	struct row *r = &w->row[i];
	const char *base = text(w, "%s/%02lld-%s", w->o->out, (long long)i + 1, r->site);
	const char *norms = text(w, "%s %s=none:gain=channel,bias=1", w->norms, nr_pattern_of(r->site, w->c->arena)),
		*file = text(w, "%s.safetensors", base);
	if (cut(w, norms, file, text(w, "%s.cut.log", base)) || evaluate(w, file, text(w, "%s.cut.json", base), &r->cut) ||
	    tune(w, file, base, text(w, "%s.log", base)))
		return w->c->err->code;
	const char *tuned = text(w, "%s/model.safetensors", base);
	if (evaluate(w, tuned, text(w, "%s.json", base), &r->tuned)) return w->c->err->code;
	r->removed = r->tuned.loss <= w->first.loss * (1 + w->o->tolerance);
	if (r->removed) w->file = tuned, w->norms = norms, w->last = r->tuned;
	if (!w->o->json)
		printf("%-22s loss %.4f, after training %.4f, accuracy %.2f %%: %s\n", r->site, r->cut.loss, r->tuned.loss,
			100 * r->tuned.top1, r->removed ? "removed" : "stays");
	return fflush(stdout) ? nr_fail(w->c->err, NR_EIO, "cannot write", "standard output", "%s", strerror(errno)) : NR_OK;
}

/* Sites with a layer or rms norm that the pattern means. */
static int find_sites(struct work *w, const char *path)
{
	struct nr_weights *weights = NULL;
	if (nr_weights_open(&weights, path, &(struct nr_weights_how){ 0 }, w->c->err)) return w->c->err->code;
	struct nr_net *n = nr_surgery_record(weights, weights->store, weights->norms, w->c->err);
	int64_t count = 0;
	const struct nr_site *site = n ? nr_sites(n, &count) : NULL;
	w->row = nr_arena_alloc(w->c->arena, (size_t)(count + 1) * sizeof *w->row);
	const struct nr_norm_defaults *d = &weights->model.norms;
	const bool named = weights->norms && *weights->norms;
	w->norms = text(w, "%s", named ? weights->norms : d->plan ? d->plan : d->norm);
	for (int64_t i = 0; site && w->row && i < count; i++) {
		const char *k = site[i].norm;
		if (!k || (strncmp(k, "ln", 2) && strncmp(k, "layer", 5) && strncmp(k, "rms", 3))) continue;
		if (strcmp(w->o->sites, "*") && !strstr(site[i].name, w->o->sites)) continue;
		w->row[w->rows++] = (struct row){ .site = text(w, "%s", site[i].name), .norm = text(w, "%s", k) };
	}
	nr_net_free(n);
	nr_weights_close(weights);
	if (!n) return w->c->err->code;
	if (w->rows) return NR_OK;
	nr_fail(w->c->err, NR_EVALUE, "no norm to remove in", path, "no site has a layer or rms norm%s%s",
		strcmp(w->o->sites, "*") ? " and matches " : "", strcmp(w->o->sites, "*") ? w->o->sites : "");
	return nr_hint(w->c->err, "`norma plan --sites` lists the sites of a model");
}

static int fold_last(const struct work *w)
{
	char self[] = "norma", fold[] = "fold", json[] = "--json";
	char *const words[] = { self, fold, text(w, "%s", w->file), text(w, "%s/model.safetensors", w->o->out), json, NULL };
	return norma(w, text(w, "%s/fold.json", w->o->out), words);
}

static int print_json(const struct work *w, int64_t removed)
{
	json_t *rows = json_array();
	for (int64_t i = 0; i < w->rows; i++) {
		const struct row *r = &w->row[i];
		json_array_append_new(rows, json_pack("{s:s, s:s, s:f, s:f, s:f, s:b}", "site", r->site, "norm", r->norm, "loss_cut",
			r->cut.loss, "loss", r->tuned.loss, "top1", r->tuned.top1, "removed", r->removed));
	}
	return nr_json_line(stdout, json_pack("{s:s, s:I, s:o, s:f, s:f, s:f, s:f}", "out", w->o->out, "removed", (json_int_t)removed,
		"sites", rows, "loss_before", w->first.loss, "top1_before", w->first.top1, "loss_after", w->last.loss,
		"top1_after", w->last.top1), w->c->err);
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct removal *o = conf;
	struct work w = { .c = c, .o = o };
	int64_t removed = 0;
	if (args->count != 1) {
		cli_usage(c, "remove needs one checkpoint");
		return nr_hint(c->err, "norma remove --help");
	}
	w.file = args->item[0];
	if (find_sites(&w, args->item[0])) return c->err->code;
	if (mkdir(o->out, 0777)) return nr_fail(c->err, NR_EIO, "cannot make the folder", o->out, "%s", strerror(errno));
	if (evaluate(&w, w.file, text(&w, "%s/first.json", o->out), &w.first)) return c->err->code;
	w.last = w.first;
	if (!o->json) printf("%-22s loss %.4f, accuracy %.2f %%\n", "as it is", w.first.loss, 100 * w.first.top1);
	for (int64_t i = 0; i < w.rows; i++) {
		if (try_site(&w, i)) return c->err->code;
		removed += w.row[i].removed;
	}
	if (removed && fold_last(&w)) return c->err->code;
	if (o->json) return print_json(&w, removed);
	printf("%lld of %lld norms removed: loss %.4f became %.4f, accuracy %.2f %% became %.2f %%\n", (long long)removed,
		(long long)w.rows, w.first.loss, w.last.loss, 100 * w.first.top1, 100 * w.last.top1);
	if (removed) printf("written  %s/model.safetensors\n", o->out);
	return NR_OK;
}

const struct cli_command cli_remove = {
	.name = "remove",
	.title = "take norms out of a trained model, one site at a time",
	.usage = "IN --data DATA --out DIR",
	.about = "Replaces the norm at one site by constants, the gain and bias per channel that come nearest to what it did on the\n"
		 "data (as `norma convert --norm ... --calibrate` does), trains on for some steps, and goes to the next site. A site\n"
		 "whose removal leaves the held-out loss too high keeps its norm. At the end the constants are folded into the layers\n"
		 "(norma fold).\n"
		 "\n"
		 "Each step lies in DIR as a run of its own. To let norms fade in the course of one training instead, train with\n"
		 "--norm taper.",
	.conf_size = sizeof(struct removal),
	.options = options,
	.run = run,
};
