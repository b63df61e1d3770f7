/* Sets of molecules without a split of their own get one. */
#ifndef NR_MOLECULES_SPLIT_H
#define NR_MOLECULES_SPLIT_H

#include "data/molecules.h"

/* Shares of 1 for validation and test. At random: by a hash of the SMILES, so that a molecule stays where it is when others are added, and
 * is in one split only. */
int nr_molecules_split_random(struct nr_molecules *, double val, double test, struct nr_error *);
/* By scaffold: the most frequent ones go to train, then to val, then to test, as in DeepChem and OGB; one scaffold is in one split. */
int nr_molecules_split_scaffold(struct nr_molecules *, double val, double test, struct nr_error *);

#endif
