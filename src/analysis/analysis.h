/* Dissecting a checkpoint: parts that each look at the same samples and tell numbers, tables and pictures.
 *
 *   struct nr_analysis a = { .w = weights, .what = samples, .batch = 128, .sites = "final", .want = ~0u };
 *   nr_analysis_run(&a, &err); nr_analysis_json(&a); nr_analysis_show(&a, &text); nr_analysis_write(&a, dir, &err);
 *   nr_analysis_close(&a);
 *
 * A part is one file part_NAME.c and one line of parts.def: it may ask for taps of the recorded model, sees every batch after the
 * forward pass, and finishes when all were seen. Numbers are the same bits for any number of threads. */
#ifndef NR_ANALYSIS_H
#define NR_ANALYSIS_H

#include "analysis/part_told.h"
#include "analysis/taps.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "draw/sheet.h"
#include "infer/evaluate.h"

struct nr_analysis {
	const struct nr_weights *w;
	const struct nr_weights *whole;     /* the same with the decoder that it was pre-trained with; NULL: none */
	struct nr_evaluation what;          /* which samples; watch is called after every step, of all passes */
	const int32_t *texts;               /* (count,length) ids without padding, instead of the pictures of `what`; or NULL */
	int64_t length;
	const struct nr_weights *other;     /* a model to compare with, which takes the same samples; NULL: none */
	const char *other_name;
	int64_t batch;
	const char *sites;                  /* patterns of norm sites, separated by spaces; NULL: the first of the blocks and the last */
	int64_t block;                      /* whose attention is drawn beside the last one's */
	unsigned want;                      /* bit i: nr_parts[i] */
	bool all;                           /* every part was asked for: those that the model has nothing for keep silent */
	/* from nr_analysis_run on */
	int64_t count;                      /* samples */
	struct nr_taps taps, other_taps;
	struct nr_arena *arena;             /* of the parts too */
	void *own[NR_PARTS_MAX];
	int64_t step, steps;
	struct nr_comm *comm;               /* ranks that have some of the batches each, as all parts that are wanted can; or NULL */
	struct nr_mol_list list;          /* of a model of graphs: the samples, */
	struct nr_mol_form form, other_form;
	struct nr_mol_view view, other_view;  /* and how the model and the other one read them; view.form NULL: no graphs */
	double *target;                     /* (count) the first target of each graph,
		NAN: missing; NULL: samples have classes, or nothing */
};

struct nr_part {
	const char *name, *title;
	size_t size;                        /* of its own state, zeroed at the start */
	unsigned taps;                      /* NR_TAPS_... */
	bool texts, graphs;                 /* it needs no picture, and looks at these too */
	bool deals;                         /* take only keeps what is of its batch, and end shares that by nr_analysis_spread */
	int64_t (*steps)(const struct nr_analysis *);   /* of its own in end, for the bar; NULL: none */
	int (*begin)(struct nr_analysis *, void *own, struct nr_error *);
	/* After the forward pass of a batch, whose first sample has this number. */
	int (*take)(struct nr_analysis *, void *own, const struct nr_batch *, int64_t first, struct nr_error *);
	int (*end)(struct nr_analysis *, void *own, struct nr_error *);
	json_t *(*json)(const struct nr_analysis *, const void *own);   /* NULL: the model has nothing for it */
	void (*show)(const struct nr_analysis *, const void *own, struct nr_str *);
	int (*write)(const struct nr_analysis *, const void *own, const char *dir, struct nr_error *);
	struct nr_part_told told;           /* for help, documentation and the report */
};
extern const struct nr_part *const nr_parts[];          /* ends with NULL */

/* "layers,attention" as bits of want. */
int nr_parts_read(const char *names, unsigned *want, struct nr_error *);
int nr_analysis_run(struct nr_analysis *, struct nr_error *);       /* close it also after a failure */
json_t *nr_analysis_json(const struct nr_analysis *);               /* one object, a key for each part; NULL: out of memory */
void nr_analysis_show(const struct nr_analysis *, struct nr_str *); /* tables and curves of text */
int nr_analysis_write(const struct nr_analysis *, const char *dir, struct nr_error *);   /* CSV and SVG; the folder is made */
void nr_analysis_close(struct nr_analysis *);

/* For the parts. */
/* Rows (count, bytes) that ranks took of their batches, to all of them. */
int nr_analysis_spread(const struct nr_analysis *, void *rows, size_t bytes, struct nr_error *);
/* A sentence about pictures in the words of what is looked at: of graphs "[CLS] and patches" is "[VNode] and nodes", of texts "[CLS]
 * and tokens". The memory is the arena's. */
const char *nr_say(const struct nr_analysis *, const char *text);
struct nr_scatter;
/* Colours for points, one for each sample: by class, or by the size of the first target. */
void nr_colour_samples(const struct nr_analysis *, const int32_t *label, struct nr_scatter *);
int nr_analysis_tick(struct nr_analysis *, struct nr_error *);      /* one more step; non-zero: interrupted */
json_t *nr_json_number(double);                                     /* null if it is not finite */
json_t *nr_json_numbers(int64_t n, const double *);
struct nr_table;
int nr_table_save(struct nr_table *, const char *dir, const char *name, struct nr_error *);    /* as CSV; frees it */
/* A cell with so many digits after the point ('f') or in all ('g'); blank if the number is not finite. */
void nr_cell_number(struct nr_table *, char form, int digits, double, const char *unit);
void nr_table_show(struct nr_table *, struct nr_str *);                                        /* as text; frees it */
/* A curve of text over layers 0 .. n-1 below its title; NAN: no value. */
void nr_show_curve(struct nr_str *, const char *title, int64_t n, const double *y);
/* A chart of some curves over 0 .. n-1 (layers, blocks, norms), y (count,n); label NULL: none. */
struct nr_curves { const char *name, *x_label, *y_label; int64_t n; int count; const double *y; const char *const *label; };
struct nr_size nr_draw_curves(struct nr_str *, const struct nr_curves *);

#endif
