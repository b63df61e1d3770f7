/* L-BFGS. See lbfgs.h. Vectors are summed in order by one thread: the function itself is what costs time. */
#include "analysis/lbfgs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "math/dot.h"

enum { PATIENCE = 50 };                     /* so many steps without a fall beyond the noise are the end */

struct memory {
	double *step[NR_LBFGS_MEMORY], *change[NR_LBFGS_MEMORY];    /* of x and of the gradient; the oldest is at `first` */
	double curvature[NR_LBFGS_MEMORY];                          /* step . change */
	double scale;                                               /* of the preconditioner, from the last pair */
	int first, count;
};

static void add(int64_t n, double f, const double *x, double *y)
{
	for (int64_t i = 0; i < n; i++) y[i] += f * x[i];
}

static double largest(int64_t n, const double *x)
{
	double most = 0;
	for (int64_t i = 0; i < n; i++)
		if (!(fabs(x[i]) <= most)) most = fabs(x[i]);
	return most;
}

/* d = -H gradient by the two loops over the kept pairs. */
static void direction(const struct nr_lbfgs *o, const struct memory *m, const double *gradient, double *d)
{
	double alpha[NR_LBFGS_MEMORY];
	for (int64_t i = 0; i < o->n; i++) d[i] = -gradient[i];
	for (int k = m->count - 1; k >= 0; k--) {
		const int at = (m->first + k) % NR_LBFGS_MEMORY;
		alpha[k] = nr_dot_double(o->n, m->step[at], d) / m->curvature[at];
		add(o->n, -alpha[k], m->change[at], d);
	}
	if (o->precondition) o->precondition(o->context, d);
	for (int64_t i = 0; i < o->n; i++) d[i] *= m->scale;
	for (int k = 0; k < m->count; k++) {
		const int at = (m->first + k) % NR_LBFGS_MEMORY;
		add(o->n, alpha[k] - nr_dot_double(o->n, m->change[at], d) / m->curvature[at], m->step[at], d);
	}
}

/* Keeps t d and the gradient's change, unless rounding is all that is left of them. scratch: n values. */
static void remember(const struct nr_lbfgs *o, struct memory *m, double t, const double *d, const double *before, const double *after,
	double *scratch)
{
	const int at = (m->first + m->count) % NR_LBFGS_MEMORY;
	double *s = m->step[at], *y = m->change[at];
	for (int64_t i = 0; i < o->n; i++) s[i] = t * d[i], y[i] = after[i] - before[i];
	const double sy = nr_dot_double(o->n, s, y);
	if (m->count == NR_LBFGS_MEMORY) m->first = (m->first + 1) % NR_LBFGS_MEMORY, m->count--;   /* its place was taken */
	if (!(sy > 1e-12 * sqrt(nr_dot_double(o->n, s, s) * nr_dot_double(o->n, y, y)))) return;
	m->curvature[at] = sy;
	m->count++;
	memcpy(scratch, y, (size_t)o->n * sizeof *y);
	if (o->precondition) o->precondition(o->context, scratch);
	m->scale = sy / nr_dot_double(o->n, y, scratch);
}

struct point { double value, *x, *gradient; };

/* A point along d that is low enough (Armijo), from the full step backwards; 0: there is none. */
static double search(const struct nr_lbfgs *o, const struct point *from, const double *d, double slope, struct point *to,
	int64_t *evaluations)
{
	double t = 1;
	for (int tries = 0; tries < 30; tries++) {
		for (int64_t i = 0; i < o->n; i++) to->x[i] = from->x[i] + t * d[i];
		to->value = o->value(o->context, to->x, to->gradient);
		++*evaluations;
		if (to->value <= from->value + 1e-4 * t * slope + o->noise * fabs(from->value)) return t;
		/* the lowest point of the parabola through both values and the slope */
		const double best = -slope * t * t / (2 * (to->value - from->value - slope * t));
		t = isfinite(best) ? fmin(fmax(best, .1 * t), .5 * t) : .1 * t;
	}
	return 0;
}

static void minimise(const struct nr_lbfgs *o, struct memory *m, struct point *here, struct point *next, double *d, double *scratch,
	struct nr_lbfgs_result *r)
{
	double low = here->value;                       /* a while ago */
	m->scale = 1;
	for (r->iterations = 0; r->iterations < o->iterations; r->iterations++) {
		if (largest(o->n, here->gradient) <= o->tolerance) return;
		if (r->iterations % PATIENCE == PATIENCE - 1) {
			if (here->value >= low - o->noise * fabs(low)) return;
			low = here->value;
		}
		direction(o, m, here->gradient, d);
		const double slope = nr_dot_double(o->n, d, here->gradient);
		const double t = slope < 0 ? search(o, here, d, slope, next, &r->evaluations) : 0;
		if (t == 0 && !m->count) return;
		if (t == 0) {                           /* the pairs lead nowhere: once more without them */
			m->count = 0;
			m->scale = 1;
			continue;
		}
		remember(o, m, t, d, here->gradient, next->gradient, scratch);
		const struct point other = *here;
		*here = *next;
		*next = other;
	}
}

int nr_lbfgs_run(const struct nr_lbfgs *o, double *x, struct nr_lbfgs_result *r, struct nr_error *err)
{
	const size_t n = (size_t)o->n;
	double *mem = malloc((6 + 2 * NR_LBFGS_MEMORY) * n * sizeof *mem);
	*r = (struct nr_lbfgs_result){ 0 };
	if (!mem) return nr_fail(err, NR_EMEMORY, "cannot minimise", NULL, "out of memory");
	struct point here = { .x = mem, .gradient = mem + n }, next = { .x = mem + 2 * n, .gradient = mem + 3 * n };
	struct memory m = { .count = 0 };
	for (int k = 0; k < NR_LBFGS_MEMORY; k++) {
		m.step[k] = mem + (6 + 2 * (size_t)k) * n;
		m.change[k] = m.step[k] + n;
	}
	memcpy(here.x, x, n * sizeof *x);
	here.value = o->value(o->context, here.x, here.gradient);
	r->evaluations = 1;
	int code = NR_OK;
	if (isfinite(here.value) && isfinite(largest(o->n, here.gradient))) {
		minimise(o, &m, &here, &next, mem + 4 * n, mem + 5 * n, r);
		memcpy(x, here.x, n * sizeof *x);
		r->value = here.value;
		r->gradient = largest(o->n, here.gradient);
		r->converged = r->gradient <= o->tolerance;
	} else {
		code = nr_fail(err, NR_EDIVERGED, "cannot minimise", NULL, "the function is not finite at the start");
	}
	free(mem);
	return code;
}
