/* Annotation files of COCO: pictures, categories, and objects with boxes and masks (polygons, or runs as numbers or as text).
 * Lin et al. 2014, arXiv:1405.0312; https://cocodataset.org/#format-data. */
#ifndef NR_COCO_FILE_H
#define NR_COCO_FILE_H

#include "norma/data.h"

struct nr_arena;

/* Entries that cannot be used: an error that names them all, or they are left out. TRUST also keeps boxes without an area or outside their
 * picture, as pycocotools does when it scores. */
enum nr_coco_bad { NR_COCO_FAIL, NR_COCO_SKIP, NR_COCO_TRUST };
struct nr_coco_how { enum nr_coco_bad bad; bool masks; };  /* masks: also read them */

struct nr_coco {                            /* all of it in the arena */
	const char *path;                   /* of the file */
	int64_t images, objects, left_out;  /* left_out: entries */
	int32_t classes;
	struct nr_objects *image;           /* (images) in the order of their ids */
	const char **file;                  /* (images) their names */
	int64_t *category;                  /* (classes) their ids, ascending: category[label] */
	char **name;                        /* (classes) */
};
int nr_coco_read(struct nr_coco *, const char *path, const struct nr_coco_how *, struct nr_arena *, struct nr_error *);
/* The same from memory; path: for messages. */
int nr_coco_parse(struct nr_coco *, const char *text, size_t size, const char *path, const struct nr_coco_how *, struct nr_arena *,
	struct nr_error *);
int64_t nr_coco_image(const struct nr_coco *, int64_t id);         /* its place, or -1 */
int32_t nr_coco_class(const struct nr_coco *, int64_t category);   /* its label, or -1 */

/* What an opened source of the data set `coco` was read from; NULL: it is another one, or the split is empty. */
const struct nr_coco *nr_coco_of(const struct nr_source *, enum nr_split);

#endif
