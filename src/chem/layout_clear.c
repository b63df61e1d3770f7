/* Making room in a drawing: see layout.h. A cost is paid for atoms that come too close and for bonds that cross; parts that hang on one
 * bond are mirrored about it, then turned a little, as long as that lowers the cost. What is left is pushed apart. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/layout.h"

static const double room_kept = .95;                    /* distance below which two atoms cost something */
static const double work_most = 1e8;                    /* pairs of atoms that are looked at, at most */

struct clearing {
	const struct nr_molecule *m;
	struct nr_place *at, *saved;
	int32_t *joint;                                 /* bonds with a part on either side that can be turned */
	bool *swung;                                    /* (joints): once is enough, or cis could become trans */
	bool *moves;                                    /* (joints, atoms): the smaller side */
	int32_t joints;
	double work, hard;                              /* hard: of the last cost, what is paid for atoms too close and bonds that cross */
};

static bool bound(const struct nr_molecule *m, int32_t a, int32_t b)
{
	for (int32_t i = 0; i < m->atom[a].degree; i++)
		if (nr_bond_other(nr_bond_of(m, &m->atom[a], i), a) == b) return true;
	return false;
}

static bool cross(struct nr_place a, struct nr_place b, struct nr_place c, struct nr_place d)
{
	if (fmin(a.x, b.x) > fmax(c.x, d.x) || fmin(c.x, d.x) > fmax(a.x, b.x) || fmin(a.y, b.y) > fmax(c.y, d.y) ||
		fmin(c.y, d.y) > fmax(a.y, b.y))
		return false;
	const struct nr_place ab = nr_place_from(a, b), cd = nr_place_from(c, d);
	return nr_place_cross(ab, nr_place_from(a, c)) * nr_place_cross(ab, nr_place_from(a, d)) < -1e-9 &&
	       nr_place_cross(cd, nr_place_from(c, a)) * nr_place_cross(cd, nr_place_from(c, b)) < -1e-9;
}

bool nr_layout_crossed(const struct nr_molecule *m, const struct nr_place *at, int32_t i, int32_t k)
{
	const struct nr_bond *p = &m->bond[i], *q = &m->bond[k];
	if (p->from == q->from || p->from == q->to || p->to == q->from || p->to == q->to) return false;
	return cross(at[p->from], at[p->to], at[q->from], at[q->to]);
}

/* Least where nothing is near anything else; a small part rewards drawings that spread. Ring systems keep their inner cost. */
static double cost_of(struct clearing *c)
{
	const struct nr_molecule *m = c->m;
	double sum = 0;
	c->hard = 0;
	c->work += (double)m->atoms * m->atoms + (double)m->bonds * m->bonds;
	for (int32_t i = 0; i < m->atoms; i++)
		for (int32_t k = 0; k < i; k++) {
			const double x = c->at[i].x - c->at[k].x, y = c->at[i].y - c->at[k].y, square = x * x + y * y;
			if (square > 16) continue;
			sum += 2e-3 / (square + .05);
			if (square >= room_kept * room_kept || bound(m, i, k)) continue;
			const double lack = room_kept - sqrt(square);
			c->hard += 4 * lack * lack + lack;
		}
	for (int32_t i = 0; i < m->bonds; i++)
		for (int32_t k = 0; k < i; k++) c->hard += nr_layout_crossed(m, c->at, i, k);
	return sum + c->hard;
}

struct nr_layout_faults nr_layout_faults(const struct nr_layout *l, const struct nr_molecule *m, double least)
{
	struct nr_layout_faults f = { .nearest = INFINITY, .shortest = INFINITY };
	for (int32_t i = 0; i < m->atoms; i++)
		for (int32_t k = 0; k < i; k++) {
			const double d = nr_place_length(nr_place_from(l->at[i], l->at[k]));
			f.close += d < least;
			f.nearest = fmin(f.nearest, d);
		}
	for (int32_t i = 0; i < m->bonds; i++) {
		const double d = nr_place_length(nr_place_from(l->at[m->bond[i].from], l->at[m->bond[i].to]));
		f.shortest = fmin(f.shortest, d);
		f.longest = fmax(f.longest, d);
		for (int32_t k = 0; k < i; k++) f.crossed += nr_layout_crossed(m, l->at, i, k);
	}
	return f;
}

/* ---- joints ------------------------------------------------------------------------------------------------------------- */

/* Flags what can be reached from an atom without the bond to `not_to`; returns how many. */
static int32_t reach(const struct nr_molecule *m, int32_t from, int32_t not_to, bool *side, int32_t *stack)
{
	int32_t top = 0, count = 1;
	memset(side, 0, (size_t)m->atoms * sizeof *side);
	side[from] = true;
	stack[top++] = from;
	while (top) {
		const int32_t a = stack[--top];
		for (int32_t i = 0; i < m->atom[a].degree; i++) {
			const int32_t other = nr_bond_other(nr_bond_of(m, &m->atom[a], i), a);
			if (side[other] || (a == from && other == not_to)) continue;
			side[other] = true;
			stack[top++] = other;
			count++;
		}
	}
	return count;
}

static int find_joints(struct clearing *c, struct nr_arena *arena, struct nr_error *err)
{
	const struct nr_molecule *m = c->m;
	int32_t *stack = nr_arena_alloc(arena, (size_t)(m->atoms + 1) * sizeof *stack), most = 0;
	for (int32_t i = 0; i < m->bonds; i++) most += !m->bond[i].in_ring;
	c->joint = nr_arena_alloc(arena, (size_t)(most + 1) * sizeof *c->joint);
	c->moves = nr_arena_alloc(arena, (size_t)(most + 1) * (size_t)m->atoms * sizeof *c->moves);
	c->swung = nr_arena_alloc(arena, (size_t)(most + 1) * sizeof *c->swung);
	if (!stack || !c->joint || !c->moves || !c->swung) return nr_fail(err, NR_EMEMORY, "cannot draw molecule", NULL, "out of memory");
	for (int32_t i = 0; i < m->bonds; i++) {
		const struct nr_bond *b = &m->bond[i];
		if (b->in_ring || b->stereo || m->atom[b->from].degree < 2 || m->atom[b->to].degree < 2) continue;
		bool *moves = c->moves + (int64_t)c->joints * m->atoms;
		const int32_t count = reach(m, b->from, b->to, moves, stack);
		if (reach(m, b->to, b->from, moves, stack) > count) reach(m, b->from, b->to, moves, stack);
		c->joint[c->joints++] = i;
	}
	return NR_OK;
}

static void mirror(struct clearing *c, int32_t joint)
{
	const struct nr_bond *b = &c->m->bond[c->joint[joint]];
	const bool *moves = c->moves + (int64_t)joint * c->m->atoms;
	const struct nr_place o = c->at[b->from], along = nr_place_unit(nr_place_from(o, c->at[b->to]));
	for (int32_t i = 0; i < c->m->atoms; i++) {
		if (!moves[i]) continue;
		const struct nr_place p = nr_place_from(o, c->at[i]);
		const double dot = p.x * along.x + p.y * along.y;
		c->at[i] = nr_place_sum(o, (struct nr_place){ 2 * dot * along.x - p.x, 2 * dot * along.y - p.y });
	}
}

/* About the end of the bond that stays. */
static void swing(struct clearing *c, int32_t joint, double degrees)
{
	const struct nr_bond *b = &c->m->bond[c->joint[joint]];
	const bool *moves = c->moves + (int64_t)joint * c->m->atoms;
	const struct nr_place o = c->at[moves[b->from] ? b->to : b->from];
	for (int32_t i = 0; i < c->m->atoms; i++)
		if (moves[i]) c->at[i] = nr_place_sum(o, nr_place_turned(nr_place_from(o, c->at[i]), degrees * M_PI / 180));
}

/* ---- search ------------------------------------------------------------------------------------------------------------- */

static void keep(struct clearing *c) { memcpy(c->saved, c->at, (size_t)c->m->atoms * sizeof *c->at); }
static void restore(struct clearing *c) { memcpy(c->at, c->saved, (size_t)c->m->atoms * sizeof *c->at); }

static bool spent(const struct clearing *c) { return c->work > work_most; }

/* The best of all single mirrors, as long as one helps. */
static double mirror_singly(struct clearing *c, double cost)
{
	for (int round = 0; round < 40 && !spent(c); round++) {
		int32_t best = -1;
		double least = cost - 1e-6;
		keep(c);
		for (int32_t j = 0; j < c->joints && !spent(c); j++) {
			mirror(c, j);
			const double now = cost_of(c);
			if (now < least) least = now, best = j;
			restore(c);
		}
		if (best < 0) break;
		mirror(c, best);
		cost = least;
	}
	return cost;
}

static double mirror_in_pairs(struct clearing *c, double cost)
{
	keep(c);
	for (int32_t i = 0; i < c->joints; i++)
		for (int32_t k = 0; k < i && !spent(c); k++) {
			mirror(c, i);
			mirror(c, k);
			const double now = cost_of(c);
			if (now < cost - .05) return now;
			restore(c);
		}
	return cost;
}

static double swing_some(struct clearing *c, double cost)
{
	static const double degrees[] = { 15, -15, 30, -30, 45, -45 };
	for (int round = 0; round < 8 && !spent(c); round++) {
		int32_t best = -1;
		size_t by = 0;
		double least = cost - .15;                      /* an odd angle is worth it where something lies on something else */
		keep(c);
		for (int32_t j = 0; j < c->joints && !spent(c); j++)
			for (size_t k = 0; !c->swung[j] && k < sizeof degrees / sizeof *degrees; k++) {
				swing(c, j, degrees[k]);
				const double now = cost_of(c);
				if (now < least) least = now, best = j, by = k;
				restore(c);
			}
		if (best < 0) break;
		swing(c, best, degrees[by]);
		c->swung[best] = true;
		cost = least;
	}
	return cost;
}

/* Is an atom on another one, or nearly? */
static bool crowded(const struct clearing *c)
{
	for (int32_t i = 0; i < c->m->atoms; i++)
		for (int32_t k = 0; k < i; k++)
			if (nr_place_length(nr_place_from(c->at[i], c->at[k])) < .5) return true;
	return false;
}

static bool among(const int32_t *which, int32_t count, int32_t atom)
{
	while (count && which[count - 1] != atom) count--;
	return count;
}

void nr_layout_relax(const struct nr_molecule *m, struct nr_place *at, const int32_t *which, int32_t count, int steps)
{
	const double apart = .8;
	for (int step = 0; step < steps; step++) {
		for (int32_t i = 0; i < count; i++)
			for (int32_t k = 0; k < i; k++) {
				const int32_t a = which ? which[i] : i, b = which ? which[k] : k;
				struct nr_place d = nr_place_from(at[a], at[b]);
				const double square = d.x * d.x + d.y * d.y;
				if (square > 4) continue;
				const bool pair = bound(m, a, b);
				if (!pair && square >= apart * apart) continue;
				const double length = sqrt(square);
				if (length < 1e-6) d = nr_place_turned((struct nr_place){ 1e-6, 0 }, a + 2.0 * b);
				const double off = pair ? length - 1 : length - apart, by = (pair ? .25 : .2) * off;
				d = nr_place_times(nr_place_unit(d), by);
				at[a] = nr_place_sum(at[a], d);
				at[b] = nr_place_sum(at[b], nr_place_times(d, -1));
			}
		for (int32_t i = 0; i < count; i++) {           /* long bonds are not among the near pairs */
			const int32_t a = which ? which[i] : i;
			for (int32_t k = 0; k < m->atom[a].degree; k++) {
				const struct nr_bond *bond = nr_bond_of(m, &m->atom[a], k);
				struct nr_place d = nr_place_from(at[a], at[bond->to]);
				const double length = nr_place_length(d);
				if (bond->from != a || length < 2 || (which && !(bond->in_ring && among(which, count, bond->to)))) continue;
				d = nr_place_times(nr_place_unit(d), .25 * (length - 1));
				at[a] = nr_place_sum(at[a], d);
				at[bond->to] = nr_place_sum(at[bond->to], nr_place_times(d, -1));
			}
		}
	}
}

int nr_layout_clear(const struct nr_molecule *m, struct nr_place *at, struct nr_arena *arena, struct nr_error *err)
{
	enum { MOST = 600 };                            /* atoms; a larger one is drawn as it grew */
	struct clearing c = { .m = m, .at = at };
	if (m->atoms > MOST) return NR_OK;
	if (find_joints(&c, arena, err)) return err->code;
	if (!(c.saved = nr_arena_alloc(arena, (size_t)(m->atoms + 1) * sizeof *c.saved)))
		return nr_fail(err, NR_EMEMORY, "cannot draw molecule", NULL, "out of memory");
	double cost = mirror_singly(&c, cost_of(&c));
	for (int round = 0; round < 6 && !spent(&c) && cost_of(&c) > 0 && c.hard > .05; round++) {
		const double before = cost;
		cost = mirror_in_pairs(&c, cost);
		if (cost >= before) break;
		cost = mirror_singly(&c, cost);
	}
	if (cost_of(&c) > 0 && c.hard > .05) swing_some(&c, cost);
	if (crowded(&c)) nr_layout_relax(m, at, NULL, m->atoms, 200);
	return NR_OK;
}
