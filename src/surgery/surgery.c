/* Norm surgery: see surgery.h. */
#include "surgery/surgery.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "base/mem.h"
#include "norma/nn.h"
#include "surgery/recalibrate.h"

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot replace the norms", NULL, "out of memory"); }

/* ---- one of the two models, with taps behind the norms that differ -------------------------------------------------------------- */

struct body {
	struct nr_store *store;
	struct nr_net *net;
	struct nr_plan *plan;
	struct nr_inputs in;
	nr_t *tokens, **tap;                            /* tap[i]: output at site i, or NULL */
	const struct nr_surgery *what;
};

static nr_t *at_site(void *context, struct nr_net *n, const char *site, const char *full, nr_t *before, nr_t *after)
{
	struct body *b = context;
	(void)site, (void)before;
	for (int64_t i = 0; i < b->what->sites; i++)
		if (!strcmp(b->what->site[i].name, full)) return b->tap[i] = nr_tap(n, full, after);
	return after;
}

static int open_body(struct body *b, const struct nr_weights *w, const char *norms, int64_t batch, int64_t length, struct nr_error *err)
{
	const struct nr_model_spec *m = &w->model;
	if (!(b->net = nr_net_make(b->store)) || !(b->tap = calloc((size_t)b->what->sites + 1, sizeof *b->tap))) return out_of_memory(err);
	if (nr_norms_use(b->net, norms, &m->norms, err)) return err->code;
	nr_norms_watch(b->net, (struct nr_norm_watch){ at_site, b });
	if (m->of->reads == NR_TEXTS) {
		b->in = (struct nr_inputs){ .ids = nr_input(b->net, "ids", NR_I32, NR_SHAPE(batch, length)),
			.valid = nr_input(b->net, "valid", NR_I32, NR_SHAPE(batch)) };
	} else b->in = nr_model_inputs(b->net, m, batch);
	b->tokens = nr_tap(b->net, "tokens", nr_model_tokens(b->net, m, &b->in));
	return nr_plan_make(&b->plan, b->net, b->tokens, 0, err);
}

static void close_body(struct body *b)
{
	nr_plan_free(b->plan);
	nr_net_free(b->net);
	free(b->tap);
	b->plan = NULL, b->net = NULL, b->tap = NULL;
}

struct feeding { struct body *b; const struct nr_samples *s; };

static int put(void *context, int64_t number, struct nr_error *err)
{
	const struct feeding *f = context;
	const struct nr_samples *s = f->s;
	struct nr_plan *plan = f->b->plan;
	const struct nr_inputs *in = &f->b->in;
	(void)err;
	if (in->image) {
		nr_from_floats(nr_plan_data(plan, in->image), s->image + number * nr_len(in->image), nr_len(in->image));
		return NR_OK;
	}
	const int64_t n = s->batch * s->length;
	memcpy(nr_plan_data(plan, in->ids), s->ids + number * n, (size_t)n * sizeof *s->ids);
	memcpy(nr_plan_data(plan, in->valid), s->valid + number * s->batch, (size_t)s->batch * sizeof *s->valid);
	return NR_OK;
}

/* ---- which sites differ, what carries over ---------------------------------------------------------------------------------------- */

static const char *norm_at(const struct nr_site *site, int64_t n, const char *name)
{
	for (int64_t i = 0; i < n; i++)
		if (!strcmp(site[i].name, name)) return site[i].norm ? site[i].norm : "none";
	return "none";
}

/* The same norm under its name or an alias: "ln", "layer". */
static bool same_norm(const char *a, const char *b)
{
	char name[2][64];
	const size_t n = strcspn(a, ":("), m = strcspn(b, ":(");
	snprintf(name[0], sizeof name[0], "%.*s", (int)n, a);
	snprintf(name[1], sizeof name[1], "%.*s", (int)m, b);
	const struct nr_norm *of = nr_norm_find(name[0], NULL);
	return !strcmp(a + n, b + m) && (of ? of == nr_norm_find(name[1], NULL) : !strcmp(a, b));
}

struct nr_net *nr_surgery_record(const struct nr_weights *w, struct nr_store *store, const char *norms, struct nr_error *err)
{
	struct nr_net *n = nr_net_make(store);
	if (!n) out_of_memory(err);
	else if (nr_weights_record(n, w, norms, err)) {
		nr_net_free(n);
		return NULL;
	}
	return n;
}

static int compare_plans(struct nr_surgery *s, const struct nr_weights *w, struct nr_store *store, const char *norms, struct nr_error *err)
{
	struct nr_net *was = nr_surgery_record(w, w->store, w->norms, err), *is = was ? nr_surgery_record(w, store, norms, err) : NULL;
	int64_t a = 0, b = 0;
	const struct nr_site *old = was ? nr_sites(was, &a) : NULL, *new = is ? nr_sites(is, &b) : NULL;
	s->site = is ? nr_arena_alloc(w->arena, (size_t)(b + 1) * sizeof *s->site) : NULL;
	for (int64_t i = 0; s->site && i < b; i++) {
		const char *before = norm_at(old, a, new[i].name), *after = new[i].norm ? new[i].norm : "none";
		if (same_norm(before, after)) continue;
		s->site[s->sites++] = (struct nr_surgery_site){ .name = nr_arena_strdup(w->arena, new[i].name),
			.was = nr_arena_strdup(w->arena, before), .is = nr_arena_strdup(w->arena, after), .copied = NAN, .fitted = NAN };
	}
	nr_net_free(was);
	nr_net_free(is);
	return s->site ? NR_OK : err->code ? (int)err->code : out_of_memory(err);
}

/* The old entry whose values an entry of the new plan gets: its namesake, else the gain or bias of the norm at that site, of which sep
 * has two. */
static const struct nr_entry *forerunner(const struct nr_store *old, const struct nr_entry *e, const struct nr_surgery *s)
{
	const struct nr_entry *same = nr_store_find(old, e->name);
	if (same && same->count == e->count) return same;
	for (int64_t i = 0; i < s->sites && !e->buffer; i++) {
		const size_t n = strlen(s->site[i].name);
		if (strncmp(e->name, s->site[i].name, n) || e->name[n] != '.') continue;
		static const char *const via[] = { "", ".rest", ".special" };
		for (int k = 0; k < 3; k++) {
			char name[512];
			snprintf(name, sizeof name, "%s%s%s", s->site[i].name, via[k], strrchr(e->name, '.'));
			const struct nr_entry *was = nr_store_find(old, name);
			if (was && !was->buffer && was->count == e->count) return was;
		}
	}
	return NULL;
}

static void carry_over(const struct nr_store *old, struct nr_store *new, struct nr_surgery *s)
{
	for (int64_t i = 0; i < nr_store_count(new); i++) {
		const struct nr_entry *e = nr_store_at(new, i), *was = forerunner(old, e, s);
		if (was) memcpy(nr_value(e), nr_value(was), (size_t)e->count * sizeof(real));
		s->carried += was != NULL;
		s->fresh += was == NULL;
	}
}

/* ---- fitting ------------------------------------------------------------------------------------------------------------------------ */

struct sums { double n, z, y, zz, zy, yy; };            /* of one channel: new output, old output */

/* Rows of a site's output that count: special tokens, the others; padding never does. */
enum part { SPECIAL, REST, PARTS };
static void rows_of(const nr_t *t, enum part part, int64_t valid, int64_t *from, int64_t *to)
{
	const int64_t T = t->nd == 3 ? t->d[1] : 1, special = t->tok ? t->tok->special : 0;
	const int64_t end = t->nd == 3 && valid < T ? valid : T;
	*from = part == REST ? special : 0;
	*to = part == SPECIAL ? (special < end ? special : end) : end;
}

static double length_of(const nr_t *t, const struct nr_samples *s, int64_t sample)
{
	return s->valid ? (double)s->valid[sample] : (double)(t->nd == 3 ? t->d[1] : 1);
}

/* Adds a batch to the sums (PARTS,C): z is the new model's output, y what the old one had there. */
static void add_batch(void *to, const nr_t *t, const struct nr_samples *s, int64_t number, const real *z, const float *y)
{
	const int64_t C = nr_cols(t), T = t->nd == 3 ? t->d[1] : 1;
	for (int64_t b = 0; b < s->batch; b++)
		for (int part = 0; part < PARTS; part++) {
			struct sums *sum = (struct sums *)to + part * C;
			int64_t from, end;
			rows_of(t, (enum part)part, (int64_t)length_of(t, s, number * s->batch + b), &from, &end);
			for (int64_t r = from; r < end; r++)
				for (int64_t c = 0; c < C; c++) {
					const double zi = (double)z[(b * T + r) * C + c], yi = (double)y[(b * T + r) * C + c];
					sum[c].n++;
					sum[c].z += zi, sum[c].y += yi, sum[c].zz += zi * zi, sum[c].zy += zi * yi, sum[c].yy += yi * yi;
				}
		}
}

static struct sums both(const struct sums *p, const struct sums *q)
{
	return (struct sums){ p->n + q->n, p->z + q->z, p->y + q->y, p->zz + q->zz, p->zy + q->zy, p->yy + q->yy };
}

struct line { double a, b; };                           /* y = a z + b */

/* The sum of (a z + b - y)^2. */
static double residual(const struct sums *k, struct line l)
{
	return l.a * l.a * k->zz + 2 * l.a * l.b * k->z - 2 * l.a * k->zy + l.b * l.b * k->n - 2 * l.b * k->y + k->yy;
}

/* The one that brings z nearest to y; without a bias only a. */
static struct line nearest(const struct sums *k, bool bias)
{
	struct line l = { 1, 0 };
	if (k->n < 1) return l;
	if (!bias) {
		if (k->zz > 0) l.a = k->zy / k->zz;
		return l;
	}
	const double vz = k->zz / k->n - k->z / k->n * (k->z / k->n), cov = k->zy / k->n - k->z / k->n * (k->y / k->n);
	if (vz > 1e-12 * (k->zz / k->n) && vz > 0) l.a = cov / vz;
	l.b = k->y / k->n - l.a * k->z / k->n;
	return l;
}

static struct nr_entry *affine(const struct nr_store *s, const char *site, const char *side, const char *what, int64_t C)
{
	char name[512];
	snprintf(name, sizeof name, "%s%s.%s", site, side, what);
	struct nr_entry *e = nr_store_find(s, name);
	return e && !e->buffer && e->count == C ? e : NULL;
}

struct work {
	struct body old, new;
	const struct nr_samples *samples;
	float *was;                                     /* outputs of the old model for all samples, at the site at hand */
	struct sums *sum;
};

static const nr_t *tap_of(const struct body *b, int64_t i) { return i < b->what->sites ? b->tap[i] : b->tokens; }

/* The old model's outputs at site i; the last tokens count as one more site. */
static int keep_old(struct work *w, int64_t i, struct nr_error *err)
{
	const nr_t *t = tap_of(&w->old, i);
	struct feeding f = { &w->old, w->samples };
	const int64_t batches = w->samples->count / w->samples->batch, n = nr_len(t);
	float *was = realloc(w->was, (size_t)(batches * n) * sizeof *was);
	if (!was) return out_of_memory(err);
	w->was = was;
	for (int64_t b = 0; b < batches; b++) {
		put(&f, b, err);
		nr_plan_run(w->old.plan, &(struct nr_exec){ .train = 0 }, NR_RUN_FORWARD);
		const real *y = nr_plan_data(w->old.plan, t);
		for (int64_t k = 0; k < n; k++) was[b * n + k] = (float)y[k];
	}
	return NR_OK;
}

/* Runs the new model over all samples; `each` sees the output at site i beside the old one's. */
static void run_new(struct work *w, int64_t i, void (*each)(void *to, const nr_t *, const struct nr_samples *, int64_t b, const real *,
	const float *), void *to)
{
	struct feeding f = { &w->new, w->samples };
	struct nr_error none = { 0 };
	const nr_t *t = tap_of(&w->new, i);
	for (int64_t b = 0; b < w->samples->count / w->samples->batch; b++) {
		put(&f, b, &none);
		nr_plan_run(w->new.plan, &(struct nr_exec){ .train = 0 }, NR_RUN_FORWARD);
		each(to, t, w->samples, b, nr_plan_data(w->new.plan, t), w->was + b * nr_len(t));
	}
}

struct difference { double diff[2], length[2], cosine[2], rows[2]; };
static void add_difference(void *to, const nr_t *t, const struct nr_samples *s, int64_t number, const real *z, const float *y)
{
	struct difference *d = to;
	const int64_t C = nr_cols(t), T = t->nd == 3 ? t->d[1] : 1;
	for (int64_t b = 0; b < s->batch; b++)
		for (int part = SPECIAL; part <= REST; part++) {
			int64_t from, end;
			rows_of(t, (enum part)part, (int64_t)length_of(t, s, number * s->batch + b), &from, &end);
			for (int64_t r = from; r < end; r++) {
				double diff = 0, zz = 0, yy = 0, zy = 0;
				for (int64_t c = 0; c < C; c++) {
					const double zi = (double)z[(b * T + r) * C + c], yi = (double)y[(b * T + r) * C + c];
					diff += (zi - yi) * (zi - yi), zz += zi * zi, yy += yi * yi, zy += zi * yi;
				}
				d->diff[part] += diff, d->length[part] += yy, d->rows[part]++;
				d->cosine[part] += zz > 0 && yy > 0 ? zy / sqrt(zz * yy) : 0;
			}
		}
}

/* Gain and bias of one channel: gain' = a gain, bias' = a bias + b. */
static void move(struct nr_entry *gain, struct nr_entry *bias, int64_t c, struct line l)
{
	nr_value(gain)[c] = (real)(l.a * (double)nr_value(gain)[c]);
	if (bias) nr_value(bias)[c] = (real)(l.a * (double)nr_value(bias)[c] + l.b);
}

/* Gain and bias at a site, of each side of sep by itself. The norms end with them, so that the sums tell what comes of it. */
static void fit_site(struct work *w, struct nr_surgery *s, int64_t i)
{
	const int64_t C = nr_cols(tap_of(&w->new, i));
	const char *site = s->site[i].name;
	static const char *const sides[] = { ".special", ".rest", "" };         /* as the parts, then all */
	struct nr_entry *gain[3], *bias[3];
	double before = 0, after = 0, length = 0;
	for (int k = 0; k < 3; k++) {
		gain[k] = affine(w->new.store, site, sides[k], "weight", C);
		bias[k] = affine(w->new.store, site, sides[k], "bias", C);
	}
	run_new(w, i, add_batch, memset(w->sum, 0, (size_t)(PARTS * C) * sizeof *w->sum));
	for (int64_t c = 0; c < C; c++) {
		const struct sums *part[PARTS] = { w->sum + c, w->sum + C + c }, all = both(part[0], part[1]);
		const struct line same = { 1, 0 }, whole = gain[PARTS] ? nearest(&all, bias[PARTS] != NULL) : same;
		if (gain[PARTS]) move(gain[PARTS], bias[PARTS], c, whole);
		for (int k = 0; k < PARTS; k++) {
			const struct line l = gain[k] ? nearest(part[k], bias[k] != NULL) : whole;
			if (gain[k]) move(gain[k], bias[k], c, l);
			before += residual(part[k], same);
			after += residual(part[k], l);
			length += part[k]->yy;
		}
	}
	s->site[i].copied = length > 0 ? sqrt((before < 0 ? 0 : before) / length) : NAN;
	s->site[i].fitted = length > 0 ? sqrt((after < 0 ? 0 : after) / length) : NAN;
}

static int fit_all(struct work *w, struct nr_surgery *s, struct nr_error *err)
{
	int64_t changed;
	struct feeding f = { &w->new, w->samples };
	const struct nr_feed feed = { w->samples->count / w->samples->batch, put, &f };
	for (int64_t i = 0; i < s->sites; i++) {
		if (nr_recalibrate_plan(w->new.store, w->new.plan, &feed, &changed, err)) return err->code;
		if (w->old.tap[i] && w->new.tap[i]) {
			if (keep_old(w, i, err)) return err->code;
			fit_site(w, s, i);
		}
		if (s->watch && s->watch(s->context, i + 1, s->sites)) return nr_fail(err, NR_EVALUE, "interrupted", NULL, NULL);
	}
	if (nr_recalibrate_plan(w->new.store, w->new.plan, &feed, &changed, err)) return err->code;
	if (keep_old(w, s->sites, err)) return err->code;
	struct difference d = { { 0 } };
	run_new(w, s->sites, add_difference, &d);
	for (int k = 0; k < 2; k++) {
		s->change[k] = d.length[k] > 0 ? sqrt(d.diff[k] / d.length[k]) : NAN;
		s->cosine[k] = d.rows[k] > 0 ? d.cosine[k] / d.rows[k] : NAN;
	}
	return NR_OK;
}

static int calibrate(struct nr_weights *w, struct nr_store *store, const char *norms, const struct nr_samples *samples,
	struct nr_surgery *s, struct nr_error *err)
{
	struct work k = { .old = { .store = w->store, .what = s }, .new = { .store = store, .what = s }, .samples = samples };
	int code = open_body(&k.old, w, w->norms, samples->batch, samples->length, err);
	if (!code) code = open_body(&k.new, w, norms, samples->batch, samples->length, err);
	int64_t widest = 1;
	for (int64_t i = 0; !code && i <= s->sites; i++)
		if (tap_of(&k.new, i) && nr_cols(tap_of(&k.new, i)) > widest) widest = nr_cols(tap_of(&k.new, i));
	if (!code && !(k.sum = malloc((size_t)(PARTS * widest) * sizeof *k.sum))) code = out_of_memory(err);
	if (!code) code = fit_all(&k, s, err);
	free(k.was);
	free(k.sum);
	close_body(&k.old);
	close_body(&k.new);
	return code;
}

int nr_surgery(struct nr_weights *w, const char *norms, const struct nr_samples *samples, struct nr_surgery *s, struct nr_error *err)
{
	struct nr_store *store;
	for (int k = 0; k < 2; k++) s->cosine[k] = s->change[k] = NAN;
	if (nr_store_make(&store, 0, err)) return err->code;
	int code = compare_plans(s, w, store, norms, err);
	if (!code) code = nr_store_seal(store, err);
	if (!code) carry_over(w->store, store, s);
	if (!code && samples && s->sites) code = calibrate(w, store, norms, samples, s, err);
	const char *kept = code ? NULL : nr_arena_strdup(w->arena, norms);
	if (!code && !kept) code = out_of_memory(err);
	if (code) {
		nr_store_free(store);
		return code;
	}
	nr_store_free(w->store);
	w->store = store;
	w->norms = kept;
	return NR_OK;
}
