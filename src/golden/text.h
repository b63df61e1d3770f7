/* norma-golden-model-1, families bert and roberta: what their tasks share. */
#ifndef GOLDEN_TEXT_H
#define GOLDEN_TEXT_H

#include "golden/model.h"
#include "models/text_heads.h"

struct golden_text {
	struct golden_model m;
	int64_t rows, length;               /* sentences in all, tokens of each */
	struct nr_inputs in;
	struct nr_text text;
};
/* Opens the model that the config describes, with this norm plan, and records its encoder on in.input_ids. */
void golden_text_open(struct golden_case *, struct golden_text *, const char *naming, const char *norms);
/* Plans and loads; fills ids, types and lengths from the file. */
void golden_text_load(struct golden_case *, struct golden_text *, nr_t *loss);
/* Whole numbers of the file into an input of theirs. */
void golden_text_put(struct golden_case *, struct golden_text *, const nr_t *input, const char *name);
/* One pass, checks of hidden states, loss, gradients, buffers; the optimizer's steps; the end. */
void golden_text_run(struct golden_case *, struct golden_text *);
void golden_text_finish(struct golden_case *, struct golden_text *);

/* The file's task "simcse" (with or without SepNorm); "embed" with the real MiniLM. */
int golden_text_simcse(struct golden_case *);
int golden_text_minilm(struct golden_case *);

#endif
