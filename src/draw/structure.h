/* Structural formulas: atoms that have a place, and the bonds between them. Carbon is a corner without a letter; the others have their
 * symbol with hydrogens, charge and isotope, in a colour of the palette for the common ones. */
#ifndef NR_STRUCTURE_H
#define NR_STRUCTURE_H

#include "draw/svg.h"

enum nr_structure_bond_kind { NR_DRAW_SINGLE = 1, NR_DRAW_DOUBLE, NR_DRAW_TRIPLE, NR_DRAW_UP, NR_DRAW_DOWN, NR_DRAW_DATIVE };

struct nr_structure_atom {
	double x, y;                            /* y up */
	const char *symbol;                     /* NULL: a corner */
	int32_t hydrogens, charge, isotope;     /* isotope 0: none is told */
	int32_t radicals;
};
struct nr_structure_bond {
	int32_t from, to;                       /* a wedge is narrow at the first */
	enum nr_structure_bond_kind kind;
	int side;                               /* of the second line of a double bond, seen from `from`: 1 left, -1 right, 0 both */
};
struct nr_structure {
	const char *name;                       /* for readers who do not see it, and under the pointer */
	const struct nr_structure_atom *atom;
	const struct nr_structure_bond *bond;
	int32_t atoms, bonds;
	double most_w, most_h;                  /* pixels it may take; 0: as many as it needs */
};
/* A bond is 26 pixels long, or less if the drawing would be larger than it may. */
struct nr_size nr_svg_structure(struct nr_str *, const struct nr_structure *);

#endif
