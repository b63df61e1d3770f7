/* The figures of a page as files for papers: the page is read back, so nothing that it shows is left out. */
#ifndef NR_FIGURE_FILES_H
#define NR_FIGURE_FILES_H

#include <stddef.h>

#include "norma/err.h"

/* Writes dir/SECTION-TITLE.FORMAT for every <figure> of the page, and dir/captions.txt with their titles and captions. format: "svg"
 * or "pdf". *count: how many. */
int nr_figure_files(const char *page, const char *dir, const char *format, int *count, struct nr_error *);

#endif
