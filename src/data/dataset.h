/* What the files of data sets share: the registry, and where data lie. */
#ifndef NR_DATASET_H
#define NR_DATASET_H

#include "norma/data.h"

#define DATASET(id) extern const struct nr_dataset nr_dataset_##id;
#include "data/datasets.def"
#undef DATASET

struct nr_arena;

/* root itself, or $NORMA_DATA, or norma/data in the user's cache folder. In the arena; NULL and an error
 * without a home. */
const char *nr_data_root(const char *root, struct nr_arena *, struct nr_error *);
/* The folder that holds the first official file of the set: root, root/folder, or one of `also`. NULL: in none of them.
 * Sets without a folder of their own are at the root. */
const char *nr_dataset_dir(const struct nr_dataset *, const char *root, struct nr_arena *);

/* The set that a text means: NAME, NAME:key=value, or a path to one's own data. */
const struct nr_dataset *nr_dataset_of(const char *text, struct nr_error *);

/* What is wrong with a file, as far as asked. */
enum nr_file_state { NR_FILE_RIGHT, NR_FILE_MISSING, NR_FILE_SIZE, NR_FILE_SUM };
struct nr_file_report {
	enum nr_file_state state;
	int64_t bytes;                      /* of the contents */
	char md5[33];                       /* "": not computed */
	bool gz;                            /* only path.gz was there */
};
/* sum: also computes the checksum. Fails only if a file that is there cannot be read. */
int nr_data_file_check(const struct nr_data_file *, const char *dir, bool sum, struct nr_file_report *,
	struct nr_error *);

/* Names for the classes of a source: `names` ends with NULL and is not copied. */
int nr_source_classes(struct nr_source *, const char *const *names, struct nr_error *);
/* One name per line of a file; empty lines at its end are ignored. want 0: any number. */
int nr_source_classes_read(struct nr_source *, const char *path, int32_t want, struct nr_error *);

#endif
