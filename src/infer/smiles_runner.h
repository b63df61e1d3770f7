/* SMILES in, what a model of graphs says of each out. Public: nr_molecule_runner of norma/infer.h. */
#ifndef NR_SMILES_RUNNER_H
#define NR_SMILES_RUNNER_H

#include "chem/molecule.h"
#include "norma/infer.h"

/* As nr_molecule_runner_run, for lines that need not end with a zero. */
int nr_molecule_runner_lines(struct nr_molecule_runner *, const struct nr_smiles_span *line, int64_t n, double *out, struct nr_error *);

#endif
