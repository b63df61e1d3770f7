/* Curves of metrics over steps and spectra of features, a figure for each column. */
#ifndef NR_CURVES_H
#define NR_CURVES_H

#include "report/arms.h"

/* The legend of all arms; a click hides one. */
void nr_legend(struct nr_str *, const struct nr_arms *);
/* Figures for every numeric column of metrics.csv: evaluations, what decides first, then the loss, then the rest. Returns how many. */
int nr_curves(struct nr_str *, const struct nr_arms *, struct nr_arena *);
/* Figures for spectrum.csv: singular values as parts of the largest. Returns how many. */
int nr_spectra(struct nr_str *, const struct nr_arms *, struct nr_arena *);
/* Linear probes of what leaves each block, if `norma probe --layers` was run. */
int nr_probes_by_depth(struct nr_str *, const struct nr_arms *, struct nr_arena *);

/* How a column of metrics.csv is called and drawn; title NULL: nothing is known of it. wide: by powers of ten if it spans them. noisy:
 * smoothed where it is long. rank: 0 for a share that decides, 1 for another metric that decides, then the other evaluations, the loss,
 * what was measured in training, and the rest. */
enum { NR_RANK_SHARE, NR_RANK_DECIDES, NR_RANK_EVAL, NR_RANK_LOSS, NR_RANK_TRAIN, NR_RANK_REST };
struct nr_curve_kind { const char *title, *unit; double factor; bool wide, noisy; int rank; };
struct nr_curve_kind nr_curve_kind(const char *column);

#endif
