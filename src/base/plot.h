/* A curve drawn with Braille characters, eight dots each:
 *
 *   2.31 ┤⢣⡀
 *        │ ⠑⠤⣀
 *   0.31 ┤    ⠉⠉⠒⠒⠤⠤⠤
 *        0        900 */
#ifndef NR_PLOT_H
#define NR_PLOT_H

#include <stdint.h>

struct nr_str;

/* Points by rising x, joined by lines; one that is not finite is left out and breaks the line. columns and rows are those of
 * the drawing without its scale; nothing is drawn if no point is finite. */
struct nr_plot { const int64_t *x; const double *y; int64_t n; int columns, rows; };
void nr_plot_text(const struct nr_plot *, struct nr_str *);

#endif
