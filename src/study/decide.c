/* Early stop: after which numbers of seeds a study looks at its results, and which arms are decided by then. */
#include <math.h>

#include "base/mem.h"
#include "study/results.h"

static int no_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot plan the looks", NULL, "out of memory"); }

/* Given ones, or so many at even distances, or every number of seeds from 2 on; the last is always that of all seeds. */
static int64_t place_looks(const struct nr_study *s, int64_t *look)
{
	int64_t n = 0;
	const int64_t count = s->stop.count ? s->stop.count : s->seeds - 1;
	for (int64_t k = 0; k < s->stop.looks; k++)
		if (s->stop.look[k] < s->seeds) look[n++] = s->stop.look[k];
	for (int64_t k = 1; !s->stop.looks && k <= count; k++) {
		const int64_t at = s->stop.count ? (k * s->seeds + count - 1) / count : k + 1;
		if (at >= 2 && at < s->seeds && (!n || look[n - 1] < at)) look[n++] = at;
	}
	look[n++] = s->seeds;
	return n;
}

int nr_looks_make(struct nr_looks *l, const struct nr_study *s, struct nr_arena *arena, struct nr_error *err)
{
	int64_t comparisons = 0;
	for (int64_t a = 0; a < s->arms; a++) comparisons += s->arm[a].against != a;
	*l = (struct nr_looks){ 0 };
	if (!s->stop.on || s->seeds < 2 || !comparisons) return NR_OK;
	l->at = nr_arena_alloc(arena, (size_t)(s->seeds + s->stop.looks + 1) * sizeof *l->at);
	l->level = nr_arena_alloc(arena, (size_t)(s->seeds + s->stop.looks + 1) * sizeof *l->level);
	if (!l->at || !l->level) return no_memory(err);
	l->count = place_looks(s, l->at);
	nr_look_levels(l->at, l->count, NR_STUDY_LEVEL / (double)comparisons, l->level);
	return NR_OK;
}

static struct nr_decision decide(const struct nr_looks *l, const double *x, const double *base, double *d)
{
	int64_t n = 0;
	for (int64_t k = 0; k < l->count; k++) {
		for (; n < l->at[k]; n++) {
			if (isnan(x[n]) || isnan(base[n])) return (struct nr_decision){ .looked = k };
			d[n] = x[n] - base[n];
		}
		const double p = nr_t_test(d, n);
		if (p <= l->level[k]) return (struct nr_decision){ .looked = k + 1, .seeds = n, .p = p, .level = l->level[k] };
	}
	return (struct nr_decision){ .looked = l->count };
}

int nr_looks_decide(const struct nr_looks *l, const struct nr_study *s, const double *value, struct nr_decision *to, struct nr_error *err)
{
	struct nr_arena *arena = nr_arena_make();
	double *d = arena ? nr_arena_alloc(arena, (size_t)s->seeds * sizeof *d) : NULL;
	for (int64_t a = 0; d && a < s->arms; a++) {
		const int64_t base = s->arm[a].against;
		to[a] = (struct nr_decision){ 0 };
		if (base != a) to[a] = decide(l, value + a * s->seeds, value + base * s->seeds, d);
	}
	nr_arena_free(arena);
	return d ? NR_OK : no_memory(err);
}

bool nr_arm_settled(const struct nr_study *s, const struct nr_decision *decision, int64_t arm)
{
	if (s->arm[arm].against != arm) return decision[arm].seeds > 0;
	int64_t arms = 0, open = 0;
	for (int64_t a = 0; a < s->arms; a++) {
		if (a == arm || s->arm[a].against != arm) continue;
		arms++;
		open += !decision[a].seeds;
	}
	return arms && !open;
}
