/* Putting a molecule together in the plane: see layout.h. It grows from its largest ring system, or from the end of its longest chain. */
#include "chem/layout.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct growing {
	const struct nr_molecule *m;
	struct nr_place *at, *ring;             /* ring: places within the atom's system */
	int32_t *system, *queue, *stack, *zig;  /* zig: which way the chain turned at the atom before, 1 or -1 */
	int32_t *weight;                        /* (rings) atoms of a system */
	int32_t *size;                          /* (2 bonds) atoms beyond a bond: towards `to`, towards `from`; 0: not counted yet */
	bool *placed, *met;
	int32_t head, tail;
};

static int32_t neighbour(const struct nr_molecule *m, int32_t atom, int32_t i) { return nr_bond_other(nr_bond_of(m,
	&m->atom[atom], i), atom); }

/* How many atoms hang on the bond from one atom to the next. */
static int32_t beyond(const struct growing *g, int32_t from, int32_t i)
{
	const int32_t number = g->m->incident[g->m->atom[from].first + i], first = neighbour(g->m, from, i);
	int32_t *known = &g->size[2 * number + (g->m->bond[number].from == from ? 0 : 1)], top = 0, count = 0;
	if (*known > 0) return *known;
	memset(g->met, 0, (size_t)g->m->atoms * sizeof *g->met);
	g->met[from] = g->met[first] = true;
	g->stack[top++] = first;
	while (top) {
		const int32_t a = g->stack[--top];
		count++;
		for (int32_t k = 0; k < g->m->atom[a].degree; k++) {
			const int32_t b = neighbour(g->m, a, k);
			if (!g->met[b]) g->met[b] = true, g->stack[top++] = b;
		}
	}
	return *known = count;
}

static bool is_straight(const struct nr_molecule *m, int32_t atom)
{
	int32_t doubles = 0, triples = 0;
	const struct nr_atom *a = &m->atom[atom];
	for (int32_t i = 0; i < a->degree; i++) {
		const uint8_t order = nr_bond_of(m, a, i)->kekule;
		doubles += order == 2;
		triples += order >= 3;
	}
	return a->degree == 2 && (triples || doubles == 2);
}

/* ---- double bonds ------------------------------------------------------------------------------------------------------- */

/* A neighbour of an end of a double bond whose bond says up or down, as seen from that end; -1: none does. */
static int32_t marked(const struct nr_molecule *m, int32_t atom, const struct nr_bond *dbl, bool *up)
{
	const struct nr_atom *a = &m->atom[atom];
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, a, i);
		if (b == dbl || !b->dir) continue;
		*up = (b->dir == NR_DIR_UP) == (b->from == atom);
		return nr_bond_other(b, atom);
	}
	return -1;
}

/* The side on which a child of the atom has to lie, seen along the double bond that leads to it: 1 left, -1 right, 0 either. */
static int wanted_side(const struct growing *g, int32_t before, int32_t atom, int32_t child)
{
	const struct nr_molecule *m = g->m;
	const struct nr_bond *dbl = NULL;
	bool there = false, here = false;
	for (int32_t i = 0; i < m->atom[atom].degree; i++)
		if (neighbour(m, atom, i) == before) dbl = nr_bond_of(m, &m->atom[atom], i);
	if (!dbl || !dbl->stereo) return 0;
	int32_t x = marked(m, before, dbl, &there);
	const int32_t y = marked(m, atom, dbl, &here);
	if (x < 0 || y < 0) return 0;
	for (int32_t i = 0; i < m->atom[before].degree && !g->placed[x]; i++) {         /* the other one lies on the other side */
		const int32_t other = neighbour(m, before, i);
		if (other != atom && g->placed[other]) x = other, there = !there;
	}
	if (!g->placed[x]) return 0;
	const double cross = nr_place_cross(nr_place_from(g->at[before], g->at[atom]), nr_place_from(g->at[before], g->at[x]));
	const int side = (cross > 0 ? 1 : -1) * (there == here ? 1 : -1);
	return y == child ? side : -side;
}

/* ---- growing ------------------------------------------------------------------------------------------------------------ */

static void put(struct growing *g, int32_t atom, struct nr_place p)
{
	g->at[atom] = p;
	assert(!g->placed[atom]);                       /* once each: the queue has room for no more */
	g->placed[atom] = true;
	g->queue[g->tail++] = atom;
}

static int32_t outside(const struct growing *g, int32_t atom)
{
	int32_t n = 0;
	for (int32_t i = 0; i < g->m->atom[atom].degree; i++) n += g->system[neighbour(g->m, atom, i)] != g->system[atom];
	return n;
}

/* The system of an atom that lies at p and whose parent lies in the direction `back`. Behind a double bond that is marked the system
 * may have to be turned over. */
static void put_system(struct growing *g, int32_t before, int32_t atom, struct nr_place p, double back)
{
	const struct nr_place along = { -cos(back), -sin(back) };
	struct nr_place near[16];
	int32_t n = 0;
	double wide;
	for (int32_t i = 0; i < g->m->atom[atom].degree && n < 16; i++) {
		const int32_t b = neighbour(g->m, atom, i);
		if (g->system[b] == g->system[atom]) near[n++] = nr_place_from(g->ring[atom], g->ring[b]);
	}
	/* several substituents share the free angle */
	const double gap = nr_layout_gap(near, n, &wide), out = gap - wide / 2 + wide / (outside(g, atom) + 1);
	bool over = false;
	g->at[atom] = p;                                /* wanted_side looks along the bond */
	for (int32_t i = 0; i < g->m->atom[atom].degree; i++) {
		const int32_t b = neighbour(g->m, atom, i);
		if (g->system[b] != g->system[atom]) continue;
		const struct nr_place v = nr_place_turned(nr_place_from(g->ring[atom], g->ring[b]), back - out);
		over |= wanted_side(g, before, atom, b) * nr_place_cross(along, v) < 0;
	}
	for (int32_t i = 0; i < g->m->atoms; i++) {
		if (g->system[i] != g->system[atom]) continue;
		struct nr_place v = nr_place_turned(nr_place_from(g->ring[atom], g->ring[i]), back - out);
		const double dot = v.x * along.x + v.y * along.y;
		if (over) v = (struct nr_place){ 2 * dot * along.x - v.x, 2 * dot * along.y - v.y };
		put(g, i, nr_place_sum(p, v));
	}
}

static void put_child(struct growing *g, int32_t atom, int32_t child, double angle, int32_t zig)
{
	if (g->placed[child]) return;                   /* with the system of a child before: dative bonds close no ring */
	const struct nr_place p = nr_place_sum(g->at[atom], (struct nr_place){ cos(angle), sin(angle) });
	g->zig[child] = zig;
	if (g->system[child] >= 0) put_system(g, atom, child, p, angle + M_PI);
	else put(g, child, p);
}

/* One placed neighbour in the direction `back`: a chain goes on. */
static void grow_chain(struct growing *g, int32_t atom, int32_t before, double back, const int32_t *child, int32_t n)
{
	const int32_t zig = g->zig[atom] > 0 ? -1 : 1;
	if (n == 1 && is_straight(g->m, atom)) {
		put_child(g, atom, child[0], back + M_PI, g->zig[atom]);
	} else if (n <= 2) {
		/* seen along the chain, a turn by -120 degrees from the way back goes to the left */
		const int side = wanted_side(g, before, atom, child[0]), first = side ? -side : zig;
		put_child(g, atom, child[0], back + first * 2 * M_PI / 3, first);
		if (n == 2) put_child(g, atom, child[1], back - first * 2 * M_PI / 3, -first);
	} else if (n == 3) {
		put_child(g, atom, child[0], back + M_PI, zig);
		put_child(g, atom, child[1], back + M_PI / 2, 1);
		put_child(g, atom, child[2], back - M_PI / 2, -1);
	} else {
		for (int32_t i = 0; i < n; i++) put_child(g, atom, child[i], back + 2 * M_PI * (i + 1) / (n + 1), i % 2 ? 1 : -1);
	}
}

static void grow(struct growing *g, int32_t atom)
{
	const struct nr_atom *a = &g->m->atom[atom];
	struct nr_place near[16];
	int32_t child[16], weight[16], n = 0, there = 0, before = -1;
	double wide;
	for (int32_t i = 0; i < a->degree; i++) {
		const int32_t b = neighbour(g->m, atom, i);
		if (g->placed[b]) {
			if (there < 16) near[there++] = nr_place_from(g->at[atom], g->at[b]), before = b;
		} else if (n < 16) {
			const int32_t size = beyond(g, atom, i);
			int32_t k = n++;                        /* the largest first */
			for (; k && weight[k - 1] < size; k--) weight[k] = weight[k - 1], child[k] = child[k - 1];
			weight[k] = size;
			child[k] = b;
		}
	}
	if (!n) return;
	if (there == 1) {
		grow_chain(g, atom, before, atan2(near[0].y, near[0].x), child, n);
		return;
	}
	const double gap = nr_layout_gap(near, there, &wide);
	const bool bent = !there && n == 2 && !is_straight(g->m, atom);
	for (int32_t i = 0; i < n; i++) {
		const double angle = there ? gap - wide / 2 + wide * (i + 1) / (n + 1) : bent
			? M_PI / 6 + i * 2 * M_PI / 3 : M_PI / 6 + 2 * M_PI * i / n;
		put_child(g, atom, child[i], angle, i % 2 ? 1 : -1);
	}
}

/* The atom of the component of `start` to begin with. */
static int32_t root_of(struct growing *g, int32_t start)
{
	int32_t best = start, most = 0;
	for (int round = 0; round < 2; round++) {               /* the last atom of a search from the last atom of a search */
		int32_t head = 0, tail = 0;
		memset(g->met, 0, (size_t)g->m->atoms * sizeof *g->met);
		g->met[best] = true;
		g->stack[tail++] = best;
		while (head < tail) {
			const int32_t a = g->stack[head++];
			for (int32_t i = 0; i < g->m->atom[a].degree; i++) {
				const int32_t b = neighbour(g->m, a, i);
				if (!g->met[b]) g->met[b] = true, g->stack[tail++] = b;
			}
		}
		best = g->stack[tail - 1];
		for (int32_t i = 0; i < tail && !round; i++) {          /* the first atom of the largest system */
			const int32_t system = g->system[g->stack[i]];
			if (system < 0 || g->weight[system] <= most) continue;
			most = g->weight[system], start = g->stack[i];
		}
	}
	return most ? start : best;
}

/* ---- the whole ---------------------------------------------------------------------------------------------------------- */

/* The long way lies, and as many bonds as possible point to 1, 3, 5, ... o'clock: hexagons stand on a corner. */
static void lie_down(const struct nr_molecule *m, struct nr_place *at, const int32_t *atom, int32_t n)
{
	struct nr_place middle = { 0, 0 };
	double xx = 0, yy = 0, xy = 0, c = 0, s = 0;
	for (int32_t i = 0; i < n; i++) middle = nr_place_sum(middle, nr_place_times(at[atom[i]], 1.0 / n));
	for (int32_t i = 0; i < n; i++) {
		const struct nr_place p = nr_place_from(middle, at[atom[i]]);
		xx += p.x * p.x, yy += p.y * p.y, xy += p.x * p.y;
		for (int32_t k = 0; k < m->atom[atom[i]].degree; k++) {
			const struct nr_place d = nr_place_from(at[atom[i]], at[neighbour(m, atom[i], k)]);
			const double angle = 6 * atan2(d.y, d.x);
			c += cos(angle), s += sin(angle);
		}
	}
	const double lie = n > 1 ? -.5 * atan2(2 * xy, xx - yy) : 0, phase = n > 1 ? atan2(s, c) / 6 : 0;
	/* bonds at phase + turn have to be 30 degrees off the multiples of 60 */
	const double turn = phase + lie - M_PI / 6, off = turn - M_PI / 3 * floor(turn / (M_PI / 3) + .5);
	for (int32_t i = 0; i < n; i++) at[atom[i]] = nr_place_turned(nr_place_from(middle, at[atom[i]]), lie - off);
}

/* Components stand beside each other, their middles on one line. */
static void set_beside(struct nr_place *at, const int32_t *atom, int32_t n, double apart, double *right)
{
	double left = INFINITY, most = -INFINITY, low = INFINITY, high = -INFINITY;
	for (int32_t i = 0; i < n; i++) {
		left = fmin(left, at[atom[i]].x), most = fmax(most, at[atom[i]].x);
		low = fmin(low, at[atom[i]].y), high = fmax(high, at[atom[i]].y);
	}
	const double shift = isfinite(*right) ? *right + apart - left : -left;
	for (int32_t i = 0; i < n; i++) at[atom[i]] = nr_place_sum(at[atom[i]], (struct nr_place){ shift, -(low + high) / 2 });
	*right = most + shift;
}

static int grow_all(struct growing *g, struct nr_arena *arena, struct nr_error *err)
{
	double right = -INFINITY;
	const struct nr_molecule *m = g->m;
	int32_t *first = nr_arena_alloc(arena, (size_t)(m->atoms + 1) * sizeof *first), parts = 0;
	if (!first) return nr_fail(err, NR_EMEMORY, "cannot draw molecule", NULL, "out of memory");
	for (int32_t i = 0; i < m->atoms; i++) {
		if (g->placed[i]) continue;
		/* what an atom has no room for is a part of its own */
		const int32_t far = root_of(g, i), root = g->placed[far] ? i : far;
		first[parts++] = g->tail;
		if (g->system[root] < 0) put(g, root, (struct nr_place){ 0, 0 });
		else
			for (int32_t k = 0; k < m->atoms; k++)
				if (g->system[k] == g->system[root]) put(g, k, g->ring[k]);
		while (g->head < g->tail) grow(g, g->queue[g->head++]);
	}
	first[parts] = g->tail;
	for (int32_t p = 0; p < parts; p++) set_beside(g->at, g->queue + first[p], first[p + 1] - first[p], 9, &right);
	if (nr_layout_clear(m, g->at, arena, err)) return err->code;
	right = -INFINITY;
	for (int32_t p = 0; p < parts; p++) {
		lie_down(m, g->at, g->queue + first[p], first[p + 1] - first[p]);
		set_beside(g->at, g->queue + first[p], first[p + 1] - first[p], 1.5, &right);
	}
	return NR_OK;
}

int nr_molecule_layout(struct nr_layout *l, const struct nr_molecule *m, struct nr_arena *arena, struct nr_error *err)
{
	const size_t n = (size_t)m->atoms + 1, bonds = (size_t)m->bonds + 1;
	struct growing g = { .m = m, .at = nr_arena_alloc(arena, n * sizeof *g.at), .ring = nr_arena_alloc(arena, n * sizeof *g.ring),
		.system = nr_arena_alloc(arena, n * sizeof *g.system), .queue = nr_arena_alloc(arena, n * sizeof *g.queue),
		.stack = nr_arena_alloc(arena, n * sizeof *g.stack), .zig = nr_arena_alloc(arena, n * sizeof *g.zig),
		.size = nr_arena_alloc(arena, 2 * bonds * sizeof *g.size), .placed = nr_arena_alloc(arena, n * sizeof *g.placed),
		.met = nr_arena_alloc(arena, n * sizeof *g.met),
		.weight = nr_arena_alloc(arena, ((size_t)m->rings + 1) * sizeof *g.weight) };
	*l = (struct nr_layout){ .at = g.at, .wedge = nr_arena_alloc(arena, bonds * sizeof *l->wedge),
		.narrow = nr_arena_alloc(arena, bonds * sizeof *l->narrow) };
	if (!g.at || !g.ring || !g.system || !g.queue || !g.stack || !g.zig || !g.size || !g.placed || !g.met || !g.weight || !l->wedge ||
		!l->narrow)
		return nr_fail(err, NR_EMEMORY, "cannot draw molecule", NULL, "out of memory");
	if (nr_layout_rings(m, g.system, g.ring, arena, err)) return err->code;
	for (int32_t i = 0; i < m->atoms; i++)
		if (g.system[i] >= 0) g.weight[g.system[i]]++;
	if (grow_all(&g, arena, err)) return err->code;
	return nr_layout_wedges(l, m, arena, err);
}
