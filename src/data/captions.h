/* Pictures with captions: what a task can ask of such a source beside texts and pictures. */
#ifndef NR_CAPTIONS_H
#define NR_CAPTIONS_H

#include "data/prompts.h"
#include "norma/data.h"

/* The texts that its classes are described with; NULL: captions are given, there are no classes, or it is no such source. */
const struct nr_prompts *nr_captions_prompts(const struct nr_source *);
/* Text that says which pictures these are, for a name of what was made from them. */
const char *nr_captions_text(const struct nr_source *);

#endif
