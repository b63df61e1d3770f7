/* A molecule in the plane, as chemists draw it: rings are regular polygons, chains zigzag at 120 degrees, substituents point away. What
 * then lies on top of each other is turned over bonds until it does not, and moved apart if no turn helps. Bonds are 1 long,
 * y points up, and the same molecule gets the same bits. */
#ifndef NR_LAYOUT_H
#define NR_LAYOUT_H

#include "chem/molecule.h"

struct nr_place { double x, y; };
enum nr_wedge { NR_WEDGE_NONE, NR_WEDGE_UP, NR_WEDGE_DOWN };    /* the wide end is nearer to the reader, or farther */

struct nr_layout {
	struct nr_place *at;            /* (atoms) */
	uint8_t *wedge;                 /* (bonds) enum nr_wedge */
	int32_t *narrow;                /* (bonds) the centre that a wedge begins at */
};

/* All memory is the arena's. Every place is finite, whatever the molecule. */
int nr_molecule_layout(struct nr_layout *, const struct nr_molecule *, struct nr_arena *, struct nr_error *);

/* What a reader sees of a layout: pairs of atoms nearer than `least`, bonds that cross, the shortest and the longest bond. */
struct nr_layout_faults { int32_t close, crossed; double nearest, shortest, longest; };
struct nr_layout_faults nr_layout_faults(const struct nr_layout *, const struct nr_molecule *, double least);

/* ---- between the files of the layout ------------------------------------------------------------------------------------ */

static inline struct nr_place nr_place_sum(struct nr_place a, struct nr_place b) { return (struct nr_place){ a.x + b.x, a.y + b.y }; }
static inline struct nr_place nr_place_from(struct nr_place a, struct nr_place b) { return (struct nr_place){ b.x - a.x, b.y - a.y }; }
static inline struct nr_place nr_place_times(struct nr_place a, double s) { return (struct nr_place){ s * a.x, s * a.y }; }
static inline double nr_place_cross(struct nr_place a, struct nr_place b) { return a.x * b.y - a.y * b.x; }
double nr_place_length(struct nr_place);
struct nr_place nr_place_unit(struct nr_place);                 /* any direction for one of no length */
struct nr_place nr_place_turned(struct nr_place, double angle); /* counter-clockwise */

/* Rings that share an atom are one system: its number for each atom (-1: none), and places with an origin of their own. */
int nr_layout_rings(const struct nr_molecule *, int32_t *system, struct nr_place *at, struct nr_arena *, struct nr_error *);
/* The middle of the widest free angle about an atom whose placed neighbours lie in these n directions, and how wide it is. */
double nr_layout_gap(const struct nr_place *direction, int32_t n, double *wide);
/* Do two bonds that share no atom cross? */
bool nr_layout_crossed(const struct nr_molecule *, const struct nr_place *at, int32_t bond, int32_t other);
/* Pushes atoms apart and pulls bonds back to their length, some steps. which NULL: all. */
void nr_layout_relax(const struct nr_molecule *, struct nr_place *at, const int32_t *which, int32_t count, int steps);
/* Turns parts over bonds until nothing lies upon each other, if that can be had; relaxes what is left. */
int nr_layout_clear(const struct nr_molecule *, struct nr_place *at, struct nr_arena *, struct nr_error *);
/* Which bond of each centre becomes a wedge, and which way. */
int nr_layout_wedges(struct nr_layout *, const struct nr_molecule *, struct nr_arena *, struct nr_error *);

#endif
