/* Made-up pictures for detectors: coloured shapes of several sizes before a striped and grainy background, which cover one another in part.
 * Each is a pure function of (how, number). */
#ifndef NR_SHAPES_H
#define NR_SHAPES_H

#include "norma/picture.h"
#include "picture/rle.h"

enum { NR_SHAPE_KINDS = 6, NR_SHAPES_MOST = 32 };
extern const char *const nr_shape_names[NR_SHAPE_KINDS + 1];       /* "circle", "cross", ...; ends with NULL */

struct nr_shapes_how { int64_t size, fewest, most; uint64_t seed; };   /* pixels of a side; shapes of a picture, at most NR_SHAPES_MOST */
struct nr_shapes {
	int32_t count;
	struct { int32_t kind; struct nr_rle *mask; } shape[NR_SHAPES_MOST];      /* mask: what is to be seen of it */
};
/* The shapes are the caller's; places for all of them may not be found. */
int nr_shapes_draw(const struct nr_shapes_how *, int64_t number, struct nr_picture *, struct nr_shapes *, struct nr_error *);
void nr_shapes_release(struct nr_shapes *);

/* Writes train/ and val/ with PNGs and annotations/instances_train.json, instances_val.json into a folder: what the data set `coco` reads.
 * watch is called with the number of pictures written so far. */
struct nr_shapes_files {
	struct nr_shapes_how how;
	int64_t count[2];
	void (*watch)(void *context, int64_t pictures);
	void *context;
	int64_t shapes;                     /* out */
};
int nr_shapes_write(struct nr_shapes_files *, const char *dir, struct nr_error *);

#endif
