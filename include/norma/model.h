/* For building and training: the models that norma knows, by their text. A text is a preset or a family, with options:
 *
 *   "vit_tiny_patch16_224"   "ti/16:image=32,patch=4"   "vit:dim=128,depth=6,heads=4,image=28,patch=4,channels=1"
 *   "bert-base-uncased"      "minilm-l6:length=64"
 *
 * Example:
 *   struct nr_arena *arena = nr_arena_make();
 *   struct nr_model_spec model;
 *   struct nr_store *store = NULL;
 *   struct nr_net *net = NULL;
 *   if (!nr_model_parse(&model, "vit:image=8,patch=4,dim=16,depth=2,heads=2,classes=3", arena, &err) &&
 *           !nr_store_make(&store, 1, &err) && (net = nr_net_make(store)) &&
 *           !nr_norms_use(net, "", &model.of->norms, &err)) {
 *           const struct nr_inputs in = nr_model_inputs(net, &model, 4);            // four pictures
 *           nr_t *logits = nr_model_logits(net, &model, &in);
 *           if (!nr_norms_done(net, &err)) printf("%lld logits\n", (long long)nr_len(logits));
 *   }
 *   nr_net_free(net);
 *   nr_store_free(store);
 *   nr_arena_free(arena);
 */
#ifndef NORMA_MODEL_H
#define NORMA_MODEL_H

#include <stdbool.h>

#include "norma/data.h"
#include "norma/graph.h"
#include "norma/norm.h"

struct nr_preset { const char *name, *text; };               /* "s/16", "patch=16,dim=384,heads=6"; lists end with a NULL name */
/* What public software calls a model: "deit3_small_patch16_224"; lists end with a NULL name. norms: a norm, if it is not the family's,
 * and items
 * of a norm plan which hold before the user's own ("rms attn.qk=rms"). */
struct nr_architecture { const char *name, *text, *norms; };
/* Ours to theirs: rules are applied in order, each to the first place where its left side stands at the beginning of a
 * part of the name. `#` on the left is a number, which `#` on the right repeats; `#+` and `#-` are one more and one less. A right side of
 * several words names tensors whose rows follow each other in ours (query key value; `2*` before a word: it has twice the rows). '@' before
 * it: vectors over the pixels of a patch, whose order is (row, column, channel) there; '~': the first of the columns is the last there;
 * '^': leading sizes of 1 are left out there; '%': channels of four merged tokens, in mmdetection's order; '!': a transposed matrix. */
struct nr_rename { const char *ours, *theirs; };
struct nr_st_file;
struct nr_naming;
enum { NR_MAXLEVELS = 8 };                  /* stages of a hierarchical model */
struct nr_numbers { int64_t depth[NR_MAXLEVELS], levels; };     /* blocks of each stage; levels that a detector's neck reads */
struct nr_scope_names { const char *scope; const struct nr_naming *of; };    /* "text.": what follows has names of its own */
struct nr_naming {                          /* "timm", ...; lists end with a NULL name */
	const char *name;
	const struct nr_rename *rules;
	const char *prefix;                 /* of every name there: "visual.trunk."; or NULL */
	const char *without;                /* beginning of the rules' names that theirs lack, "vit."; or NULL */
	const struct nr_scope_names *scopes;        /* models that stand side by side; ends with a NULL scope, or NULL */
	double eps;                         /* of the norms in that software, where it is not the model's own; 0: it is */
	const char *norms;                  /* the norm plan of models of that software, where eps is not all that differs; or NULL */
	const char *const *ignored;         /* names of tensors that are no weights (a table of positions 0, 1, ...) or copies of others; */
					    /* ends with NULL, or NULL; `*` at the beginning or end stands for anything */
	const struct nr_rename *wanted;     /* tensors that the software expects beside ours, written as zeros: `ours` is the entry whose */
					    /* shape it has; ends with NULL, or NULL */
	const char *idle_bias;              /* "pos_proj.weight": such tensors have a bias there that does nothing, written as 0; or NULL */
	/* Where blocks are counted in another way, which depends on how many there are: rules that come before the others, in the arena
	 * (NULL: out of memory), and the blocks as a file has them. NULL: they are not. */
	const struct nr_rename *(*numbered)(const struct nr_numbers *, struct nr_arena *);
	void (*depths)(const struct nr_st_file *, int64_t *depth);
};

/* What a model is given: pictures, texts as numbers of their tokens, or molecules as graphs. What it does not read stays NULL. */
struct nr_inputs {
	nr_t *image;                        /* (B,channels,H,W) */
	nr_t *ids, *types;                  /* (B,T) int32; types: of segments, NULL: all 0 */
	nr_t *random_blocks, *rotations;    /* of sparse attention (nn.h), instead of drawn ones; NULL: drawn */
	nr_t *valid;                        /* (B) int32 lengths (nodes of a graph), what follows is padding; NULL: none is padded */
	nr_t *nodes;                        /* (B,N,F) int32 features, each with its own range of a table's rows; 0: padding. Likewise: */
	nr_t *in_degree, *out_degree;       /* (B,N): number of edges + 1 */
	nr_t *distance;                     /* (B,N,N): edges on the shortest path + 1 */
	nr_t *edges;                        /* (B,N,N,L,F) of the path's first L edges, or (B,N,N,F) of the edge between two nodes */
	nr_t *noise;                        /* (B,N,C), added to the embedded nodes (FLAG); NULL: none */
};

struct nr_model_file;
struct nr_model {
	const char *name, *title, *cite;
	enum nr_kind reads;                 /* what it is made for */
	size_t conf_size;
	const struct nr_option *options;
	const struct nr_preset *presets;
	const struct nr_preset *plans;      /* norm plans of some presets: they hold where the user names no norm; or NULL */
	const struct nr_architecture *known;        /* architectures of timm by their names, which are read like presets; or NULL */
	const struct nr_naming *namings;
	struct nr_norm_defaults norms;
	/* Sizes of the inputs are options that every model of a kind has: channels and image; vocab and length; nodes,
	 * node_features, edge_features, paths (0: single edges). */
	nr_t *(*embed)(struct nr_net *, const struct nr_inputs *, const void *conf);     /* tokens with positions */
	nr_t *(*encode)(struct nr_net *, const struct nr_inputs *, nr_t *tokens, const void *conf);   /* all blocks; special tokens first */
	/* The same, with the output of each of the `depth` blocks in layer; NULL: the model does not show them. */
	nr_t *(*encode_layers)(struct nr_net *, const struct nr_inputs *, nr_t *tokens, const void *conf, nr_t **layer);
	/* Feature maps (B,T,C), tokens with their grid, from the finest on, of pictures of any size; how many. NULL: it has no pyramid. */
	int (*levels)(struct nr_net *, const struct nr_inputs *, const void *conf, nr_t *level[NR_MAXLEVELS]);
	nr_t *(*pool)(struct nr_net *, nr_t *tokens, const void *conf);          /* (B,C): what a head reads */
	nr_t *(*head)(struct nr_net *, nr_t *pooled, const void *conf);          /* NULL: a linear layer "head" of `classes` outputs */
	const struct nr_model_file *file;   /* what it looks like in a file (src/models/guess.h); NULL: it is not recognised */
};

struct nr_model_spec {
	const struct nr_model *of;
	void *conf;
	const char *text;
	struct nr_norm_defaults norms;      /* the model's, with the plan of its preset */
};
NR_API const struct nr_model *const *nr_models(void);         /* ends with NULL */
/* Reads a model's text; unknown names come with the nearest. conf lives in the arena. */
NR_API int nr_model_parse(struct nr_model_spec *, const char *text, struct nr_arena *, struct nr_error *);
/* An option of the configuration as a whole number ("image", "classes"; flags are 0 and 1); -1: it has no such option. */
NR_API int64_t nr_model_int(const struct nr_model_spec *, const char *name);
NR_API int nr_model_set(struct nr_model_spec *, const char *name, const char *value, struct nr_arena *, struct nr_error *);
/* Declares what the model reads, for so many samples; texts have as many tokens as the option `length` says. */
NR_API struct nr_inputs nr_model_inputs(struct nr_net *, const struct nr_model_spec *, int64_t batch);
/* 0, or an error that says what the model reads instead: for whoever has pictures (or texts) to give. */
NR_API int nr_model_expect(const struct nr_model_spec *, enum nr_kind, struct nr_error *);
/* embed and encode. */
NR_API nr_t *nr_model_tokens(struct nr_net *, const struct nr_model_spec *, const struct nr_inputs *);
NR_API nr_t *nr_model_head(struct nr_net *, const struct nr_model_spec *, nr_t *pooled);
/* embed, encode, pool and head. */
NR_API nr_t *nr_model_logits(struct nr_net *, const struct nr_model_spec *, const struct nr_inputs *);

/* What stands for a sentence, by the names of SimCSE's code. Means take every token that is no padding. */
enum nr_text_pooling {
	NR_TEXT_CLS,                        /* first token; SimCSE's layer comes after it, in training at least */
	NR_TEXT_CLS_BEFORE_POOLER,          /* first token alone */
	NR_TEXT_AVG,
	NR_TEXT_AVG_TOP2,                   /* mean over the last two blocks */
	NR_TEXT_AVG_FIRST_LAST,             /* over the first and the last */
};
extern NR_DATA const char *const nr_text_poolings[];          /* cls, cls_before_pooler, avg, avg_top2, avg_first_last; ends with NULL */

/* ---- public names -------------------------------------------------------------------------------------------------- */

NR_API const struct nr_naming *nr_naming_find(const struct nr_model *, const char *name, struct nr_error *);   /* "norma": ours */
enum nr_import_fate { NR_TAKEN, NR_KEPT, NR_IGNORED };        /* an entry filled, an entry left as it was, a tensor not used */
struct nr_import {
	const char *naming;                 /* NULL or "auto": the one that most names of the file fit */
	const char *resample;               /* of a position table of another size: timm, mae, dino, bigvision; NULL: refuse it */
	bool partial;                       /* entries that the file lacks, and a head for other classes, keep their values; tensors */
					    /* left over are ignored */
	bool decoder;                       /* of a masked autoencoder: the store has a place for it; else the file's is ignored */
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

#endif
