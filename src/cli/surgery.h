/* norma convert --norm: the norms of a trained model replaced. */
#ifndef NR_CLI_SURGERY_H
#define NR_CLI_SURGERY_H

#include "cli.h"
#include "norma/infer.h"
#include "surgery/surgery.h"

struct cli_surgery { char *norm, *calibrate, *data_root, *tokenizer; int64_t samples; };
/* Replaces the norms and calibrates them on data, with a bar; *s says what came of it. */
int cli_surgery_run(struct cli *, const struct cli_surgery *, struct nr_weights *, const char *path, struct nr_surgery *s);
void cli_surgery_print(const struct nr_surgery *);
json_t *cli_surgery_json(const struct nr_surgery *);

#endif
