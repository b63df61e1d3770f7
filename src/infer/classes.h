/* Which classes are told apart, from counts of truth against prediction: JSON for records and for `norma eval --json`. */
#ifndef NR_CLASSES_H
#define NR_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/str.h"

struct nr_class_counts {
	int64_t classes;
	const int64_t *confusion;           /* (classes,classes): row = truth, column = prediction */
	char *const *name;                  /* (classes); NULL: they are called by their numbers */
	bool pixels;                        /* samples are pixels, of which IoU is told */
	const uint8_t (*colour)[3];         /* (classes), or NULL */
};
enum { NR_CLASSES_COUNTED = 1024 };               /* classes that a training counts */

/* buf is for a number. */
const char *nr_class_counts_name(const struct nr_class_counts *, int64_t k, char *buf, size_t size);
/* A list with name, samples, accuracy, precision and f1 of each class, of pixels also iou (null: neither there nor called so); and
 * the whole matrix, row after row. */
json_t *nr_class_counts_scores(const struct nr_class_counts *);
double nr_class_counts_miou(const struct nr_class_counts *);
json_t *nr_class_counts_matrix(const struct nr_class_counts *);
/* For a file: split, samples, accuracy, macro_f1, of pixels also miou, classes, and the matrix if they are not many. */
int nr_class_counts_record(struct nr_str *, const struct nr_class_counts *, const char *split, struct nr_error *);

#endif
