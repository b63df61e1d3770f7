/* The report of some runs: one HTML page that says which normalization wins, by how much, and what goes with it. */
#ifndef NR_REPORT_H
#define NR_REPORT_H

#include <time.h>

#include "base/str.h"
#include "norma/option.h"

struct nr_report {
	struct nr_list runs;                    /* run folders */
	const char *title;                      /* "": by the data and the model */
	const char *command;                    /* of the report itself */
	time_t made;
};

/* The page as text, added to the string. */
int nr_report_page(const struct nr_report *, struct nr_str *, struct nr_error *);
/* Writes the page at once or not at all. */
int nr_report_write(const struct nr_report *, const char *path, struct nr_error *);

#endif
