/* The report of some runs or of a study: one HTML page that says which normalization wins, by how much, and what goes with it. */
#ifndef NR_REPORT_H
#define NR_REPORT_H

#include <time.h>

#include "base/str.h"
#include "norma/option.h"

struct nr_study_command;

struct nr_report {
	struct nr_list runs;                    /* run folders, or the folder of one study */
	const struct nr_study_command *commands;        /* that a study's stages may run: see study.h */
	const char *title;                      /* "": by the data and the model */
	const char *command;                    /* of the report itself */
	time_t made;
	const char *figures, *format;           /* NULL or a folder for the figures as files; "svg" or "pdf" */
};

/* Appends the page; what was appended before a failure is to be thrown away. */
int nr_report_page(const struct nr_report *, struct nr_str *, struct nr_error *);
/* Writes the page at once or not at all, then its figures. *figures: how many. */
int nr_report_write(const struct nr_report *, const char *path, int *figures, struct nr_error *);

#endif
