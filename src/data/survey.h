/* A first look at somebody's own pictures: which can be read, whether they have one size, and mean and standard deviation of the
 * training pictures. It is kept below the data root and holds until a file is added, removed or changed. */
#ifndef NR_SURVEY_H
#define NR_SURVEY_H

#include "norma/data.h"

/* Fills mean, std, h and w of a source made of nr_listed_add. Pictures that cannot be read are an error that names them all, or with
 * `skip` leave the list; *left_out says how many. All pictures are decoded, of more than 20,000 that many spread evenly, unless `skip`
 * needs to know of each. */
int nr_survey(struct nr_source *, const char *root, bool skip, int64_t *left_out, struct nr_error *);

#endif
