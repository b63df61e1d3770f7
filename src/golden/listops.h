/* Reference files of ListOps, listops*.tsv: Source, Target, Flat, Length. */
#ifndef GOLDEN_LISTOPS_H
#define GOLDEN_LISTOPS_H

#include "golden/check.h"

bool golden_is_listops(const char *path);
void golden_listops(struct golden_case *);

#endif
