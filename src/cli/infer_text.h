/* norma infer on texts: numbers of tokens in, the same outputs as for pictures. */
#ifndef NR_INFER_TEXT_H
#define NR_INFER_TEXT_H

#include "cli.h"
#include "norma/infer.h"
#include "norma/safetensors.h"

enum infer_what { INFER_LOGITS, INFER_POOLED, INFER_TOKENS };
struct infer_text { const char *input, *output; enum infer_what what; int64_t batch; };
/* ids: (N,T) whole numbers; pads at the end of a row are padding. Writes the NPY file. */
int cli_infer_text(struct cli *, const struct infer_text *, struct nr_weights *, const struct nr_st_tensor *ids);

#endif
