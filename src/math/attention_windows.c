/* See attention_windows.h. */
#include "math/attention_windows.h"

#include <omp.h>
#include <string.h>

#include "math/row.h"

enum { GROUPS = 32 };          /* of windows whose bias gradients are summed apart: a fixed number, whatever the threads */
#define SMALL 16384

static size_t lines(size_t bytes) { return (bytes + 63) / 64 * 64; }
static size_t reals(int64_t n) { return lines((size_t)n * sizeof(real)); }

/* What a thread has: the kernel's own scratch, tokens of the window and their regions, its mask, then q k v out, and their gradients. */
struct desk {
	void *kernel;
	int32_t *token, *region, *next_token;
	struct nr_attention *next;      /* the grid's operands at the sample and head of the unit after this one */
	real *mask, *q, *k, *v, *out, *g, *gq, *gk, *gv;
};

static size_t desk_bytes(const struct nr_windows *w, char *at, struct desk *d)
{
	const int64_t n = w->a.Tq;
	struct nr_attention one = w->a;
	one.gbias = NULL;
	char *const begin = at;
#define TAKE(field, bytes) (d->field = (void *)at, at += (bytes))
	TAKE(kernel, lines(nr_attention_scratch(&one, 1)));
	TAKE(token, lines((size_t)n * sizeof(int32_t)));
	TAKE(region, lines((size_t)n * sizeof(int32_t)));
	TAKE(next_token, lines((size_t)n * sizeof(int32_t)));
	TAKE(next, lines(sizeof(struct nr_attention)));
	TAKE(mask, reals(n * n));
	TAKE(q, reals(n * w->a.d));
	TAKE(k, reals(n * w->a.d));
	TAKE(v, reals(n * w->a.dv));
	TAKE(out, reals(n * w->a.dv));
	TAKE(g, reals(n * w->a.dv));
	TAKE(gq, reals(n * w->a.d));
	TAKE(gk, reals(n * w->a.d));
	TAKE(gv, reals(n * w->a.dv));
#undef TAKE
	return (size_t)(at - begin);
}

static int64_t groups(const struct nr_windows *w)
{
	return nr_max64(1, nr_min64(w->a.B * nr_windows_count(w), GROUPS / w->a.H));
}

size_t nr_windows_scratch(const struct nr_windows *w)
{
	struct desk d;
	const size_t parts = w->a.gbias ? (size_t)groups(w) * reals(w->a.H * w->a.Tq * w->a.Tq) : 0;
	static char none[1];
	return desk_bytes(w, none, &d) * (size_t)(w->a.threads > 0 ? w->a.threads : 1) + parts;
}

static struct desk my_desk(const struct nr_windows *w)
{
	struct desk d;
	const size_t bytes = desk_bytes(w, w->a.scratch, &d);
	desk_bytes(w, (char *)w->a.scratch + bytes * (size_t)omp_get_thread_num(), &d);
	return d;
}

static int team(const struct nr_windows *w)
{
	const int n = w->a.threads > 0 ? w->a.threads : 1, most = omp_get_max_threads();
	if (w->a.B * w->h * w->w * w->a.H * w->a.Tq * (w->a.d + w->a.dv) < SMALL) return 1;
	return n < most ? n : most;
}

/* Where row or column i of the shifted grid comes from: the part that rolls comes round, padding stays. */
static int64_t origin(int64_t i, int64_t shift, int64_t roll)
{
	if (i >= roll) return i;
	return i + shift < roll ? i + shift : i + shift - roll;
}

/* Where the tokens of window number i lie on the grid. */
static void find_tokens(const struct nr_windows *w, int64_t i, int32_t *token)
{
	const int64_t y0 = i / (w->w / w->ww) * w->wh, x0 = i % (w->w / w->ww) * w->ww;
	for (int64_t y = y0; y < y0 + w->wh; y++)
		for (int64_t x = x0; x < x0 + w->ww; x++)
			*token++ = (int32_t)(origin(y, w->sh, w->roll_h) * w->w + origin(x, w->sw, w->roll_w));
}

/* Of a shifted side: before the last window, in it, and what came round from the other end. */
static int region(int64_t i, int64_t size, int64_t window, int64_t shift)
{
	return !shift || i < size - window ? 0 : i < size - shift ? 1 : 2;
}

/* The mask of window number i, or NULL if all its tokens are neighbours. */
static const real *mask_of(const struct nr_windows *w, int64_t i, int32_t *of, real *mask)
{
	const int64_t across = w->w / w->ww, y0 = i / across * w->wh, x0 = i % across * w->ww, n = w->wh * w->ww;
	if (!(w->sh && y0 + w->wh == w->h) && !(w->sw && x0 + w->ww == w->w)) return NULL;
	for (int64_t y = 0; y < w->wh; y++)
		for (int64_t x = 0; x < w->ww; x++)
			of[y * w->ww + x] = 3 * region(y0 + y, w->h, w->wh, w->sh) + region(x0 + x, w->w, w->ww, w->sw);
	for (int64_t p = 0; p < n; p++)
		for (int64_t q = 0; q < n; q++) mask[p * n + q] = of[p] == of[q] ? 0 : -100;
	return mask;
}

/* A row of a head: short, so that a call would take longer than the copy. */
static inline void copy(int64_t n, const real *from, real *to)
{
	for (; n >= 8; n -= 8, from += 8, to += 8) {
		memcpy(to, from, 8 * sizeof(real));
		__asm__("" : "+r"(to));         /* lest this loop becomes a call */
	}
	if (n > 0) memcpy(to, from, (size_t)n * sizeof(real));
}
static void gather(int64_t n, const int32_t *token, int64_t width, const real *x, int64_t row, real *to)
{
	for (int64_t i = 0; i < n; i++) copy(width, x + token[i] * row, to + i * width);
}
static void scatter(int64_t n, const int32_t *token, int64_t width, const real *from, real *x, int64_t row, int add)
{
	for (int64_t i = 0; i < n; i++) {
		if (add) nr_row_put(width, from + i * width, x + token[i] * row, 1);
		else copy(width, from + i * width, x + token[i] * row);
	}
}

/* What the kernel asks for meanwhile: the unit after this one; b = B: there is none. */
static void look_ahead(const struct nr_windows *w, const struct desk *d, int64_t b, int64_t i, int64_t h, struct nr_attention *a)
{
	struct nr_attention *n = d->next;
	a->next = b < w->a.B ? n : NULL;
	a->next_row = d->next_token;
	if (!a->next) return;
	find_tokens(w, i, d->next_token);
	*n = w->a;
	n->q += b * n->sq.batch + h * n->sq.head;
	n->k += b * n->sk.batch + h * n->sk.head;
	n->v += b * n->sv.batch + h * n->sv.head;
	n->out += b * n->so.batch + h * n->so.head;
	if (n->gout) n->gout += b * n->sgo.batch + h * n->sgo.head;
	if (!n->gq) return;
	n->gq += b * n->sgq.batch + h * n->sgq.head;
	n->gk += b * n->sgk.batch + h * n->sgk.head;
	n->gv += b * n->sgv.batch + h * n->sgv.head;
}

/* The kernel's view of head h of window i of sample b: q, k and v are gathered on the desk. */
static struct nr_attention open_window(const struct nr_windows *w, const struct desk *d, int64_t b, int64_t i, int64_t h)
{
	struct nr_attention a = w->a;
	const int64_t n = a.Tq;
	find_tokens(w, i, d->token);
	gather(n, d->token, a.d, a.q + b * a.sq.batch + h * a.sq.head, a.sq.row, d->q);
	gather(n, d->token, a.d, a.k + b * a.sk.batch + h * a.sk.head, a.sk.row, d->k);
	gather(n, d->token, a.dv, a.v + b * a.sv.batch + h * a.sv.head, a.sv.row, d->v);
	a.B = w->a.B * nr_windows_count(w);
	a.q = d->q, a.k = d->k, a.v = d->v, a.out = d->out;
	a.sq = a.sk = (struct nr_heads){ 0, a.d, 0 };
	a.sv = a.so = (struct nr_heads){ 0, a.dv, 0 };
	a.n_bias = a.bias ? 1 : 0;
	a.mask = mask_of(w, i, d->region, d->mask);
	a.n_mask = 1;
	return a;
}

void nr_windows_forward(const struct nr_windows *w)
{
	const struct nr_attention *g = &w->a;
	const int64_t count = nr_windows_count(w), units = g->B * count * g->H;
#pragma omp parallel for schedule(static) num_threads(team(w))
	for (int64_t u = 0; u < units; u++) {
		const int64_t b = u / (count * g->H), i = u / g->H % count, h = u % g->H;
		const struct desk d = my_desk(w);
		struct nr_attention a = open_window(w, &d, b, i, h);
		look_ahead(w, &d, (u + 1) / (count * g->H), (u + 1) / g->H % count, (u + 1) % g->H, &a);
		nr_attention_active->forward(&a, b * count + i, h, d.kernel);
		scatter(g->Tq, d.token, g->dv, d.out, g->out + b * g->so.batch + h * g->so.head, g->so.row, 0);
	}
}

/* Head h of window number u of all samples; then comes head next_h of window number next. */
static void backward_window(const struct nr_windows *w, int64_t u, int64_t h, int64_t next, int64_t next_h, real *gbias, int add_bias)
{
	const int64_t count = nr_windows_count(w), b = u / count, i = u % count;
	const struct nr_attention *g = &w->a;
	const struct desk d = my_desk(w);
	struct nr_attention a = open_window(w, &d, b, i, h);
	gather(g->Tq, d.token, g->dv, g->out + b * g->so.batch + h * g->so.head, g->so.row, d.out);
	gather(g->Tq, d.token, g->dv, g->gout + b * g->sgo.batch + h * g->sgo.head, g->sgo.row, d.g);
	a.gout = d.g;
	a.gq = g->gq ? d.gq : NULL, a.gk = g->gk ? d.gk : NULL, a.gv = g->gv ? d.gv : NULL;
	a.sgq = a.sgk = a.sq;
	a.sgv = a.sgo = a.sv;
	a.add = 0;
	look_ahead(w, &d, next / count, next % count, next_h, &a);
	nr_attention_active->backward(&a, u, h, gbias, add_bias, d.kernel);
	if (!g->gq) return;
	scatter(g->Tq, d.token, g->d, d.gq, g->gq + b * g->sgq.batch + h * g->sgq.head, g->sgq.row, g->add & NR_ATTENTION_ADD_Q);
	scatter(g->Tq, d.token, g->d, d.gk, g->gk + b * g->sgk.batch + h * g->sgk.head, g->sgk.row, g->add & NR_ATTENTION_ADD_K);
	scatter(g->Tq, d.token, g->dv, d.gv, g->gv + b * g->sgv.batch + h * g->sgv.head, g->sgv.row, g->add & NR_ATTENTION_ADD_V);
}

void nr_windows_backward(const struct nr_windows *w)
{
	const struct nr_attention *g = &w->a;
	const int64_t count = nr_windows_count(w), all = g->B * count, H = g->H, n = g->Tq, parts = groups(w);
	if (!g->gbias) {
#pragma omp parallel for schedule(static) num_threads(team(w))
		for (int64_t u = 0; u < all * H; u++) backward_window(w, u / H, u % H, (u + 1) / H, (u + 1) % H, NULL, 0);
		return;
	}
	struct desk d;
	real *part = (real *)((char *)g->scratch + desk_bytes(w, g->scratch, &d) * (size_t)(g->threads > 0 ? g->threads : 1));
	const int64_t stride = (int64_t)(reals(H * n * n) / sizeof(real));
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(w))
	for (int64_t u = 0; u < parts * H; u++) {
		const int64_t p = u / H, h = u % H, from = all * p / parts, to = all * (p + 1) / parts;
		for (int64_t i = from; i < to; i++) backward_window(w, i, h, i + 1, h, part + p * stride + h * n * n, i > from);
	}
	nr_array_put(H * n * n, part, g->gbias, (g->add & NR_ATTENTION_ADD_BIAS) != 0);
	for (int64_t p = 1; p < parts; p++) nr_array_put(H * n * n, part + p * stride, g->gbias, 1);
}
