/* Arrays of numbers from MAT v5 files, plain or compressed; v7.3 (HDF5) and everything else is refused. */
#ifndef NR_MAT_H
#define NR_MAT_H

#include <stdint.h>

#include "norma/err.h"

struct nr_mat { void *data; int type, class; int rank; int64_t dim[4], count; };      /* dim beyond rank is 1 */

/* A variable of up to four dimensions and up to max numbers, real and full. Memory is taken only for what the file can hold. On failure
 * there is nothing to release. */
int nr_mat_read(struct nr_mat *, const char *path, const char *name, int64_t max, struct nr_error *);
/* The same of a file in memory; path is for messages. */
int nr_mat_parse(struct nr_mat *, const void *bytes, size_t size, const char *path, const char *name, int64_t max, struct nr_error *);
double nr_mat_at(const struct nr_mat *, int64_t i);               /* in the order of the file: the first index runs fastest */
const uint8_t *nr_mat_bytes(const struct nr_mat *);               /* NULL unless the class is uint8 */
void nr_mat_release(struct nr_mat *);

#endif
