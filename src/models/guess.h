/* What a model looks like in a file, and what other software wants beside one: a model's own file ends with a struct nr_model_file.
 *
 * nr_model_guess looks at a file through every naming of every model. Signs that are there say how well one fits; `measure` then notes
 * what names, shapes and a config.json tell, and the shortest text of a model that says as much is made of it. */
#ifndef NR_GUESS_H
#define NR_GUESS_H

#include "base/json.h"
#include "base/mem.h"
#include "norma/model.h"

struct nr_st_file;
/* What the tensors of a file look like; texts live in the arena. */
struct nr_guess {
	const char *model, *norms, *naming; /* "vit_tiny_patch16_224:classes=10", "patch=dual", "timm" */
	bool sure;                          /* a config.json said what tensors cannot show, or only one known architecture fits; */
	const char *doubt;                  /* else what was assumed instead: "heads cannot be seen: ..." */
	const char *others;                 /* "vit_a, vit_b": all architectures that fit, if they are several and nothing decides; or "" */
	bool complete;                      /* the model has a place for every tensor, and finds all of its own; */
	const char *misfit;                 /* else why not: "tensors that were not understood: 'a', 'b' and 3 more" */
	bool config;                        /* a config.json beside it was read */
	double mean[3], std[3];             /* of the input, as timm's config.json has them; std 0: it does not say. */
	double crop;                        /* share of a picture that is looked at, likewise; 0: it does not say */
};
int nr_model_guess(struct nr_guess *, const struct nr_st_file *, struct nr_arena *);   /* 1: it looks like one; 0: it does not */
/* Of the models for one kind of data: a file of CLIP has a tower for pictures and one for texts. reads: an enum nr_kind, or -1 for all. */
int nr_tower_guess(struct nr_guess *, const struct nr_st_file *, int reads, struct nr_arena *);
/* An error for whoever needs to know the model, and is not sure of it: what fits, what is missing, what to do. `seen`: what nr_model_guess
 * returned. `what`: "cannot load". `norms_flag`: with which a user names the file's norm plan, "--norm". */
int nr_guess_fail(const struct nr_guess *, int seen, const char *what, const char *path, const char *norms_flag, struct nr_error *);
bool nr_json_three(const json_t *list, double *to);          /* three numbers; false: it has not as many */

struct nr_look {                            /* a file, taken to be this model under these names */
	const struct nr_st_file *file;
	const struct nr_model *model;
	const struct nr_naming *naming;
	const json_t *config;               /* config.json beside it, or NULL */
	struct nr_arena *arena;
};
struct nr_sighting;
struct nr_mae;

struct nr_saved {                           /* weights that are written for other software */
	const struct nr_model_spec *model;
	const struct nr_store *store;
	const struct nr_naming *naming;
	double eps;                         /* of the norms */
	const struct nr_mae *mae;           /* the store has the decoder of a masked autoencoder too; or NULL */
	char *const *class_name;            /* NULL: not known */
	const double *mean, *std;           /* (3) of the input; NULL: not known */
};

struct nr_model_file {
	const char *const *signs;           /* entries in our names, some of which every file of it has; ends with NULL */
	bool (*measure)(const struct nr_look *, struct nr_sighting *);              /* false: it is none of these */
	/* 1: of models whose files have the same names, this is the one; NULL: no other has them */
	int (*fits)(const struct nr_look *);
	const char *doubt;                  /* what is assumed where no config.json says it */
	/* config.json for these names. The caller owns it; NULL: there is none for these names. */
	json_t *(*config)(const struct nr_saved *);
	/* Why that software has no such model; NULL: it has. NULL: nothing is refused. */
	const char *(*refuses)(const struct nr_model_spec *, const struct nr_naming *to);
	const char *const *classes;         /* of Hugging Face, whose files are read: "ViTForImageClassification"; ends with NULL,
		or NULL */
	const char *const *types;           /* their model_type: "vit"; ends with NULL, or NULL: it is not looked at */
};

/* ---- for measure ---- */

/* The tensor that an entry of ours is under these names (the first of several); NULL: the file has none. */
const struct nr_st_tensor *nr_look_find(const struct nr_look *, const char *entry);
int64_t nr_look_rows(const struct nr_look *, const char *entry, int64_t cols);         /* of a matrix; cols 0: any. -1: there is none */
int64_t nr_look_depth(const struct nr_look *, const char *entry);      /* how many blocks.N have that entry, from 0 on */
int64_t nr_look_depth_at(const struct nr_look *, const char *scope, const char *entry);   /* how many scope.N have it */
/* "sep(bn,ln)", by what is at a site; NULL: there is no such norm. */
const char *nr_look_sep(const struct nr_look *, const char *site);
int64_t nr_root(int64_t);                   /* of a square; 0: it is none */
/* Heads of 64 channels, or 32: what is assumed. */
int64_t nr_heads_assumed(int64_t dim);

/* Options of the model: -1 or NULL notes nothing. */
void nr_saw(struct nr_sighting *, const char *option, int64_t value);
void nr_saw_text(struct nr_sighting *, const char *option, const char *text);
void nr_saw_key(struct nr_sighting *, const char *option, int64_t value);          /* a preset with another value is out of the question */
void nr_saw_key_text(struct nr_sighting *, const char *option, const char *text);
void nr_saw_at_most(struct nr_sighting *, const char *option, int64_t value);
void nr_saw_not(struct nr_sighting *, const char *option, const char *text, const char *instead);
void nr_assumed(struct nr_sighting *, const char *option, int64_t value);          /* a preset knows better */
void nr_saw_norms(struct nr_sighting *, const char *plan);                         /* "": the model's own; NULL: out of memory */
void nr_saw_all(struct nr_sighting *);                                             /* nothing was assumed */
/* Why numbers would be wrong though all tensors fit, as "its config.json ..."; the first one counts. */
void nr_saw_misfit(struct nr_sighting *, const char *why);

/* ---- what came of it ---- */

/* An option as it was seen; false: it was not, or only assumed. */
bool nr_seen_text(const struct nr_sighting *, const char *option, char *text, size_t size);
/* Why a config.json does not go with the tensors beside it, or has settings that are not understood; NULL: it does, or there is none. */
const char *nr_config_misfit(const struct nr_look *, const struct nr_sighting *);
/* timm's config.json gives its architecture another value of this option; of any that tensors show, with NULL. */
bool nr_config_overrides(const struct nr_look *, const char *option);

#endif
