/* A training that begins with somebody's weights and says no model: the one that the file, or the config.json beside it, names. */
#include <string.h>

#include "infer/weights.h"
#include "models/guess.h"
#include "models/names.h"
#include "norma/safetensors.h"
#include "train/trainer.h"

static int no_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory"); }

/* What the task decides anew is no part of the model that is taken over. */
static const char *kept_of(const char *model, struct nr_arena *arena)
{
	static const char *const anew[] = { "classes", "channels", "length", "dropout", "attention_dropout", "drop_path" };
	for (size_t i = 0; model && i < sizeof anew / sizeof *anew; i++) model = nr_model_text_without(model, anew[i], arena);
	return model;
}

static int read_model(struct nr_trainer *t, const struct nr_st_file *f, struct nr_error *err)
{
	struct nr_guess guess = { 0 };
	const char *model = nr_st_metadata(f, "norma.model"), *norms = nr_st_metadata(f, "norma.norms");
	if (!model) {
		const int seen = nr_model_guess(&guess, f, t->arena);
		if (!seen || !guess.sure) return nr_guess_fail(&guess, seen, "cannot start from", t->c.init, "--norm", err);
		model = guess.model;
		norms = norms ? norms : guess.norms;
	}
	const char *kept = kept_of(model, t->arena);
	t->c.model = kept ? nr_arena_strdup(t->arena, kept) : NULL;
	if (!*t->c.norms.norm && norms) t->c.norms.norm = nr_arena_strdup(t->arena, norms);
	return t->c.model && t->c.norms.norm ? NR_OK : no_memory(err);
}

int nr_trainer_start(struct nr_trainer *t, struct nr_error *err)
{
	struct nr_st_file *f;
	if (*t->c.init && !(t->c.init = nr_weights_path(t->c.init, t->arena))) return no_memory(err);
	if (strcmp(t->c.model, "auto")) return NR_OK;
	if (!*t->c.init && !t->task->auto_model) {
		nr_fail(err, NR_EUSAGE, "no model was given", NULL, "auto takes it from the initial weights");
		return nr_hint(err, "use --model or --init");
	}
	if (!*t->c.init) {
		t->c.model = nr_arena_strdup(t->arena, t->task->auto_model);
		return t->c.model ? NR_OK : no_memory(err);
	}
	if (nr_st_open(&f, t->c.init, err)) return err->code;
	const int code = read_model(t, f, err);
	nr_st_close(f);
	return code;
}
