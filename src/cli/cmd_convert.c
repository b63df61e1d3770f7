/* norma convert IN OUT --to NAMES: weights under other names, for another picture size, another number of classes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/save.h"
#include "cli.h"
#include "infer/weights.h"
#include "models/guess.h"
#include "norma/tokenizer.h"
#include "surgery/fold.h"
#include "surgery.h"
#include "weights_meta.h"

struct convert {
	struct cli_surgery new;
	char *to, *model, *file_norm, *from, *resample;
	int64_t image, classes;
	bool fold, decoder, texts, partial, force, json;
};

static const struct nr_option options[] = {
	CLI_TEXT(struct convert, to, "norma", "NAMES",
		"tensor names to write: norma, or one of those above"),
	CLI_TEXT(struct convert, model, "", "MODEL", "model, if the file does not name it (norma inspect)"),
	CLI_TEXT(struct convert, file_norm, "", "PLAN", "norm plan of the file, if it does not name it"),
	{ .name = "norm", .type = NR_TSTRING, .offset = offsetof(struct convert, new.norm), .size = sizeof(char *), .text = "",
	  .metavar = "PLAN", .help = "new norm plan: replaces the norms and keeps gains and biases" },
	{ .name = "calibrate", .type = NR_TSTRING, .offset = offsetof(struct convert, new.calibrate), .size = sizeof(char *), .text = "",
	  .metavar = "DATA", .help = "with --norm: data set (text:path=FILE) to measure running statistics and fit "
	  	"gains and biases on" },
	{ .name = "samples", .type = NR_TINT, .offset = offsetof(struct convert, new.samples), .size = sizeof(int64_t), .text = "512",
	  .min = 32, .max = 1e6, .help = "samples for --calibrate" },
	{ .name = "data_root", .type = NR_TSTRING, .offset = offsetof(struct convert, new.data_root), .size = sizeof(char *), .text = "",
	  .metavar = "DIR", .help = "folder of the data sets" },
	{ .name = "tokenizer", .type = NR_TSTRING, .offset = offsetof(struct convert, new.tokenizer), .size = sizeof(char *), .text = "",
	  .metavar = "PATH", .help = "tokenizer of a text model; default: beside its weights" },
	CLI_TEXT(struct convert, from, "auto", "NAMES", "tensor names of the file; auto: those that fit best"),
	NR_OPT_INT(struct convert, image, 0, 0, 4096, "picture size of the new file; 0: unchanged"),
	CLI_TEXT(struct convert, resample, "", "KIND", "how positions are resized: timm (default with --image), mae, dino, bigvision"),
	NR_OPT_INT(struct convert, classes, 0, 0, 1000000, "new head with N classes; 0: keep the old one"),
	NR_OPT_BOOL(struct convert, fold, "0", "fold batch norms into their layers: the deployed form of LeViT, with the same outputs"),
	NR_OPT_BOOL(struct convert, decoder, "1", "keep the decoder of a masked autoencoder, DINO's head, or neck and heads of a detector"),
	NR_OPT_BOOL(struct convert, texts, "0", "of a file with a tower for pictures and one for texts (CLIP): the latter"),
	NR_OPT_BOOL(struct convert, partial, "0", "allow unused tensors in the file and missing ones"),
	NR_OPT_BOOL(struct convert, force, "0", "overwrite existing files"),
	NR_OPT_BOOL(struct convert, json, "0", "print one line of JSON"),
	NR_OPT_END
};

/* ---- what came of it ------------------------------------------------------------------------------------------------------- */

struct report { struct nr_str kept, ignored; int64_t kept_shown, ignored_shown, folded; };

static void add_name(struct nr_str *s, int64_t *shown, const char *name)
{
	if ((*shown)++ < 4) nr_str_printf(s, "%s%.80s", s->len ? ", " : "", name);
	else if (*shown == 6) nr_str_add(s, ", ...");
}

static void note(void *context, enum nr_import_fate fate, const char *name)
{
	struct report *r = context;
	if (fate == NR_KEPT) add_name(&r->kept, &r->kept_shown, name);
	if (fate == NR_IGNORED) add_name(&r->ignored, &r->ignored_shown, name);
}

static double eps_of(const struct nr_weights *w)
{
	const char *eps = strstr(w->norms, "eps=");
	return eps ? strtod(eps + 4, NULL) : w->model.of->norms.eps;
}

/* What the software that these names belong to does otherwise. */
static void print_notes(const struct convert *o, const struct nr_weights *w)
{
	const struct nr_naming *to = nr_naming_find(w->model.of, o->to, NULL);
	const double usual = to && to->eps > 0 ? to->eps : w->model.of->norms.eps;
	const size_t first = strcspn(w->norms, " =(");
	if (!strcmp(o->to, "norma")) return;
	const bool folded = nr_model_int(&w->model, "folded") == 1;
	if (folded) return;
	const bool plain = !strncmp(w->norms, "layer:", 6) || !strncmp(w->norms, "ln:", 3) ||
		(!strncmp(w->norms, "eps=", 4) && !strchr(w->norms, ' '));
	/* Graphormer's placement and the norm of its embedding are settings there */
	const bool theirs = w->model.of->reads == NR_MOLECULES && !strncmp(w->norms, "ln ", 3);
	if (w->norms[first] && !plain && !theirs)
		printf("note     models of %s have no such norm plan; only norma can read the file\n", o->to);
	if (eps_of(w) != usual) printf("note     these norms have eps %g, but %s uses %g\n", eps_of(w), o->to, usual);
}

static int print_report(struct cli *c, const struct convert *o, const struct nr_weights *w, const struct report *r,
	const struct nr_surgery *cut, const char *path)
{
	if (o->json)
		return nr_json_line(stdout, json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o*}", "out", path, "from", w->naming,
			"to", o->to, "model", w->model.text, "norms", w->norms, "taken", (json_int_t)w->taken,
			"kept", (json_int_t)w->kept, "ignored", (json_int_t)w->ignored, "folded", (json_int_t)r->folded, "surgery",
			*o->new.norm ? cli_surgery_json(cut) : NULL), c->err);
	printf("%s%s%s: %s names to %s names\n", cli_bold(), path, cli_plain(), w->naming, o->to);
	printf("model    %s\n", w->model.text);
	if (*w->norms) printf("norms    %s\n", w->norms);
	printf("taken    %lld of %lld entries\n", (long long)w->taken, (long long)(w->taken + w->kept));
	if (w->kept) printf("kept     %lld at their initial values: %s\n", (long long)w->kept, nr_str_text(&r->kept));
	if (w->ignored) printf("ignored  %lld tensors: %s\n", (long long)w->ignored, nr_str_text(&r->ignored));
	if (o->fold) printf("folded   %lld batch norms into their layers\n", (long long)r->folded);
	if (*o->new.norm) cli_surgery_print(cut);
	print_notes(o, w);
	return NR_OK;
}

/* config.json, without which Hugging Face's and timm's loaders do not know the model. */
static int write_config(struct cli *c, const struct convert *o, const struct nr_weights *w, const char *path)
{
	const struct nr_naming *to = nr_naming_find(w->model.of, o->to, c->err);
	const struct nr_model_file *file = w->model.of->file;
	if (!to) return c->err->code;
	if (!file || !file->config) return NR_OK;
	json_t *j = file->config(&(struct nr_saved){ .model = &w->model, .store = w->store, .naming = to, .eps = eps_of(w), .mae = w->mae,
		.class_name = w->class_name, .mean = w->normalize ? w->mean : NULL, .std = w->normalize ? w->std : NULL });
	if (!j) return NR_OK;
	char *text = nr_json_dump(j, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	const int code = text ? nr_save_file(path, text, strlen(text), c->err)
			      : nr_fail(c->err, NR_EMEMORY, "cannot write", path, "out of memory");
	free(text);
	json_decref(j);
	return code;
}

/* ---- the command ----------------------------------------------------------------------------------------------------------- */

/* "vit:image=32,dim=8" with another image: the old value goes, so that the text stays short and says one thing. */
static const char *with(struct cli *c, const char *text, const char *key, int64_t value)
{
	struct nr_str s = { 0 };
	const size_t name = strcspn(text, ":"), n = strlen(key);
	char sep = ':';
	nr_str_add_n(&s, text, name);
	for (const char *at = text + name + (text[name] == ':'); *at; at += strcspn(at, ","), at += *at == ',') {
		if (!strncmp(at, key, n) && at[n] == '=') continue;
		nr_str_printf(&s, "%c%.*s", sep, (int)strcspn(at, ","), at);
		sep = ',';
	}
	nr_str_printf(&s, "%c%s=%lld", sep, key, (long long)value);
	const char *out = nr_str_keep(&s, c->arena);
	return out;
}

/* What the file says of its training goes along. */
static const char *const kept_keys[] = { "norma.config", "norma.step", "norma.task", "norma.mae", "norma.mae.norms", "norma.dino" };
enum { KEPT_KEYS = sizeof kept_keys / sizeof *kept_keys };

/* The model's text, the file's own if none was given, with what the flags change. */
static const char *model_text(struct cli *c, const struct convert *o, const char *path, const char **kept)
{
	struct nr_st_file *f;
	const char *text = o->model, *own = NULL;
	if (!(path = nr_weights_path(path, c->arena))) nr_fail(c->err, NR_EMEMORY, "cannot convert", NULL, "out of memory");
	if (!path || nr_st_open(&f, path, c->err)) return NULL;
	if (!*text && (own = nr_st_metadata(f, "norma.model"))) text = nr_arena_strdup(c->arena, own);
	for (int i = 0; i < KEPT_KEYS; i++)
		if ((own = nr_st_metadata(f, kept_keys[i]))) kept[i] = nr_arena_strdup(c->arena, own);
	nr_st_close(f);
	if (!text || !*text) return "";
	if (o->image) text = with(c, text, "image", o->image);
	if (text && o->classes) text = with(c, text, "classes", o->classes);
	if (!text) nr_fail(c->err, NR_EMEMORY, "cannot convert", path, "out of memory");
	return text;
}

/* Names that some model knows; the others are refused before a file is read. */
static int known_names(struct cli *c, const char *name)
{
	struct nr_near near = { .word = name };
	for (const struct nr_model *const *m = nr_models(); *m; m++) {
		if (nr_naming_find(*m, name, NULL)) return NR_OK;
		for (const struct nr_naming *n = (*m)->namings; n->name; n++) nr_near_try(&near, n->name);
	}
	nr_near_try(&near, "norma");
	nr_fail(c->err, NR_ENAME, "no naming", name, "no model has such names");
	return near.best ? nr_hint(c->err, "did you mean '%s'?", near.best) : nr_hint(c->err, "norma convert --help lists them");
}

static int free_to_write(struct cli *c, const struct convert *o, const char *path)
{
	if (o->force || access(path, F_OK)) return NR_OK;
	nr_fail(c->err, NR_EIO, "cannot write", path, "it exists already");
	return nr_hint(c->err, "use --force to overwrite it");
}

/* OUT as a folder: model.safetensors and config.json in it. *made: it was not there before. */
static int out_paths(struct cli *c, const char *out, const char **weights, const char **config, bool *made)
{
	struct stat st;
	const size_t n = strlen(out);
	*weights = out;
	*config = NULL;
	if (!(n && out[n - 1] == '/') && (stat(out, &st) || !S_ISDIR(st.st_mode))) return NR_OK;
	*made = !mkdir(out, 0777);
	if (!*made && errno != EEXIST) return nr_fail(c->err, NR_EIO, "cannot make the folder", out, "%s", strerror(errno));
	const char *slash = out[n - 1] == '/' ? "" : "/";
	*weights = nr_arena_printf(c->arena, "%s%smodel.safetensors", out, slash);
	*config = nr_arena_printf(c->arena, "%s%sconfig.json", out, slash);
	return *weights && *config ? NR_OK : nr_fail(c->err, NR_EMEMORY, "cannot convert to", out, "out of memory");
}

static int write_out(struct cli *c, const struct convert *o, const struct nr_weights *w, const char *const *kept, const char *weights,
	const char *config)
{
	struct nr_st_meta meta[CLI_META + KEPT_KEYS];
	int64_t n = cli_weights_meta(w, meta, c->arena);
	for (int i = 0; i < KEPT_KEYS; i++)
		if (kept[i] && (w->mae || strncmp(kept_keys[i], "norma.mae", 9)) && (w->dino || strcmp(kept_keys[i], "norma.dino")))
			meta[n++] = (struct nr_st_meta){ kept_keys[i], kept[i] };
	if (config && strcmp(o->to, "norma") && write_config(c, o, w, config)) return c->err->code;
	return nr_model_export(w->store, w->model.of, weights, o->to, meta, n, c->err);
}

/* The names as they were asked for, or their variant for a model whose norms are folded. */
static char *names_to_write(struct cli *c, const struct nr_weights *w, char *to)
{
	const bool folded = nr_model_int(&w->model, "folded") == 1, plain = !strcmp(to, "norma");
	const size_t n = strlen(to);
	const struct nr_naming *names = nr_naming_find(w->model.of, to, NULL);
	const char *why = names && w->model.of->file && w->model.of->file->refuses ? w->model.of->file->refuses(&w->model, names) : NULL;
	if (why) {
		nr_fail(c->err, NR_EUSAGE, "cannot write the names", to, "%s", why);
		return NULL;
	}
	if (n > 7 && !strcmp(to + n - 7, "_folded") && !folded) {
		nr_fail(c->err, NR_EUSAGE, "cannot write the names", to, "the norms of '%s' are not folded", w->model.text);
		nr_hint(c->err, "--fold does it");
		return NULL;
	}
	if (!folded || plain || strstr(to, "_folded")) return nr_naming_find(w->model.of, to, c->err) ? to : NULL;
	char *variant = nr_arena_printf(c->arena, "%s_folded", to);
	if (variant && nr_naming_find(w->model.of, variant, NULL)) return variant;
	nr_fail(c->err, NR_EUSAGE, "cannot write the names", to, "there is no form with folded norms in that software");
	return NULL;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	struct convert mine = *(const struct convert *)conf;
	const struct convert *o = &mine;
	const char *weights, *config;
	bool made = false;
	if (args->count != 2) {
		cli_usage(c, "convert needs two files: one to read and one to write");
		return nr_hint(c->err, "norma convert --help");
	}
	if (*o->new.calibrate && !*o->new.norm) return cli_usage(c, "--calibrate needs --norm");
	if (*o->new.calibrate) cli_bound_spin(c);               /* it may begin anew, so before anything is made */
	if (known_names(c, o->to) || (strcmp(o->from, "auto") && known_names(c, o->from))) return c->err->code;
	const char *kept[KEPT_KEYS] = { NULL }, *model = model_text(c, o, args->item[0], kept);
	if (!model || out_paths(c, args->item[1], &weights, &config, &made) || free_to_write(c, o, weights)) return c->err->code;
	if (config && free_to_write(c, o, config)) return c->err->code;
	struct report report = { 0 };
	struct nr_weights *w = NULL;
	const struct nr_weights_how how = { .model = model, .norms = o->file_norm, .norms_flag = "--file-norm", .naming = o->from,
		.resample = *o->resample ? o->resample : o->image ? "timm" : NULL, .partial = o->partial || o->classes, .texts = o->texts,
		.decoder = o->decoder && !o->image && !*o->new.norm, .detector = o->decoder && !o->image && !*o->new.norm,
		.tell = note, .context = &report };
	int code = nr_weights_open(&w, args->item[0], &how, c->err);
	struct nr_surgery cut = { 0 };
	if (!code && o->classes) w->class_name = NULL;
	if (!code && *o->new.norm) code = cli_surgery_run(c, &o->new, w, args->item[0], &cut);
	if (!code && o->fold) code = nr_fold_deployed(w, &report.folded, c->err);
	if (!code && !(mine.to = names_to_write(c, w, mine.to))) code = c->err->code;   /* before anything is written */
	if (!code) code = write_out(c, o, w, kept, weights, config);
	if (!code && config && w->model.of->reads == NR_TEXTS)
		code = nr_tokenizer_copy(*o->new.tokenizer ? o->new.tokenizer : args->item[0], args->item[1], c->err);
	if (!code) code = print_report(c, o, w, &report, &cut, weights);
	if (code && made) rmdir(args->item[1]);                 /* unless something lies in it */
	nr_str_release(&report.kept);
	nr_str_release(&report.ignored);
	nr_weights_close(w);
	return code;
}

static void more(struct nr_str *s)
{
	nr_str_add(s, "Tensor names of other software (--to, --from):");
	for (const struct nr_model *const *m = nr_models(); *m; m++) {
		nr_str_printf(s, "\n  %-11s", (*m)->name);
		for (const struct nr_naming *n = (*m)->namings; n->name; n++)
			nr_str_printf(s, "%s%s", n == (*m)->namings ? " " : ", ", n->name);
	}
	nr_str_add(s, "\n"
		      "mae and dino are used by their released code (dino_teacher, dino_student, dino_module: one network in a file of a\n"
		      "whole training), huggingface on the hub, huggingface5 by version 5 of transformers; "
		      "huggingface_base\n"
		      "has no prefix (encoders alone), huggingface_gamma is that of the first checkpoints, simcse and official are "
		      "those of\n"
		      "the papers' own code.");
}

const struct cli_command cli_convert = {
	.name = "convert",
	.title = "convert weights to and from timm and Hugging Face; replace norms",
	.usage = "IN OUT [--to NAMES] [--norm PLAN] [--fold]",
	.about = "Reads a safetensors file, recognises its tensor names, and writes it with other names and the layout that goes\n"
		 "with them; a masked autoencoder keeps its decoder. --image resizes the position table for pictures of another size\n"
		 "(and drops the decoder), --classes adds a new head. If OUT is a folder (or ends with /), it gets model.safetensors\n"
		 "and the config.json that transformers' from_pretrained, or timm.create_model(\"local-dir:OUT\"), reads.\n"
		 "\n"
		 "The file also names its model, so norma itself needs no --model for it. Weights with Hugging Face's names have an\n"
		 "eps of 1e-12, those with timm's 1e-6; the norm plan and config.json keep it.\n"
		 "\n"
		 "With --norm, norms are replaced, e.g. by \"sep(bn,ln) embed=ln\". Whatever both plans have is kept, and a new norm "
		 "takes over the\n"
		 "old one's gain and bias. --calibrate measures running statistics on data and fits gain and bias, site by site, so\n"
		 "that the outputs change least; the report says by how much. Continue with `norma finetune` or\n"
		 "`norma simcse --init`.\n"
		 "\n"
		 "With --fold, LeViT's batch norms become part of their layers. --to timm then writes what timm has after\n"
		 "timm.utils.reparameterize_model, --to official what its replace_batchnorm leaves.",
	.more = more,
	.conf_size = sizeof(struct convert),
	.options = options,
	.run = run,
};
