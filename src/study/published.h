/* Published numbers beside measured ones. The data file recipes/published.yaml has tables as printed; a study names one:
 *
 *   published: sepnorm/table4
 *   published:
 *     table: sepnorm/table4
 *     file: published.yaml                     default: beside the study's file, or in a folder above it
 *     where: {data: STL10}                     holds for every cell
 *     match:                                   from names of arms, or of their parts, to what a cell's row and column say
 *       plain: {lambda: 0}
 *       "cls 0.1": {negatives: "[CLS]", lambda: 0.1}
 *     metrics: {probe.features.cls.top1: {metric: top1}}   only these; default: by the end of their names
 *     protocol: image                          their settings in the data file; default: the paper's first
 *
 * A name "plain, LN" has the parts plain and LN; a part that `match` does not have is looked for among the words of a cell's row
 * and column. One cell must be left, or cells that print the same. Numbers of one's own need no data file:
 *
 *   published: {label: our paper, theirs: ViT-B on STL10, cells: [{arm: LN, value: "92.01", ci95: "0.3"}]}
 */
#ifndef NR_STUDY_PUBLISHED_H
#define NR_STUDY_PUBLISHED_H

#include "study/study.h"

struct nr_published_cell {
	const char *value, *ci95;           /* the printed digits; value NULL: nothing was printed */
	const char *of;                     /* their metric: "delta_acc" is a difference to their baseline */
	const char *unsure;                 /* why the cell is doubtful; NULL: it is not */
};

struct nr_published {
	const char *label, *theirs;         /* table and paper; their model, data and epochs */
	struct nr_published_cell *cell;     /* (metrics, arms), the main metric first */
	struct nr_list notes;               /* what is doubtful about the table as a whole */
	struct nr_list claims, conflicts;   /* what the paper says in words; where it contradicts itself, as far as the table goes */
};

/* Reads `published:` of a checked study; file is the study's own. Leaves s->published NULL if there is none. */
int nr_published_read(struct nr_study *, const char *file, struct nr_error *);
const struct nr_published_cell *nr_published_cell(const struct nr_study *, int64_t metric, int64_t arm);   /* NULL: none */
/* "92.01 ± 0.3 ?", differences with a Delta before them; at most size bytes. */
void nr_published_text(const struct nr_published_cell *, char *buf, size_t size);
/* As `published:` with its cells, for the study's record. */
void nr_published_write(const struct nr_study *, struct nr_str *);

#endif
