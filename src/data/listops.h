/* ListOps: nested expressions over digits whose value is a digit. Nangia and Bowman 2018, arXiv:1804.06028; long ones as in the Long Range
 * Arena, arXiv:2011.04006.
 *
 *   flat       [MAX 2 [SM 4 7 ] 0 ]
 *   brackets   ( ( ( ( [MAX 2 ) ( ( ( [SM 4 ) 7 ) ] ) ) 0 ) ] )       what the files of the Long Range Arena hold
 *   words      MAX 2 SM 4 7 X 0 X                                     what models read: 15 words
 *
 * MIN, MAX, MED (the integer part of the median), SM (the sum modulo 10). The length counts digits, operators and ]. */
#ifndef NR_LISTOPS_H
#define NR_LISTOPS_H

#include "base/str.h"
#include "norma/err.h"

enum { NR_LISTOPS_DEPTH = 1000 };           /* most operators around a digit that are read */

struct nr_listops { int value; int64_t length, depth; };        /* depth: of operators */
/* Reads one expression, flat or with brackets, which must balance; appends its words to `words` unless that is NULL. name, line: for
 * messages. */
int nr_listops_read(const char *text, size_t bytes, struct nr_listops *, struct nr_str *words, const char *name, int64_t line,
	struct nr_error *);

/* Random trees, as the Long Range Arena draws them: above `depth` a node is an operator with probability .25, else a digit; an operator
 * has 2 .. arguments of them. */
struct nr_listops_how { int64_t shortest, longest, depth, arguments; uint64_t seed; };   /* shortest < length < longest */
/* Tree `number` as text with brackets; a pure function of (how, number). False: its length is outside, and the text is empty. */
bool nr_listops_draw(const struct nr_listops_how *, uint64_t number, struct nr_str *brackets, struct nr_listops *);

/* Writes basic_train.tsv, basic_val.tsv, basic_test.tsv and tokenizer.json into a folder. No expression occurs twice. watch is called
 * with the number of rows written so far. */
struct nr_listops_files {
	struct nr_listops_how how;
	int64_t count[3];
	void (*watch)(void *context, int64_t rows);
	void *context;
	int64_t drawn;                      /* out: trees */
};
int nr_listops_write(struct nr_listops_files *, const char *dir, struct nr_error *);

#endif
