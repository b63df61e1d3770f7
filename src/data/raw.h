/* Pictures of one size in memory: what IDX, CIFAR, STL-10, SVHN and NPZ have in common once their files are read.
 * Pixel (y,x,k) of a picture is at y * sy + x * sx + k * sk from its first byte. */
#ifndef NR_RAW_H
#define NR_RAW_H

#include "base/bytes.h"
#include "norma/data.h"

enum { NR_RAW_PARTS = 8, NR_RAW_FILES = 16 };

struct nr_raw_part { const uint8_t *first; size_t stride; int64_t count; };
	   /* pictures that follow each other in memory */

struct nr_raw {
	int64_t sy, sx, sk;
	int32_t scale;                      /* each value times this, at most 255; 0 is 1 */
	struct { struct nr_raw_part part[NR_RAW_PARTS]; int parts; int32_t *label; } split[NR_SPLITS];
	struct nr_bytes file[NR_RAW_FILES];
	int files;
};

/* The source's nr_raw, made at the first call; NULL when out of memory. */
struct nr_raw *nr_raw_make(struct nr_source *, struct nr_error *);
/* Opens a file (or its .gz) that lives as long as the source; NULL after an error. */
const struct nr_bytes *nr_raw_file(struct nr_source *, const char *path, size_t limit, struct nr_error *);
int nr_raw_add(struct nr_source *, enum nr_split, struct nr_raw_part, struct nr_error *);
/* Labels of the last `count` pictures added to the split: byte i * stride of `bytes` less base, which must lie
 * in [0,classes). */
int nr_raw_labels(struct nr_source *, enum nr_split, const uint8_t *bytes, size_t stride, int64_t count, int32_t base,
	const char *path, struct nr_error *);

int nr_raw_get(const struct nr_source *, enum nr_split, int64_t i, struct nr_picture *, struct nr_error *);
int32_t nr_raw_label(const struct nr_source *, enum nr_split, int64_t i);
void nr_raw_close(struct nr_source *);

#endif
