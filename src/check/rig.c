/* See rig.h. */
#include "check/rig.h"

#include <stdlib.h>

#include "base/rng.h"

/* ---- the scalar that is differentiated: sum of y times fixed weights --------------------------------------------- */

real nr_rig_weight(int64_t i) { return (real)(nr_rng_uniform(nr_rng_make(7, 1, 0), (uint64_t)i) - 0.5f); }

static int dot_shape(struct nr_node *k)
{
	nr_out(k, 0, NR_REAL, 0, NULL, NULL);
	return 0;
}
static void dot_forward(const struct nr_call *k)
{
	double sum = 0;
	for (int64_t i = 0; i < k->x[0].rows * k->x[0].c; i++) sum += (double)nr_rig_weight(i) * ((const real *)k->x[0].p)[i];
	*(real *)k->y[0].p = (real)sum;
}
static void dot_backward(const struct nr_call *k)
{
	const real g = *(const real *)k->dy[0].p;
	for (int64_t i = 0; i < k->x[0].rows * k->x[0].c; i++) nr_put((real *)k->dx[0].p + i, g * nr_rig_weight(i), k->add[0]);
}
static const struct nr_op op_dot = { .name = "dot", .shape = dot_shape, .forward = dot_forward, .backward = dot_backward };

/* ---- inputs -------------------------------------------------------------------------------------------------------- */

const char *nr_case_input(const char *s, struct nr_case_input *out)
{
	*out = (struct nr_case_input){ 0 };
	while (*s == ' ') s++;
	for (char *end;; s = end + 1) {
		out->d[out->nd++] = strtol(s, &end, 10);
		if (*end != 'x' || out->nd == NR_MAXD) {
			s = end;
			break;
		}
	}
	if (*s == ':') {
		char *end;
		out->is_int = true;
		out->hi = strtol(s + 2, &end, 10) - 1;
		if (*end == '-') out->lo = out->hi + 1, out->hi = strtol(end + 1, &end, 10);
		if (*end == 'u') out->unique = true, end++;
		s = end;
	}
	return s + strspn(s, " ");
}

static void fill_ints(int32_t *v, const struct nr_case_input *s)
{
	int64_t n = 1;
	for (int i = 0; i < s->nd; i++) n *= s->d[i];
	const int64_t row = s->d[s->nd - 1];
	const struct nr_rng r = nr_rng_make(11, 2, 0);
	for (int64_t i = 0; i < n; i++) v[i] = (int32_t)(s->lo + (long)nr_rng_below(r, (uint64_t)i, (uint64_t)(s->hi - s->lo + 1)));
	int32_t *all = s->unique ? calloc((size_t)(s->hi + 1), sizeof *all) : NULL;
	for (int64_t b = 0; all && b < n / row; b++) {
		nr_rng_shuffle(r, (uint64_t)(b * 1000), all, (int32_t)s->hi + 1);
		memcpy(v + b * row, all, (size_t)row * sizeof *v);
	}
	free(all);
}

/* Values of a real leaf: the same whatever else is in the graph. */
static void fill_reals(real *v, int64_t n, int place)
{
	const struct nr_rng r = nr_rng_make(13, 3, (uint32_t)place);
	for (int64_t i = 0; i < n; i++) v[i] = (real)nr_rng_normal(r, (uint64_t)i);
}

/* The same values in the middle of T + 2 tokens. */
static void fill_with_gaps(real *v, const struct nr_case_input *s)
{
	const int64_t B = s->d[0], T = s->d[1], C = s->d[2];
	real *packed = calloc((size_t)(B * T * C), sizeof *packed);
	if (!packed) return;
	fill_reals(packed, B * T * C, 0);
	for (int64_t b = 0; b < B; b++) memcpy(v + (b * (T + 2) + 1) * C, packed + b * T * C, (size_t)(T * C) * sizeof *v);
	free(packed);
}

/* Parameters are drawn, too, so that no gradient hides behind a zero. */
static void fill(struct nr_rig *b, unsigned flags)
{
	for (int i = 0; i < b->n_in; i++) {
		void *data = nr_plan_data(b->plan, b->in[i]);
		if (!data) continue;
		if (b->spec[i].is_int) fill_ints(data, &b->spec[i]);
		else if (flags & NR_RIG_GAPS && !i) fill_with_gaps(data, &b->spec[i]);
		else fill_reals(data, nr_len(b->in[i]), i);
	}
	for (int64_t i = 0; i < nr_store_count(b->store); i++) {
		const struct nr_entry *e = nr_store_at(b->store, i);
		real *v = nr_value(e);
		for (int64_t j = 0; !e->buffer && j < e->count; j++) v[j] += nr_rig_weight(j + i * 1000);
	}
}

/* ---- the graph ------------------------------------------------------------------------------------------------------ */

static nr_t *make_input(struct nr_rig *b, unsigned flags)
{
	const struct nr_case_input *p = &b->spec[b->n_in];
	struct nr_shape shape = { .nd = p->nd };
	memcpy(shape.d, p->d, sizeof shape.d);
	const bool gaps = flags & NR_RIG_GAPS && b->n_in == 0;
	if (gaps) shape.d[1] += 2;
	nr_t *t = nr_input(b->net, "x", p->is_int ? NR_I32 : NR_REAL, shape);
	if (t && !p->is_int) t->flags |= NR_GRAD, b->leaf[b->n_leaf++] = t;
	b->in[b->n_in++] = t;
	return gaps ? nr_span(b->net, t, 1, 1 + p->d[1]) : t;
}

int nr_rig_make(struct nr_rig *b, const struct nr_subject *of, const struct nr_case *c, unsigned flags, struct nr_error *err)
{
	*b = (struct nr_rig){ 0 };
	if (nr_store_make(&b->store, 5, err)) return err->code;
	if (!(b->net = nr_net_make(b->store))) return nr_fail(err, NR_EMEMORY, "cannot check", of->name, "out of memory");
	nr_t *x[NR_MAXIN] = { NULL };
	for (const char *s = c->shapes; *s && b->n_in < NR_MAXIN;) {
		s = nr_case_input(s, &b->spec[b->n_in]);
		const int place = b->n_in;
		x[place] = make_input(b, flags);
	}
	nr_t *base = b->spec[0].is_int ? NULL : x[0];
	b->y = nr_tap(b->net, "y", of->build(of, b->net, x, c->options));
	b->loss = nr_apply(b->net, &op_dot, NULL, 0, b->y);
	if (flags & NR_RIG_TWICE && base) b->loss = nr_add(b->net, b->loss, nr_apply(b->net, &op_dot, NULL, 0, base));
	if (nr_plan_make(&b->plan, b->net, b->loss, (of->backward ? NR_PLAN_TRAIN : 0) | NR_PLAN_SHARE | (flags & 0xffff), err))
		return err->code;
	fill(b, flags);
	return NR_OK;
}

void nr_rig_release(struct nr_rig *b)
{
	nr_plan_free(b->plan);
	nr_net_free(b->net);
	nr_store_free(b->store);
}

void nr_rig_run(struct nr_rig *b, unsigned phases)
{
	nr_plan_run(b->plan, &(struct nr_exec){ .train = 1, .seed = 3, .step = 1 }, phases);
}

int64_t nr_rig_collect(const struct nr_rig *b, real *out)
{
	int64_t n = nr_len(b->y);
	if (out) memcpy(out, nr_plan_data(b->plan, b->y), (size_t)n * sizeof(real));
	for (int i = 0; i < b->n_leaf; i++) {
		const real *g = nr_plan_grad(b->plan, b->leaf[i]);
		if (!g) continue;
		if (out) memcpy(out + n, g, (size_t)nr_len(b->leaf[i]) * sizeof(real));
		n += nr_len(b->leaf[i]);
	}
	for (int64_t i = 0; i < nr_store_count(b->store); i++) {
		const struct nr_entry *e = nr_store_at(b->store, i);
		if (e->buffer) continue;
		if (out) memcpy(out + n, nr_grad(e), (size_t)e->count * sizeof(real));
		n += e->count;
	}
	return n;
}
