/* Pictures with label maps, a PNG with the class of every pixel for each: numbers (grey, palette) or colours that stand for classes. */
#ifndef NR_LABEL_MAPS_H
#define NR_LABEL_MAPS_H

#include "data/listed.h"

enum { NR_UNKNOWN_NUMBER = -1, NR_LABEL_CLASSES = 255 };

struct nr_label_maps {
	struct nr_listed listed;            /* first. What it calls labels are places in: */
	const char **map;                   /* files, relative to the set's folder */
	int64_t maps, room;
	int16_t class_of[256];              /* of numbers: a class, NR_NO_CLASS or NR_UNKNOWN_NUMBER */
	bool stored;                        /* they are of pixels as the files of the pictures store them */
	bool by_colour;                     /* colours decide, also those of a palette: */
	int32_t colours;
	struct { uint8_t rgb[3]; int16_t class_; } colour[256];
};

/* The source's own, without a picture; NULL and an error when out of memory. */
struct nr_label_maps *nr_label_maps_make(struct nr_source *, struct nr_error *);
int nr_label_maps_add(struct nr_source *, enum nr_split, const char *picture, const char *map, struct nr_error *);
const char *nr_label_maps_file(const struct nr_source *, enum nr_split, int64_t i, char *buf, size_t size);
/* For the table of a data set. Whole pictures have no class: -1. */
int nr_label_maps_get(const struct nr_source *, enum nr_split, int64_t i, struct nr_picture *, struct nr_error *);
int32_t nr_label_maps_none(const struct nr_source *, enum nr_split, int64_t i);

/* ---- the whole of a folder ---- */

struct nr_label_folder {
	const char *root;                   /* of all data sets: what was measured of pictures is kept there */
	double val;                         /* share set apart where the folder is not divided; < 0: .1 */
	bool stored;                        /* EXIF data turn no picture */
	bool skip;                          /* leave out what cannot be read or has no label map */
	int32_t ignored;                    /* a number that does not count, beside 255; -1: none */
	/* Of a known set, else NULL and seen in the files: */
	const char *const *names;           /* of the classes, ends with NULL */
	const uint8_t (*colour)[3];
	const float *mean, *std;            /* of the pixels; NULL: measured */
	bool trusted;                       /* the maps need not be looked at before they are used */
};
/* Finds pictures and maps below s->dir. */
int nr_label_folder_open(struct nr_source *, const struct nr_label_folder *, struct nr_error *);
/* Does a folder look like one with label maps? */
bool nr_label_folder_like(const char *path, struct nr_arena *);

/* The classes, from a file of names or from the maps themselves (label_classes.c). */
int nr_label_classes_find(struct nr_source *, const struct nr_label_folder *, struct nr_error *);

#endif
