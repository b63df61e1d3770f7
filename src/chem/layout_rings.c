/* Ring systems in the plane: see layout.h. One ring is a regular polygon; each further one is put onto the bond or the atom that it
 * shares with what is there. Of rings that share more than a bond (bridged ones) the outline is the polygon, and the bridge
 * runs through its inside. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/layout_rings.h"

double nr_place_length(struct nr_place a) { return sqrt(a.x * a.x + a.y * a.y); }

struct nr_place nr_place_unit(struct nr_place a)
{
	const double n = nr_place_length(a);
	return n > 1e-9 ? nr_place_times(a, 1 / n) : (struct nr_place){ 1, 0 };
}

struct nr_place nr_place_turned(struct nr_place a, double angle)
{
	const double c = cos(angle), s = sin(angle);
	return (struct nr_place){ c * a.x - s * a.y, s * a.x + c * a.y };
}

double nr_layout_gap(const struct nr_place *direction, int32_t n, double *wide)
{
	double best = 0, widest = -1;
	for (int32_t i = 0; i < n; i++) {
		const double from = atan2(direction[i].y, direction[i].x);
		double gap = 2 * M_PI;
		for (int32_t k = 0; k < n; k++) {
			double to = atan2(direction[k].y, direction[k].x) - from;
			while (to < 1e-9) to += 2 * M_PI;
			if (k != i && to < gap) gap = to;
		}
		if (gap > widest + 1e-9) widest = gap, best = from + gap / 2;
	}
	*wide = n ? widest : 2 * M_PI;
	return best;
}

/* ---- one ring after the other ------------------------------------------------------------------------------------------- */

static void put(struct nr_ring_layout *s, int32_t atom, struct nr_place p)
{
	s->at[atom] = p;
	s->placed[atom] = true;
}

static void place_first(struct nr_ring_layout *s, struct nr_cycle *c)
{
	const double r = nr_ring_radius(c->size);
	for (int32_t i = 0; i < c->size; i++)
		put(s, c->atom[i], nr_place_turned((struct nr_place){ 0, r }, -2 * M_PI * i / c->size));
	c->placed = true;
}

/* Directions to the placed neighbours of an atom. */
static int32_t directions(const struct nr_ring_layout *s, int32_t atom, struct nr_place *out, int32_t most)
{
	int32_t n = 0;
	const struct nr_atom *a = &s->m->atom[atom];
	for (int32_t i = 0; i < a->degree && n < most; i++) {
		const int32_t other = nr_bond_other(nr_bond_of(s->m, a, i), atom);
		if (s->placed[other] && s->system[other] == s->system[atom]) out[n++] = nr_place_from(s->at[atom], s->at[other]);
	}
	return n;
}

/* A ring that shares one atom: on the side where there is room. */
static void place_spiro(struct nr_ring_layout *s, struct nr_cycle *c, int32_t start)
{
	struct nr_place near[8];
	double wide;
	const int32_t n = directions(s, c->atom[start], near, 8);
	const double angle = nr_layout_gap(near, n, &wide), r = nr_ring_radius(c->size);
	const struct nr_place out = { cos(angle), sin(angle) }, corner = s->at[c->atom[start]];
	const struct nr_place middle = nr_place_sum(corner, nr_place_times(out, r));
	for (int32_t i = 1; i < c->size; i++)
		put(s, c->atom[(start + i) % c->size],
			nr_place_sum(middle, nr_place_turned(nr_place_times(out, -r), 2 * M_PI * i / c->size)));
}

/* The angle that each of n bonds of length 1 turns through so that both ends are so far from each other. */
static double arc_angle(int32_t n, double apart)
{
	double low = 1e-6, high = 2 * M_PI / n - 1e-9;
	for (int i = 0; i < 60; i++) {
		const double a = (low + high) / 2;
		if (sin(n * a / 2) / sin(a / 2) > apart) low = a;
		else high = a;
	}
	return (low + high) / 2;
}

/* count atoms of the cycle after `from`, between it and `to`, on an arc away from the side that `away` lies on. */
static void place_arc(struct nr_ring_layout *s, const struct nr_cycle *c, int32_t from, int32_t count, struct nr_place away)
{
	const struct nr_place a = s->at[c->atom[from]], b = s->at[c->atom[(from + count + 1) % c->size]];
	const struct nr_place chord = nr_place_from(a, b);
	const double apart = nr_place_length(chord), side = nr_place_cross(chord, nr_place_from(a, away)) > 0 ? -1 : 1;
	if (apart > count + .999 || apart < 1e-6) {
		for (int32_t i = 1; i <= count; i++)
			put(s, c->atom[(from + i) % c->size], nr_place_sum(a, nr_place_times(chord, (double)i / (count + 1))));
		return;
	}
	const double angle = arc_angle(count + 1, apart);
	struct nr_place now = a, step = nr_place_turned(nr_place_unit(chord), side * angle * count / 2);
	for (int32_t i = 1; i <= count; i++) {
		now = nr_place_sum(now, step);
		put(s, c->atom[(from + i) % c->size], now);
		step = nr_place_turned(step, -side * angle);
	}
}

/* Where the neighbours of both ends of a shared bond lie, on average. */
static struct nr_place beside(const struct nr_ring_layout *s, const struct nr_cycle *c, int32_t a, int32_t b)
{
	const int32_t ends[2] = { a, b };
	struct nr_place sum = { 0, 0 };
	int32_t n = 0;
	for (int k = 0; k < 2; k++) {
		const struct nr_atom *atom = &s->m->atom[ends[k]];
		for (int32_t i = 0; i < atom->degree; i++) {
			const int32_t other = nr_bond_other(nr_bond_of(s->m, atom, i), ends[k]);
			if (other == a || other == b || !s->placed[other] || s->system[other] != c->system) continue;
			sum = nr_place_sum(sum, s->at[other]);
			n++;
		}
	}
	return n ? nr_place_times(sum, 1.0 / n) : sum;
}

static int32_t count_placed(const struct nr_ring_layout *s, const struct nr_cycle *c)
{
	int32_t n = 0;
	for (int32_t i = 0; i < c->size; i++) n += s->placed[c->atom[i]];
	return n;
}

static void place_next(struct nr_ring_layout *s, struct nr_cycle *c)
{
	const int32_t there = count_placed(s, c);
	struct nr_place middle = { 0, 0 };
	int32_t last = -1;
	for (int32_t i = 0; i < c->size; i++)
		if (s->placed[c->atom[i]]) middle = nr_place_sum(middle, nr_place_times(s->at[c->atom[i]], 1.0 / there)), last = i;
	c->placed = true;
	if (there == 1) {
		place_spiro(s, c, last);
		return;
	}
	bool known[64];
	for (int32_t i = 0; i < c->size && i < 64; i++) known[i] = s->placed[c->atom[i]];
	for (int32_t i = 0; i < c->size && c->size <= 64; i++) {       /* every gap between atoms that were there before */
		int32_t count = 0;
		if (!known[i] || known[(i + 1) % c->size]) continue;
		while (!known[(i + 1 + count) % c->size]) count++;
		const int32_t to = c->atom[(i + count + 1) % c->size];
		place_arc(s, c, i, count, there == 2 && count == c->size - 2 ? beside(s, c, c->atom[i], to) : middle);
	}
}

/* ---- bridges ------------------------------------------------------------------------------------------------------------ */

/* A chain of unplaced atoms that leaves a placed one and comes to another; its length, 0: none. */
static int32_t bridge_from(const struct nr_ring_layout *s, int32_t start, int32_t first, int32_t *path, int32_t most, int32_t *end)
{
	int32_t n = 0, before = start, now = first;
	for (;;) {
		int32_t next = -1;
		if (n == most) return 0;
		path[n++] = now;
		for (int32_t i = 0; i < s->m->atom[now].degree && next < 0; i++) {
			const int32_t other = nr_bond_other(nr_bond_of(s->m, &s->m->atom[now], i), now);
			if (other == before || s->system[other] != s->system[now] || other == start) continue;
			bool seen = false;
			for (int32_t k = 0; k < n; k++) seen |= path[k] == other;
			if (!seen) next = other;
		}
		if (next < 0) return 0;
		if (s->placed[next]) return *end = next, n;
		before = now;
		now = next;
	}
}

static void place_bridge(struct nr_ring_layout *s, int32_t start, const int32_t *path, int32_t n, int32_t end, struct nr_place middle)
{
	const double bulge = .3;
	const struct nr_place a = s->at[start], b = s->at[end], chord = nr_place_from(a, b);
	const struct nr_place along = nr_place_unit(chord);
	const double side = nr_place_cross(along, nr_place_from(a, middle)) < -1e-6 ? -1 : 1;
	for (int32_t i = 0; i < n; i++) {
		const double t = (i + 1.0) / (n + 1);
		const struct nr_place up = { -along.y * side * bulge * sin(M_PI * t), along.x * side * bulge * sin(M_PI * t) };
		put(s, path[i], nr_place_sum(nr_place_sum(a, nr_place_times(chord, t)), up));
	}
}

/* What is left of a system: bridges, then atoms of nothing that was understood, each near its neighbours. */
static void place_rest(struct nr_ring_layout *s, const int32_t *atom, int32_t count)
{
	struct nr_place middle = { 0, 0 };
	int32_t path[64], there = 0;
	for (int32_t i = 0; i < count; i++)
		if (s->placed[atom[i]]) middle = nr_place_sum(middle, s->at[atom[i]]), there++;
	middle = nr_place_times(middle, there ? 1.0 / there : 0);
	for (bool more = true; more;) {
		more = false;
		for (int32_t i = 0; i < count; i++)
			for (int32_t k = 0; s->placed[atom[i]] && k < s->m->atom[atom[i]].degree; k++) {
				const int32_t first = nr_bond_other(nr_bond_of(s->m, &s->m->atom[atom[i]], k), atom[i]);
				int32_t end = -1;
				if (s->placed[first] || s->system[first] != s->system[atom[i]]) continue;
				const int32_t n = bridge_from(s, atom[i], first, path, 64, &end);
				if (n) place_bridge(s, atom[i], path, n, end, middle), more = true;
			}
	}
	for (int32_t i = 0; i < count; i++)
		if (!s->placed[atom[i]]) put(s, atom[i], nr_place_turned((struct nr_place){ 1 + .2 * i, 0 }, 2.4 * i));
}

/* ---- a system ----------------------------------------------------------------------------------------------------------- */

/* Only what came out badly is touched. */
static bool strained(const struct nr_ring_layout *s, const int32_t *atom, int32_t count)
{
	for (int32_t i = 0; i < count; i++)
		for (int32_t k = 0; k < i; k++) {
			const double d = nr_place_length(nr_place_from(s->at[atom[i]], s->at[atom[k]]));
			const bool bound = nr_rings_bond(s->m, atom[i], atom[k]) >= 0;
			if (bound ? d < .6 || d > 1.5 : d < .55) return true;
		}
	return false;
}

static void place_system(struct nr_ring_layout *s, int32_t system, int32_t *atom)
{
	int32_t count = 0, best = -1, most = -1;
	for (int32_t i = 0; i < s->m->atoms; i++)
		if (s->system[i] == system) atom[count++] = i;
	for (int32_t i = 0; i < s->cycles; i++) {                       /* the ring that most others share something with */
		int32_t fused = 0;
		if (s->cycle[i].system != system || s->cycle[i].dropped) continue;
		for (int32_t k = 0; k < s->cycles; k++)
			fused += k != i && s->cycle[k].system == system && !s->cycle[k].dropped && nr_rings_shared(s, &s->cycle[i],
				&s->cycle[k]) > 1;
		if (fused * 100 + s->cycle[i].size > most) most = fused * 100 + s->cycle[i].size, best = i;
	}
	if (best >= 0) place_first(s, &s->cycle[best]);
	for (;;) {
		best = -1, most = 0;
		for (int32_t i = 0; i < s->cycles; i++) {
			const struct nr_cycle *c = &s->cycle[i];
			if (c->system != system || c->dropped || c->placed) continue;
			const int32_t there = count_placed(s, c);
			if (there > most) most = there, best = i;
		}
		if (best < 0) break;
		place_next(s, &s->cycle[best]);
	}
	place_rest(s, atom, count);
	nr_rings_open_cage(s, system, atom, count);
	if (count <= 400 && strained(s, atom, count)) nr_layout_relax(s->m, s->at, atom, count, 400);
}

static void number_systems(struct nr_ring_layout *s)
{
	for (int32_t i = 0; i < s->m->atoms; i++) s->system[i] = -1;
	for (int32_t i = 0; i < s->cycles; i++) {
		const struct nr_cycle *c = &s->cycle[i];
		for (int32_t k = 0; k < c->size; k++) {
			const int32_t old = s->system[c->atom[k]];
			if (old >= 0 && old != i)
				for (int32_t a = 0; a < s->m->atoms; a++)
					if (s->system[a] == old) s->system[a] = i;
			s->system[c->atom[k]] = i;
		}
	}
	for (int32_t i = 0; i < s->cycles; i++) s->cycle[i].system = s->system[s->cycle[i].atom[0]];
}

int nr_layout_rings(const struct nr_molecule *m, int32_t *system, struct nr_place *at, struct nr_arena *arena, struct nr_error *err)
{
	const size_t n = (size_t)m->atoms + 1, most = n > (size_t)m->bonds ? n : (size_t)m->bonds + 1;
	struct nr_ring_layout s = { .m = m, .at = at, .system = system, .arena = arena,
		.placed = nr_arena_alloc(arena, n * sizeof *s.placed),
		.cycle = nr_arena_alloc(arena, ((size_t)m->rings + 1) * sizeof *s.cycle), .mark = nr_arena_alloc(arena,
			most * sizeof *s.mark) };
	int32_t *atom = nr_arena_alloc(arena, n * sizeof *atom);
	if (!s.placed || !s.cycle || !s.mark || !atom) return nr_fail(err, NR_EMEMORY, "cannot draw molecule", NULL, "out of memory");
	for (int32_t i = 0; i < m->rings; i++) {
		struct nr_cycle *c = &s.cycle[s.cycles];
		*c = (struct nr_cycle){ .size = m->ring[i].size, .atom = nr_arena_alloc(arena, (size_t)m->ring[i].size * sizeof *c->atom) };
		if (!c->atom) return nr_fail(err, NR_EMEMORY, "cannot draw molecule", NULL, "out of memory");
		s.cycles += nr_rings_walk(m, &m->ring[i], s.mark, c->atom);
	}
	number_systems(&s);
	nr_rings_merge(&s);
	for (int32_t i = 0; i < s.cycles; i++)
		if (!s.placed[s.cycle[i].atom[0]]) place_system(&s, s.cycle[i].system, atom);
	return NR_OK;
}
