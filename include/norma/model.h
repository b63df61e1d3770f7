/* Models: one file in src/models, one line in models.def. A model is text: a preset or a family, with options.
 *
 *   "vit_tiny_patch16_224"   "ti/16:image=32,patch=4"   "vit:dim=128,depth=6,heads=4,image=28,patch=4,channels=1"
 */
#ifndef NORMA_MODEL_H
#define NORMA_MODEL_H

#include <stdbool.h>

#include "norma/graph.h"
#include "norma/norm.h"

struct nr_preset { const char *name, *text; };               /* "s/16", "patch=16,dim=384,heads=6"; lists end with a NULL name */
/* Ours to theirs: rules are applied in order, each to the first place where its left side stands at the beginning of a
 * part of the name. A right side of several words names tensors whose rows follow each other in ours (query key value);
 * '@' before it: vectors over the pixels of a patch, whose order is (row, column, channel) there. */
struct nr_rename { const char *ours, *theirs; };
struct nr_naming {                          /* "timm", ...; lists end with a NULL name */
	const char *name;
	const struct nr_rename *rules;
	double eps;                         /* of the norms in that software, where it is not the model's own; 0: it is */
};

struct nr_model {
	const char *name, *title, *cite;
	size_t conf_size;
	const struct nr_option *options;
	const struct nr_preset *presets;
	const struct nr_naming *namings;
	struct nr_norm_defaults norms;
	/* The picture that the conf is for, from the options that every model has: channels, image. */
	nr_t *(*embed)(struct nr_net *, nr_t *image, const void *conf);          /* (B,channels,H,W) -> tokens with positions */
	nr_t *(*encode)(struct nr_net *, nr_t *tokens, const void *conf);        /* all blocks; special tokens first */
	nr_t *(*pool)(struct nr_net *, nr_t *tokens, const void *conf);          /* (B,C): what a head reads */
};

struct nr_model_spec { const struct nr_model *of; void *conf; const char *text; };
NR_API const struct nr_model *const *nr_models(void);         /* ends with NULL */
/* Reads a model's text; unknown names come with the nearest. conf lives in the arena. */
NR_API int nr_model_parse(struct nr_model_spec *, const char *text, struct nr_arena *, struct nr_error *);
/* An option of the configuration as a whole number ("image", "classes"; flags are 0 and 1); -1: it has no such option. */
NR_API int64_t nr_model_int(const struct nr_model_spec *, const char *name);
NR_API int nr_model_set(struct nr_model_spec *, const char *name, const char *value, struct nr_arena *, struct nr_error *);
/* embed, encode, pool and a linear layer "head". */
NR_API nr_t *nr_model_logits(struct nr_net *, const struct nr_model_spec *, nr_t *image);

/* ---- public names -------------------------------------------------------------------------------------------------- */

NR_API const struct nr_naming *nr_naming_find(const struct nr_model *, const char *name, struct nr_error *);   /* "norma": ours */
/* What an entry is called there: one or more words. NULL when out of memory. *pixels: see '@'. */
NR_API const char *nr_naming_text(const struct nr_naming *, const char *entry, bool *pixels, struct nr_arena *);
enum nr_import_fate { NR_TAKEN, NR_KEPT, NR_IGNORED };        /* an entry filled, an entry left as it was, a tensor not used */
struct nr_import {
	const char *naming;                 /* NULL or "auto": the one that most names of the file fit */
	const char *resample;               /* of a position table of another size: timm, mae, dino, bigvision; NULL: refuse it */
	bool partial;                       /* entries that the file lacks, and a head for other classes, keep their values; tensors */
					    /* left over are ignored */
	bool decoder;                       /* of a masked autoencoder: keep its decoder, if the file has one (nr_weights_import) */
	int64_t special;                    /* leading rows of a position table that are not on the grid */
	int64_t taken, kept, ignored;       /* out */
	const char *used;                   /* out: the naming */
	void (*tell)(void *context, enum nr_import_fate, const char *name);     /* of each entry and tensor; or NULL */
	void *context;
};
/* Values of a file into a store that knows its entries. The first tensor that does not fit is named and nothing is changed then. */
NR_API int nr_model_import(struct nr_store *, const struct nr_model *, const char *path, struct nr_import *, struct nr_error *);
/* With further metadata. Entries that would get the same public name are an error. */
struct nr_st_meta;
NR_API int nr_model_export(const struct nr_store *, const struct nr_model *, const char *path, const char *naming,
	const struct nr_st_meta *, int64_t n_meta, struct nr_error *);

/* What the tensors of a file look like; texts live in the arena. Heads cannot be seen: a width of 64 is assumed. */
struct nr_st_file;
struct nr_guess { const char *model, *norms, *naming; };      /* "vit_tiny_patch16_224:classes=10", "patch=dual", "timm" */
NR_API int nr_model_guess(struct nr_guess *, const struct nr_st_file *, struct nr_arena *);   /* 1: it looks like one; 0: it does not */

#endif
