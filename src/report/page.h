/* The frame of a page: head, style for light, dark and print, and the scripts that draw curves. Nothing is fetched: a policy in the
 * head forbids it. */
#ifndef NR_PAGE_H
#define NR_PAGE_H

#include "base/str.h"

void nr_page_open(struct nr_str *, const char *title);
void nr_page_close(struct nr_str *);

#endif
