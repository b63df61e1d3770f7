/* What the teacher of DINO is worth: its features measured by neighbours, by their spread and by a linear head; what [CLS] looks at. */
#ifndef NR_DINO_EVAL_H
#define NR_DINO_EVAL_H

#include "models/dino.h"
#include "train/task.h"

enum { NR_DINO_KNN, NR_DINO_RANK, NR_DINO_UNIFORMITY, NR_DINO_LINEAR, NR_DINO_VALUES };

/* value (NR_DINO_VALUES); NAN where there are no classes, or no linear head is wanted. w: the teacher's weights. */
int nr_dino_evaluate(struct nr_task_run *, const struct nr_weights *, const struct nr_evaluation *, int64_t batch, bool linear,
	double *value, int64_t *samples, struct nr_error *);

/* Pictures of an evaluation with the maps of each head in the last block: what share of its attention [CLS] gives to a patch. Models
 * without a class token, or without a grid of tokens at the end, have none: count is 0. */
struct nr_dino_maps {
	int64_t count, channels, size;
	float *image;                           /* (count,channels,size,size) */
	double mean[3], std[3];                 /* of the input: value * std + mean is in 0..1 */
};
int nr_dino_maps_open(struct nr_dino_maps *, const struct nr_task_run *, const struct nr_evaluation *, int64_t count, struct nr_error *);
int nr_dino_maps_draw(const struct nr_dino_maps *, const struct nr_weights *, const char *path, struct nr_error *);
void nr_dino_maps_close(struct nr_dino_maps *);

#endif
