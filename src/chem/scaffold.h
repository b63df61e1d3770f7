/* Bemis-Murcko scaffolds (J. Med. Chem. 1996, 39, 2887): rings and what links them, as a number that is the same for the same one. */
#ifndef NR_SCAFFOLD_H
#define NR_SCAFFOLD_H

#include "chem/molecule.h"

/* 0: there are no rings. Atoms with a double bond to the scaffold belong to it, as RDKit has it; charges, isotopes and stereochemistry
 * do not count. */
int nr_scaffold(const struct nr_molecule *, struct nr_arena *, uint64_t *key, struct nr_error *);

#endif
