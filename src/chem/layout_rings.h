/* Between the files that lay out ring systems. */
#ifndef NR_LAYOUT_RINGS_H
#define NR_LAYOUT_RINGS_H

#include "chem/layout.h"

struct nr_cycle { int32_t size, system; int32_t *atom; bool placed, dropped; };    /* atoms in walking order */
struct nr_ring_layout {
	const struct nr_molecule *m;
	struct nr_place *at;
	int32_t *system;
	bool *placed;
	struct nr_cycle *cycle;
	int32_t cycles;
	int32_t *mark;                  /* (atoms) room: number of times it was met */
	struct nr_arena *arena;
};

double nr_ring_radius(int32_t size);                            /* of a regular polygon with sides of 1 */
int32_t nr_rings_bond(const struct nr_molecule *, int32_t atom, int32_t other);         /* between two atoms; -1: none */
/* The atoms of a ring in order; false: it is no cycle. */
bool nr_rings_walk(const struct nr_molecule *, const struct nr_ring *, int32_t *mark, int32_t *atom);
int32_t nr_rings_shared(const struct nr_ring_layout *, const struct nr_cycle *, const struct nr_cycle *);     /* atoms of both */
void nr_rings_merge(const struct nr_ring_layout *);             /* bridged cycles become their outline */
/* A cage whose bridges cross is drawn from inside of one of its rings, if that looks better. */
void nr_rings_open_cage(struct nr_ring_layout *, int32_t system, const int32_t *atom, int32_t count);

#endif
