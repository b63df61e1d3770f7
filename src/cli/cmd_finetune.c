/* norma finetune CKPT: training that begins with a checkpoint's weights, model and norms; also at another resolution. */
#include <stdio.h>
#include <string.h>

#include "infer/weights.h"
#include "models/guess.h"
#include "models/names.h"
#include "norma/safetensors.h"
#include "training.h"

struct settings { struct nr_train train; int64_t image; bool json; };   /* train first: its table has its offsets */

static const struct nr_option own[] = {
	NR_OPT_INT(struct settings, image, 0, 0, 4096, "picture size; 0: the checkpoint's. Positions are resampled"),
	NR_OPT_BOOL(struct settings, json, "0", "print one line of JSON at the end"),
	NR_OPT_END
};

static const struct nr_option *table(void) { return nr_train_options("classify"); }

/* What a file without our words looks like; NULL and an error: not sure enough. */
static const char *guess_model(struct cli *c, const struct nr_st_file *f, const char **norms)
{
	struct nr_guess guess = { 0 };
	const int seen = nr_model_guess(&guess, f, c->arena);
	if (seen && guess.sure) {
		*norms = guess.norms;
		return guess.model;
	}
	nr_guess_fail(&guess, seen, "cannot start from", nr_st_path(f), "--norm", c->err);
	return NULL;
}

/* Model and norms of the checkpoint, unless flags name others. */
static int take_over(struct cli *c, struct settings *s, const char *path)
{
	struct nr_st_file *f;
	if (!(s->train.init = nr_weights_path(path, c->arena))) return nr_fail(c->err, NR_EMEMORY, "cannot open", path, "out of memory");
	if (nr_st_open(&f, s->train.init, c->err)) return c->err->code;
	const char *model = nr_st_metadata(f, "norma.model"), *norms = nr_st_metadata(f, "norma.norms"), *text = s->train.model;
	if (!strcmp(text, "vit_micro")) {               /* not named: classes and channels follow the new data */
		text = model ? model : guess_model(c, f, &norms);
		if (text) text = nr_model_text_without(text, "classes", c->arena);
		if (text) text = nr_model_text_without(text, "channels", c->arena);
		if (text && s->image) text = nr_model_text_without(text, "image", c->arena);
	}
	if (text && s->image) text = nr_arena_printf(c->arena, "%s%cimage=%lld", text, strchr(text, ':') ? ',' : ':', (long long)s->image);
	s->train.model = text ? nr_arena_strdup(c->arena, text) : NULL;
	if (!*s->train.norms.norm && norms) s->train.norms.norm = nr_arena_strdup(c->arena, norms);
	nr_st_close(f);
	return s->train.model ? NR_OK : nr_fail(c->err, NR_EMEMORY, "cannot open", path, "out of memory");
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	struct settings s = *(const struct settings *)conf;
	if (args->count != 1) return cli_usage(c, "finetune needs one checkpoint");
	if (take_over(c, &s, args->item[0])) return c->err->code;
	return cli_train_with(c, &cli_finetune, &s.train, s.json);
}

const struct cli_command cli_finetune = {
	.name = "finetune",
	.title = "continue training from a checkpoint, also at another resolution",
	.usage = "CHECKPOINT",
	.about = "Takes weights, model and norms from a checkpoint (norma's, or a public one with --model), gives it a new head if\n"
		 "the classes differ, resamples its positions if --image differs, and trains like `norma train`. Resume an\n"
		 "interrupted run with `norma train --resume`.",
	.conf_size = sizeof(struct settings),
	.table = table,
	.options = own,
	.run = run,
};
