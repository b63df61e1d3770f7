/* Molecules as structural formulas: layout (chem/layout.h) and drawing (draw/structure.h) of what a SMILES says. */
#ifndef NR_DEPICT_H
#define NR_DEPICT_H

#include "base/mem.h"
#include "chem/molecule.h"
#include "draw/sheet.h"

/* Appends the drawing, at most w x h pixels (0: as large as it needs to be), named `name` (NULL: the SMILES). Aromatic rings have
 * alternating double bonds. The arena is used and left as it was. A text that is no molecule is an error with its column. */
int nr_depict(struct nr_str *, const char *smiles, size_t size, const char *name, struct nr_size most, struct nr_size *drawn,
	struct nr_arena *, struct nr_error *);

/* Formula `number` of a sheet, from 0 on, four in a row. A failure leaves the sheet as it was. */
int nr_depict_on_sheet(struct nr_sheet *, int64_t number, const char *smiles, size_t size, const char *title, struct nr_arena *,
	struct nr_error *);

#endif
