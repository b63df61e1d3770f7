/* The live pages as HTML. The caller has the lock. */
#ifndef NR_SERVE_PAGES_H
#define NR_SERVE_PAGES_H

#include "serve/entry.h"

void nr_page_index(struct nr_str *, const struct nr_catalogue *);
void nr_page_entry(struct nr_str *, const struct nr_served *);
/* A short one: what is wrong and the way back. */
void nr_page_note(struct nr_str *, const char *title, const char *text);
/* An entry's state as an event's JSON. */
void nr_status_json(struct nr_str *, const struct nr_served *);

#endif
