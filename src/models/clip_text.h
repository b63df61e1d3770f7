/* The text towers of CLIP and SigLIP: what the model (clip_text.c) and its files (clip_text_file.c) share. */
#ifndef NR_CLIP_TEXT_H
#define NR_CLIP_TEXT_H

#include <stdbool.h>

#include "models/guess.h"
#include "norma/model.h"

struct nr_clip_text {
	int64_t vocab, dim, depth, heads, hidden, positions, pad, end, length, classes;
	double dropout, attention_dropout;
	int32_t pool;
	bool causal, ends, head_bias;
	char *act;
};

extern const struct nr_naming nr_clip_text_namings[];
extern const struct nr_model_file nr_clip_text_file;

#endif
