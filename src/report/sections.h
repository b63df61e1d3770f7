/* Sections that the page of runs and that of a study share. */
#ifndef NR_SECTIONS_H
#define NR_SECTIONS_H

#include "report/arms.h"

/* Every metric over steps. id: of the section. */
void nr_section_curves(struct nr_str *, const struct nr_arms *, const char *id, const char *title, struct nr_arena *);
/* said: also if there is nothing. */
void nr_section_spectra(struct nr_str *, const struct nr_arms *, bool said, struct nr_arena *);
void nr_section_pictures(struct nr_str *, const struct nr_arms *, bool said, struct nr_arena *);

#endif
