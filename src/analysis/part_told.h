/* What documentation, help and the report say of a part of an analysis. The report draws from analysis.json and from the CSV file
 * that has the part's name, with no need of the model. */
#ifndef NR_PART_TOLD_H
#define NR_PART_TOLD_H

#include "base/json.h"
#include "base/mem.h"
#include "draw/svg.h"

enum { NR_PARTS_MAX = 32 };                 /* nr_analysis.want has a bit for each */

/* A row of the table in docs/analysis.md. */
struct nr_part_number { const char *name, *meaning, *figure; };         /* figure: whose, "DTN, Fig. 1", or "" */

/* A chart over depth, or over what x_label says, with a line for each arm. path leads from the part's JSON to a number for each layer: "blocks[].norm" takes `norm`
 * of every item of the list `blocks`; of lists in a list the mean is taken. */
struct nr_part_curve { const char *title, *unit, *says, *path; enum nr_y_scale scale; const char *x_label; };   /* NULL: layers */

struct nr_part_matrix { int64_t rows, cols; double *value; const char **row, **col; };    /* col NULL: numbers */
struct nr_part_heat {                       /* a heat map for each arm */
	const char *title, *rows, *cols, *says;
	double low, high;                   /* colours; equal: from the least to the largest of all arms */
	struct nr_part_matrix (*of)(const json_t *analysis, struct nr_arena *);         /* rows 0: there is nothing */
};

struct nr_part_points {                     /* a map of samples for each arm: columns x and y of the CSV */
	const char *kind, *x, *y, *x_label, *y_label;
	const char *says;                   /* # stands for the number */
	double (*number)(const json_t *of_cls);
};

struct nr_part_told {
	const char *about;                  /* in a list of parts */
	const char *measure, *cite;         /* what the report cites for it; NULL: nothing */
	const struct nr_part_number *numbers;   /* these lists end with a NULL name, title, kind; NULL: none */
	const struct nr_part_curve *curves;
	const struct nr_part_heat *heats;
	const struct nr_part_points *points;
};
/* Of part i of the registry, with its name; NULL: there are no more. */
const struct nr_part_told *nr_part_told(int i, const char **name);

/* Rows and columns of NAN, without names. */
struct nr_part_matrix nr_part_matrix_make(size_t rows, size_t cols, struct nr_arena *);
/* Of a list of objects: a row each, named by their text `name`, with the numbers of their list `values` (`key` of its items; NULL: the
 * items themselves). */
struct nr_part_matrix nr_part_matrix_rows(const json_t *list, const char *name, const char *values, const char *key,
	struct nr_arena *);
const char *nr_part_short_name(const char *name, struct nr_arena *);    /* "blocks[3]" as "3" */
/* The number at the end of such a path; NAN: it is not there. */
double nr_part_number_at(const json_t *, const char *path);
/* The list that a curve goes over, and what is left of its path. */
const json_t *nr_part_list_at(const json_t *, const char **path);

#endif
