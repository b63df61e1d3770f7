/* norma predict and norma eval with detectors: what `norma detect` trained. */
#ifndef NR_OBJECTS_H
#define NR_OBJECTS_H

#include "model_flags.h"

struct predict_objects { char *const *name; int64_t names; double score; const char *draw; bool json; };    /* names: of the classes */
int cli_predict_objects(struct cli *, const struct predict_objects *, const struct nr_weights *, char *const *path, int64_t count);
int cli_eval_objects(struct cli *, struct cli_opened *, const char *path, int64_t batch, bool json);

#endif
