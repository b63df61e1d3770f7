/* Data sets of picture files: a list of paths and labels; pictures are decoded when they are asked for. */
#ifndef NR_LISTED_H
#define NR_LISTED_H

#include "norma/data.h"

struct nr_listed {
	const char *dir;                    /* what the paths are relative to */
	int32_t cut;                        /* rows at the bottom of every picture that do not belong to it */
	/* For pictures that were turned by their EXIF data: turns them back where what belongs to them, boxes or a label map, was made for
	 * the pixels as they are stored. NULL: nothing belongs to them. */
	int (*fit)(const struct nr_source *, enum nr_split, int64_t i, struct nr_picture *, const char *path, struct nr_error *);
	/* What else must hold of a picture that was read; NULL: nothing. */
	int (*check)(const struct nr_source *, enum nr_split, int64_t i, const struct nr_picture *, const char *path, struct nr_error *);
	const char *stamp;                  /* tells one state of what that depends on from another; NULL: it depends on nothing */
	struct { const char **path; int32_t *label; int64_t room; } split[NR_SPLITS];
};

/* The source's own, made at the first call; NULL when out of memory. */
struct nr_listed *nr_listed_make(struct nr_source *, struct nr_error *);
/* path is copied. */
int nr_listed_add(struct nr_source *, enum nr_split, const char *path, int32_t label, struct nr_error *);
/* The first picture of each split is there: tells a set that was never unpacked when it is opened. */
int nr_listed_probe(const struct nr_source *, struct nr_error *);
int nr_listed_get(const struct nr_source *, enum nr_split, int64_t i, struct nr_picture *, struct nr_error *);
/* The path of a sample's file; "" if it has none of its own. Returns buf. */
const char *nr_source_file(const struct nr_source *, enum nr_split, int64_t i, char *buf, size_t size);
int32_t nr_listed_label(const struct nr_source *, enum nr_split, int64_t i);
/* Classes by other numbers: those of a trained model, which may know more of them. A class that it does not know is an error. Sources of
 * other kinds, and such without names, stay as they are. */
int nr_source_relabel(struct nr_source *, char *const *names, int32_t count, struct nr_error *);
/* Lines of a text, in the arena: *line ends with NULL; empty lines are left out. number[i]: line i's place in
 * the file. */
int nr_listed_lines(struct nr_source *, const char *path, char ***line, int64_t **number, int64_t *count,
	struct nr_error *);

#endif
