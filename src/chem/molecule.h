/* A molecule as RDKit sees it after MolFromSmiles: what smiles_read.c builds and the files beside it complete, in this order:
 *   smiles_read.c      atoms and bonds of the text            smiles_close.c  ring closures, handedness of the centres
 *   hydrogens.c        [H] that are no atoms of their own      valence.c       nitro groups, dative bonds, implicit hydrogens
 *   rings.c            smallest rings                         kekule.c        lower case atoms to single and double bonds
 *   aromatic.c         electron counting in fused rings       orbitals.c      radicals, conjugation, hybridisation
 *   cip.c, stereo.c    which centres and double bonds are stereo at all
 * All memory is the arena's. */
#ifndef NR_MOLECULE_H
#define NR_MOLECULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "norma/err.h"

enum nr_bond_order { NR_BOND_ANY, NR_BOND_SINGLE, NR_BOND_DOUBLE, NR_BOND_TRIPLE, NR_BOND_QUADRUPLE, NR_BOND_AROMATIC, NR_BOND_DATIVE };
enum nr_bond_dir { NR_DIR_NONE, NR_DIR_UP, NR_DIR_DOWN };               /* '/' and '\', from the first atom to the second */
enum nr_bond_stereo { NR_STEREO_NONE, NR_STEREO_Z, NR_STEREO_E };
enum nr_chirality { NR_CHIRAL_NONE, NR_CHIRAL_CW, NR_CHIRAL_CCW, NR_CHIRAL_OTHER, NR_CHIRAL_SQUARE,
	NR_CHIRAL_BIPYRAMID, NR_CHIRAL_OCTAHEDRON };
enum nr_hybrid { NR_HYBRID_NONE, NR_HYBRID_S, NR_HYBRID_SP, NR_HYBRID_SP2, NR_HYBRID_SP3, NR_HYBRID_SP2D, NR_HYBRID_SP3D, NR_HYBRID_SP3D2 };

struct nr_atom {
	int32_t column;                 /* where it stands in the text, from 1 */
	int32_t first, degree;          /* its bonds: incident[first ..], by rising number */
	int32_t map;                    /* [C:7]; -1: none */
	int32_t charge, hydrogens;      /* hydrogens: written, or found to be needed */
	int32_t implicit, valence;      /* hydrogens that the valence adds; sum of bond orders and written hydrogens */
	uint16_t isotope;
	uint8_t number, radicals, chirality, hybrid;
	bool fixed;                     /* in brackets: takes no implicit hydrogens */
	bool aromatic, in_ring, leads;  /* leads: first of the text or after a dot */
};

struct nr_bond {
	int32_t from, to;
	uint8_t order, dir, stereo;
	uint8_t kekule;                 /* order before aromatic rings were found: 1, 2, 3 */
	bool aromatic, conjugated, in_ring;
	uint8_t smallest;               /* size of the smallest ring it is in, 255: at least so many; 0: none */
};

struct nr_ring { int32_t size; int32_t *atom, *bond; };                 /* not in walking order */

struct nr_molecule {
	struct nr_arena *arena;
	const char *text;               /* not terminated */
	int32_t length, atoms, bonds, rings, ring_room;
	struct nr_atom *atom;
	struct nr_bond *bond;
	int32_t *incident;              /* (2 bonds) */
	struct nr_ring *ring;
};

/* Longer texts and larger molecules are errors: graph models hold pairs of atoms. */
enum { NR_SMILES_LENGTH = 32768, NR_SMILES_ATOMS = 4096 };

/* What a line begins with: blanks, the SMILES (this span), a blank and a name. text may be NULL. */
struct nr_smiles_span { const char *text; size_t size; };
struct nr_smiles_span nr_smiles_span(const char *text, size_t size);
struct nr_smiles_span nr_smiles_name(const char *text, size_t size);    /* that name, without blanks around it; size 0: none */

/* Reads the span of the text. What RDKit refuses is an error, with the column. The arena is the caller's; nothing of
 * the molecule outlives it. */
int nr_molecule_read(struct nr_molecule *, struct nr_arena *, const char *text, size_t size, struct nr_error *);

/* The error of a place in the text. */
int nr_molecule_fail(const struct nr_molecule *, int32_t column, struct nr_error *, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- the stages, for nr_molecule_read ---------------------------------------------------------------------------------- */

int nr_molecule_connect(struct nr_molecule *, struct nr_error *);       /* incident, from the bonds */
int nr_hydrogens_absorb(struct nr_molecule *, struct nr_error *);
void nr_molecule_repair(struct nr_molecule *);                          /* nitro groups, azides, perchlorates, dative bonds */
int nr_valences(struct nr_molecule *, bool strict, struct nr_error *);
void nr_valence_update(struct nr_molecule *, int32_t atom);
void nr_hydrogens_settle(struct nr_molecule *);                         /* implicit hydrogens that aromatic bonds hide */
int nr_rings(struct nr_molecule *, struct nr_error *);
int nr_kekulise(struct nr_molecule *, struct nr_error *);
void nr_radicals(struct nr_molecule *);
int nr_aromaticity(struct nr_molecule *, struct nr_error *);
void nr_conjugation(struct nr_molecule *);
void nr_hybridisation(struct nr_molecule *);
int nr_stereo(struct nr_molecule *, struct nr_error *);
/* Dense ranks (atoms) by Labute's iteration; seed: what the first ranks are made of. */
int nr_cip_ranks(const struct nr_molecule *, const int64_t *seed, int32_t *rank, struct nr_error *);

/* ---- small questions ---------------------------------------------------------------------------------------------------- */

static inline int32_t nr_bond_other(const struct nr_bond *b, int32_t atom) { return b->from == atom ? b->to : b->from; }
static inline struct nr_bond *nr_bond_of(const struct nr_molecule *m, const struct nr_atom *a, int32_t i)
{
	return &m->bond[m->incident[a->first + i]];
}
static inline int32_t nr_all_hydrogens(const struct nr_atom *a) { return a->hydrogens + a->implicit; }

int32_t nr_bond_twice(const struct nr_bond *, int32_t atom);            /* twice what it adds to the valence of the atom */
int32_t nr_pi_electrons(const struct nr_molecule *, int32_t atom);      /* that the atom can give; -1: cannot take part */
bool nr_atom_like_aromatic(const struct nr_molecule *, int32_t atom);   /* marked so, or with such a bond */
/* Odd number of swaps between two orders of the same n numbers. */
bool nr_order_odd(const int32_t *a, const int32_t *b, int32_t n);

#endif
