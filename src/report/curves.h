/* Curves of metrics over steps and spectra of features, a chart for each column. */
#ifndef NR_CURVES_H
#define NR_CURVES_H

#include "report/arms.h"

/* The legend of all arms. */
void nr_legend(struct nr_str *, const struct nr_arms *);
/* Figures for every numeric column of metrics.csv, known ones first. Returns how many. */
int nr_curves(struct nr_str *, const struct nr_arms *, struct nr_arena *);
/* Figures for spectrum.csv: singular values as parts of the largest. Returns how many. */
int nr_spectra(struct nr_str *, const struct nr_arms *, struct nr_arena *);

#endif
