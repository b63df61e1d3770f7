/* The tasks of VTAB-1k; see vtab.c for how their files are found. */
#ifndef NR_VTAB_H
#define NR_VTAB_H

#include "norma/data.h"

enum nr_vtab_group { NR_VTAB_NATURAL, NR_VTAB_SPECIALIZED, NR_VTAB_STRUCTURED, NR_VTAB_GROUPS };
struct nr_vtab_task {
	enum nr_vtab_group group;
	const char *id, *title, *folder;
	int32_t classes;
	int64_t test;                       /* samples of the whole test split */
	const char *of, *page;              /* see vtab.def */
};
extern const struct nr_vtab_task nr_vtab_tasks[];       /* ends with a NULL id */
const char *nr_vtab_group_name(enum nr_vtab_group);
/* What was opened as "vtab:...": are the samples and splits those of the benchmark, and how were they found? */
struct nr_vtab_origin {
	bool published;                     /* the lists of files that others use; else drawn here */
	bool partial;                       /* fewer samples than the benchmark has: no part of its means */
};
struct nr_vtab_origin nr_vtab_origin(const struct nr_source *);

#endif
