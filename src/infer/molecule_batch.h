/* Batches of graphs: what a model of graphs reads, padded to one of a few sizes. */
#ifndef NR_MOLECULE_BATCH_H
#define NR_MOLECULE_BATCH_H

#include "base/mem.h"
#include "data/molecule_sets.h"
#include "norma/infer.h"
#include "norma/task.h"

/* How the model wants its graphs. */
struct nr_mol_form {
	const struct nr_molecules *set;
	struct nr_molgraph_offsets offsets;
	const double *mean, *std;           /* (tasks) that targets are standardised by; NULL: they stay as they are */
	int64_t paths;                      /* edges of a path that its input has; 0: single edges */
	int threads;
	struct nr_arena **arena;            /* (threads) */
	struct nr_mark *start;              /* (threads): of a block that holds the largest graph */
};
/* Takes the offsets from the model's tables. */
int nr_mol_form_open(struct nr_mol_form *, const struct nr_molecules *, const struct nr_model_spec *, struct nr_error *);
/* Have the tables a row for all that these graphs of the set have? */
int nr_mol_form_check(const struct nr_mol_form *, const struct nr_model_spec *, int64_t first, int64_t count, struct nr_error *);
/* Both, of the whole set. */
int nr_mol_form_make(struct nr_mol_form *, const struct nr_molecules *, const struct nr_model_spec *, struct nr_error *);
void nr_mol_form_release(struct nr_mol_form *);
/* An error if the model wants other numbers of features. */
int nr_mol_expect(const struct nr_molecules *, const struct nr_model_spec *, struct nr_error *);
/* Are all known targets 0 or 1? *known: how many there are. */
bool nr_mol_yes_or_no(const struct nr_molecules *, int64_t *known);

/* Samples of a split; those with more nodes than `most` are left out. most 0: none is. */
struct nr_mol_list {
	int64_t samples, left_out;
	int64_t *graph;                     /* (samples): number in the set */
	int32_t *nodes;                     /* (samples) */
	int32_t largest;
};
int nr_mol_list_open(struct nr_mol_list *, int64_t most, struct nr_error *);        /* empty, with room for so many */
void nr_mol_list_add(struct nr_mol_list *, const struct nr_molecules *, int64_t graph);
int nr_mol_list_make(struct nr_mol_list *, const struct nr_source *, enum nr_split, const int32_t *index, int64_t count,
	int64_t most, struct nr_error *);
void nr_mol_list_release(struct nr_mol_list *);

/* Graphs that a model is shown: all are padded to so many nodes. */
struct nr_mol_view { const struct nr_mol_form *form; const struct nr_mol_list *list; int64_t nodes; };

/* Sizes that graphs are padded to: size i has largest - i step nodes. */
struct nr_mol_sizes { int64_t largest, step, count; };
struct nr_mol_sizes nr_mol_sizes(int64_t nodes);
int64_t nr_mol_size_of(const struct nr_mol_sizes *, int64_t nodes);         /* the smallest that holds so many */

int64_t nr_mol_batch(int64_t batch, int64_t nodes);                           /* so many, or fewer if the graphs are large */

struct nr_mol_inputs { struct nr_inputs in; nr_t *target; };                  /* target (B,tasks), NaN: missing; or NULL */
void nr_mol_inputs(struct nr_mol_inputs *, struct nr_net *, const struct nr_mol_form *, int64_t batch, int64_t nodes, bool target);
/* Samples of the list into a plan's inputs; rows from count on are empty graphs without a target. */
void nr_mol_bind(const struct nr_mol_form *, const struct nr_mol_list *, struct nr_plan *, const struct nr_mol_inputs *,
	const int32_t *sample, int64_t count);
/* The same of the samples from `first` on, in the order of the list. */
void nr_mol_bind_from(const struct nr_mol_form *, const struct nr_mol_list *, struct nr_plan *, const struct nr_mol_inputs *,
	int64_t first, int64_t count);

#endif
