/* The 15 corruptions of ImageNet-C and CIFAR-10-C (Hendrycks & Dietterich 2019, arXiv:1903.12261) at five severities: pure functions of the
 * picture and of (seed, sample, corruption, severity). Grey pictures work too.
 *
 * Severities mean what was published for pictures of 32 or of 224 pixels; both apply to pictures of any size. */
#ifndef NR_CORRUPT_H
#define NR_CORRUPT_H

#include "norma/picture.h"

enum { NR_CORRUPTIONS = 15, NR_SEVERITIES = 5 };
enum nr_corrupt_setting { NR_CORRUPT_32, NR_CORRUPT_224 };     /* those of CIFAR-10-C, of ImageNet-C */
/* The nearer one for pictures of so many pixels a side. */
enum nr_corrupt_setting nr_corrupt_setting_for(int64_t side);

/* Photographs of frost: the published ones are somebody's, so that users bring them. */
struct nr_frost { int32_t count; struct nr_picture *photo; };
/* The pictures of a folder, sorted by name. */
int nr_frost_open(struct nr_frost *, const char *dir, struct nr_error *);
void nr_frost_close(struct nr_frost *);                         /* all zero is fine */

const char *nr_corruption_name(int number);                     /* 0 to 14, in the order of the published tables */
const char *nr_corruption_group(int number);                    /* "noise", "blur", "weather", "digital" */
int nr_corruption_find(const char *name, struct nr_error *);    /* its number, or an error with the nearest name */

/* The severity's numbers as published, in the order of corrupt.c's table. */
const double *nr_corruption_setting(int number, enum nr_corrupt_setting, int severity);

struct nr_corrupt {
	int32_t number, severity;                               /* which; 1 to 5 */
	enum nr_corrupt_setting setting;
	uint64_t seed;
	int64_t sample;
	const struct nr_frost *frost;                           /* NULL: a texture of ours, which no published figure knows */
	bool stored;                                            /* as a JPEG of quality 85 at last, as ImageNet-C is */
};
struct nr_corrupt_scratch;                                      /* serves one thread */
int nr_corrupt_scratch_make(struct nr_corrupt_scratch **, struct nr_error *);
void nr_corrupt_scratch_free(struct nr_corrupt_scratch *);      /* NULL is fine */
int nr_corrupt_run(const struct nr_corrupt *, struct nr_picture *, struct nr_corrupt_scratch *, struct nr_error *);

#endif
