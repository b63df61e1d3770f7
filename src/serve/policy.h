/* Content security policies. Live pages have their own scripts and styles as files; the report has them inside, so its policy names
 * their sums. */
#ifndef NR_SERVE_POLICY_H
#define NR_SERVE_POLICY_H

#include "base/str.h"

extern const char nr_live_policy[];

/* For a page of norma report. Only scripts and styles that are made of files of web/ are allowed: what came into the page in
 * another way does not run. */
void nr_report_policy(struct nr_str *, const char *page);

#endif
