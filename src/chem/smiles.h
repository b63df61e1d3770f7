/* Between the two halves of the SMILES reader: ring closures as they were met. */
#ifndef NR_SMILES_H
#define NR_SMILES_H

#include "chem/molecule.h"

struct nr_closure {
	int32_t number, atom, column;
	int32_t bond;                   /* once closed */
	int32_t next;                   /* of the same atom, in the order of the text; -1: none */
	uint8_t order, dir;
	bool loose;                     /* no order was given: aromatic between aromatic atoms, else single */
	bool backwards;                 /* '<-': the other atom gives */
};

struct nr_smiles {
	struct nr_molecule *of;
	struct nr_closure *closure;
	int32_t closures;
	int32_t *first;                 /* (atoms) the first closure of each; -1: none */
	bool *loose;                    /* (bonds) likewise for the bonds of chains */
};

int nr_smiles_read(struct nr_smiles *, struct nr_error *);
int nr_smiles_close(struct nr_smiles *, struct nr_error *);

#endif
