/* The page of a study: results, beside published numbers, costs, curves, spectra, insides of the models, and how it came about. */
#ifndef NR_STUDY_PAGE_H
#define NR_STUDY_PAGE_H

#include "report/report.h"

int nr_study_page(const struct nr_report *, struct nr_str *, struct nr_arena *, struct nr_error *);

#endif
