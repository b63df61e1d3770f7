/* Zero-shot classification: a class is the mean of the texts that describe it. Radford et al. 2021, arXiv:2103.00020, section 3.1.4. */
#ifndef NR_ZEROSHOT_H
#define NR_ZEROSHOT_H

#include "base/real.h"
#include "norma/err.h"

/* Rows of length 1 in place; rows of zeros stay. */
void nr_unit_length(int64_t rows, int64_t dim, real *x);
/* Texts of class k are rows first[k] .. first[k + 1] - 1 of text (rows,dim), which are made to have length 1; out (classes,dim) gets their
 * means, of length 1. Without a row: zeros. */
void nr_zeroshot_classes(int64_t classes, int64_t dim, const int64_t *first, real *text, real *out);
/* image (n,dim), made to have length 1; scores (n,classes): cosines. NR_EMEMORY. */
int nr_zeroshot_scores(int64_t n, int64_t dim, real *image, int64_t classes, const real *of_class, real *scores, struct nr_error *);

#endif
