/* Pictures of what a masked autoencoder sees and makes of it: rows original, masked, reconstructed. */
#ifndef NR_RECONSTRUCTION_H
#define NR_RECONSTRUCTION_H

#include "base/real.h"
#include "train/task.h"

struct nr_reconstruction {
	int64_t count, channels, size, patch;
	bool norm_pix;                          /* predictions are of standardised patches */
	double mean[3], std[3];                 /* of the input: value * std + mean is in 0..1 */
	float *image;                           /* (count,channels,size,size) */
	float *pred;                            /* (count,patches,patch*patch*channels), as pixels of image */
	float *masked;                          /* (count,patches): 1 or 0 */
};
int nr_reconstruction_open(struct nr_reconstruction *, const struct nr_task_run *, int64_t count, struct nr_error *);
/* The first `count` samples of a batch. */
void nr_reconstruction_keep(struct nr_reconstruction *, const float *image, const real *pred, const real *masked);
int nr_reconstruction_draw(const struct nr_reconstruction *, const char *path, struct nr_error *);
void nr_reconstruction_close(struct nr_reconstruction *);

#endif
