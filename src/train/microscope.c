/* The norm microscope: see microscope.h. Sites are noted while the model is recorded; a value is measured right after the call
 * that makes it, before the plan gives its memory to another. */
#include "train/microscope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "math/chunk.h"
#include "math/moments.h"
#include "norma/norm.h"
#include "train/stepfile.h"

/* Columns after step, site and group. Sites have two sides, norms two parameters, blended norms (DTN, switch) two blends. */
enum { SIDE = 0, PER_SIDE = 6, GAIN = 12, BIAS = 15, BLEND = 18, PER_BLEND = 4, STATS = 26 };
static const char header[] = "step,site,group,in_mean,in_var,in_kurtosis,in_length,in_length_sd,in_length_max,"
			     "out_mean,out_var,out_kurtosis,out_length,out_length_sd,out_length_max,"
			     "gain_mean,gain_sd,gain_drift,bias_mean,bias_sd,bias_drift,"
			     "mean_ln,mean_in,mean_bn,mean_ln_sd,var_ln,var_in,var_bn,var_ln_sd\n";
static const char *const group_name[NR_GROUPS] = { "special", "tokens" };

struct watched { const struct nr_entry *entry; const real *first; };    /* entry NULL: the norm has none */
struct group {
	bool there;
	struct watched gain, bias;
	const struct nr_entry *logit[2], *choice[2];    /* of the mean and of the variance: DTN's, SwitchNorm's */
	double value[STATS];                            /* NAN: not measured */
};
struct site {
	const char *name;
	const nr_t *side[2];                            /* before and after the norm */
	int64_t special;
	const nr_t *valid;
	const int32_t *length;                          /* values of valid, or NULL */
	struct group group[NR_GROUPS];
	struct site *next;
};
struct look { int32_t call; struct nr_view v; struct site *site; int side; };
struct part { struct nr_token_moments of[NR_GROUPS]; };

struct nr_microscope {
	struct nr_arena *arena;
	struct nr_net *net;
	struct site *first, **end;
	struct look *look;                              /* by call */
	int64_t sites, looks, at;
	struct part *part;                              /* of the largest tensor's chunks of rows */
	struct nr_stepfile file, lambda;                /* lambda: not open without DTN */
};

static int no_memory(struct nr_error *err)
{
	return nr_fail(err, NR_EMEMORY, "cannot set up the microscope", NULL, "out of memory");
}

/* ---- sites ------------------------------------------------------------------------------------------------------------- */

static nr_t *at_site(void *context, struct nr_net *n, const char *name, const char *full, nr_t *before, nr_t *after)
{
	(void)name;
	struct nr_microscope *m = context;
	for (const struct site *s = m->first; s; s = s->next)
		if (!strcmp(s->name, full)) return after;               /* a model that is recorded twice: its first pass */
	if (before->dtype != NR_REAL || after->dtype != NR_REAL) return after;
	struct site *s = nr_arena_alloc(m->arena, sizeof *s);
	if (!s) return nr_net_fail(n, NR_EMEMORY, full, "out of memory");
	const struct nr_tokens *tok = before->nd >= 3 ? before->tok : NULL;
	const int64_t per = nr_rows_per_sample(before), special = tok ? tok->special : 0;
	*s = (struct site){ .name = full, .side = { before, after }, .special = special, .valid = tok ? tok->valid : NULL };
	s->group[NR_SPECIAL].there = special > 0;
	s->group[NR_TOKENS].there = special < per;
	before->flags |= NR_WATCHED;
	after->flags |= NR_WATCHED;
	*m->end = s;
	m->end = &s->next;
	m->sites++;
	return after;
}

int nr_microscope_make(struct nr_microscope **out, struct nr_net *n, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_microscope *m = nr_arena_alloc(arena, sizeof *m);
	*out = m;
	if (!m) return no_memory(err);
	*m = (struct nr_microscope){ .arena = arena, .net = n, .end = &m->first };
	nr_norms_watch(n, (struct nr_norm_watch){ at_site, m });
	return NR_OK;
}

/* ---- parameters of a site ---------------------------------------------------------------------------------------------- */

/* SITE.PART.NAME; an empty part is none. */
static const struct nr_entry *entry_of(const struct nr_microscope *m, const struct site *s, const char *part, const char *name)
{
	const char *full = nr_arena_printf(m->arena, "%s%s%s.%s", s->name, *part ? "." : "", part, name);
	return full ? nr_store_find(nr_net_store(m->net), full) : NULL;
}

static int watch_entry(struct nr_microscope *m, struct watched *w, const struct nr_entry *e, struct nr_error *err)
{
	real *first = e ? nr_arena_alloc(m->arena, (size_t)e->count * sizeof *first) : NULL;
	if (!e) return NR_OK;
	if (!first) return no_memory(err);
	memcpy(first, nr_value(e), (size_t)e->count * sizeof *first);
	*w = (struct watched){ e, first };
	return NR_OK;
}

static int find_parameters(struct nr_microscope *m, const struct site *s, struct group *g, const char *part, struct nr_error *err)
{
	static const char *const logit[2] = { "mean_logit", "var_logit" }, *const choice[2] = { "mean_weight", "var_weight" };
	const struct nr_entry *gain = entry_of(m, s, part, "weight");
	if (!gain) gain = entry_of(m, s, part, "scale");
	for (int i = 0; i < 2; i++) {
		g->logit[i] = entry_of(m, s, part, logit[i]);
		g->choice[i] = entry_of(m, s, part, choice[i]);
	}
	if (!g->logit[1]) g->logit[1] = g->logit[0];            /* DTN with one weight for both */
	if (watch_entry(m, &g->gain, gain, err)) return err->code;
	return watch_entry(m, &g->bias, entry_of(m, s, part, "bias"), err);
}

/* Has the site norms of its own for the two groups (sep)? Then their parameters stand below these names. */
static bool is_separate(const struct nr_microscope *m, const struct site *s)
{
	const struct nr_store *store = nr_net_store(m->net);
	const size_t n = strlen(s->name);
	for (int64_t i = 0; i < nr_store_count(store); i++) {
		const char *name = nr_store_at(store, i)->name;
		if (strncmp(name, s->name, n)) continue;
		if (!strncmp(name + n, ".special.", 9) || !strncmp(name + n, ".rest.", 6)) return true;
	}
	return false;
}

static int site_parameters(struct nr_microscope *m, struct site *s, struct nr_error *err)
{
	struct group *g = s->group;
	if (is_separate(m, s)) {
		if (find_parameters(m, s, &g[NR_SPECIAL], "special", err)) return err->code;
		return find_parameters(m, s, &g[NR_TOKENS], "rest", err);
	}
	return find_parameters(m, s, &g[g[NR_TOKENS].there ? NR_TOKENS : NR_SPECIAL], "", err);
}

static int by_call(const void *a, const void *b)
{
	const struct look *x = a, *y = b;
	if (x->call != y->call) return x->call < y->call ? -1 : 1;
	return x->side - y->side;
}

int nr_microscope_ready(struct nr_microscope *m, const struct nr_plan *p, struct nr_error *err)
{
	int64_t chunks = 0;
	m->look = nr_arena_alloc(m->arena, (size_t)(2 * m->sites + 1) * sizeof *m->look);
	if (!m->look) return no_memory(err);
	for (struct site *s = m->first; s; s = s->next) {
		if (site_parameters(m, s, err)) return err->code;
		s->length = s->valid ? nr_plan_data(p, s->valid) : NULL;
		for (int side = 0; side < 2; side++) {
			struct look l = { .site = s, .side = side };
			l.call = nr_plan_made(p, s->side[side], &l.v);
			if (l.call < 0) continue;
			chunks = nr_max64(chunks, nr_chunks(l.v.rows));
			m->look[m->looks++] = l;
		}
	}
	qsort(m->look, (size_t)m->looks, sizeof *m->look, by_call);
	m->part = nr_arena_alloc(m->arena, (size_t)(chunks + 1) * sizeof *m->part);
	return m->part ? NR_OK : no_memory(err);
}

/* ---- measuring --------------------------------------------------------------------------------------------------------- */

static void measure_rows(const struct look *l, int64_t q, struct part *p)
{
	const struct site *s = l->site;
	const struct nr_view *v = &l->v;
	*p = (struct part){ 0 };
	for (int64_t r = q * NR_CHUNK, end = nr_min64(v->rows, r + NR_CHUNK); r < end; r++) {
		const int64_t token = r % v->t;
		if (s->length && token >= s->length[r / v->t]) continue;
		nr_token_moments_row(&p->of[token < s->special ? NR_SPECIAL : NR_TOKENS], v->c, nr_row(v, r));
	}
}

/* Chunks of rows that do not depend on the threads, joined in order. */
static void measure(struct nr_microscope *m, const struct look *l)
{
	const int64_t chunks = nr_chunks(l->v.rows);
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < chunks; q++) measure_rows(l, q, &m->part[q]);
	for (int g = 0; g < NR_GROUPS; g++) {
		struct nr_token_moments all = { 0 };
		for (int64_t q = 0; q < chunks; q++) nr_token_moments_join(&all, &m->part[q].of[g]);
		if (!(all.value.n > 0)) continue;
		double *to = l->site->group[g].value + SIDE + PER_SIDE * l->side;
		to[0] = all.value.mean;
		to[1] = nr_moments_var(&all.value);
		to[2] = nr_moments_kurtosis(&all.value);
		to[3] = all.length.mean;
		to[4] = sqrt(nr_moments_var(&all.length));
		to[5] = all.longest;
	}
}

static void after(void *context, int32_t call)
{
	struct nr_microscope *m = context;
	for (; m->at < m->looks && m->look[m->at].call == call; m->at++) measure(m, &m->look[m->at]);
}

/* Mean, deviation, and the root mean square of how far it has moved. */
static void measure_parameter(const struct watched *w, double *to)
{
	if (!w->entry) return;
	const real *v = nr_value(w->entry);
	const struct nr_moments all = nr_moments_of(w->entry->count, v);
	double moved = 0;
	for (int64_t i = 0; i < w->entry->count; i++) {
		const double d = (double)v[i] - (double)w->first[i];
		moved += d * d;
	}
	to[0] = all.mean;
	to[1] = sqrt(nr_moments_var(&all));
	to[2] = sqrt(moved / all.n);
}

/* DTN: the share of a token's own statistics, over heads; the rest are those of the tokens around it. */
static void measure_logit(const struct nr_entry *e, double *to)
{
	struct nr_moments all = { 0 };
	for (int64_t h = 0; h < e->count; h++)
		nr_moments_join(&all, &(struct nr_moments){ .n = 1, .mean = 1 / (1 + exp(-(double)nr_value(e)[h])) });
	to[0] = all.mean;
	to[1] = 1 - all.mean;
	to[3] = sqrt(nr_moments_var(&all));
}

/* SwitchNorm: softmax of the weights of IN, LN and, if it is among the choices, BN. */
static void measure_choice(const struct nr_entry *e, double *to)
{
	static const int column[] = { 1, 0, 2 };
	const real *w = nr_value(e);
	double most = -INFINITY, sum = 0;
	for (int64_t i = 0; i < e->count && i < 3; i++) most = fmax(most, (double)w[i]);
	for (int64_t i = 0; i < e->count && i < 3; i++) sum += to[column[i]] = exp((double)w[i] - most);
	for (int64_t i = 0; i < e->count && i < 3; i++) to[column[i]] /= sum;
}

void nr_microscope_look(struct nr_microscope *m, struct nr_exec *ex)
{
	for (struct site *s = m->first; s; s = s->next)
		for (struct group *g = s->group; g < s->group + NR_GROUPS; g++) {
			for (int i = 0; i < STATS; i++) g->value[i] = NAN;
			measure_parameter(&g->gain, g->value + GAIN);
			measure_parameter(&g->bias, g->value + BIAS);
			for (int i = 0; i < 2; i++) {
				if (g->logit[i]) measure_logit(g->logit[i], g->value + BLEND + PER_BLEND * i);
				if (g->choice[i]) measure_choice(g->choice[i], g->value + BLEND + PER_BLEND * i);
			}
		}
	m->at = 0;
	ex->after = after;
	ex->context = m;
}

/* ---- the file ---------------------------------------------------------------------------------------------------------- */

/* Calls for each head of each DTN: its site, "mean" or "var", and the weight of a token's own statistics. */
static void each_lambda(const struct nr_microscope *m, void (*call)(struct nr_str *, const char *, const char *, int64_t, double),
	struct nr_str *to)
{
	static const char *const what[2] = { "mean", "var" };
	for (const struct site *s = m->first; s; s = s->next)
		for (int g = 0; g < NR_GROUPS; g++)
			for (int i = 0; i < 2; i++) {
				const struct nr_entry *e = s->group[g].logit[i];
				for (int64_t h = 0; e && h < e->count; h++)
					call(to, s->name, what[i], h, 1 / (1 + exp(-(double)nr_value(e)[h])));
			}
}

static void add_lambda_name(struct nr_str *s, const char *site, const char *what, int64_t head, double value)
{
	(void)value;
	nr_str_printf(s, ",%s.%s.%lld", site, what, (long long)head);
}

static void add_lambda(struct nr_str *s, const char *site, const char *what, int64_t head, double value)
{
	(void)site, (void)what, (void)head;
	nr_str_printf(s, ",%.9g", value);
}

static int open_lambda(struct nr_microscope *m, const char *path, bool resume, int64_t step, struct nr_error *err)
{
	struct nr_str names = { 0 };
	each_lambda(m, add_lambda_name, &names);
	const char *line = names.len ? nr_arena_printf(m->arena, "step%s\n", nr_str_text(&names)) : NULL;
	const int code = names.failed || (names.len && !line) ? no_memory(err)
			 : line                               ? nr_stepfile_open(&m->lambda, path, line, resume, step, err)
							      : NR_OK;
	nr_str_release(&names);
	return code;
}

int nr_microscope_open(struct nr_microscope *m, const char *path, const char *lambda, bool resume, int64_t step, struct nr_error *err)
{
	if (nr_stepfile_open(&m->file, path, header, resume, step, err)) return err->code;
	return open_lambda(m, lambda, resume, step, err);
}

static void add_line(struct nr_str *s, int64_t step, const char *site, const char *group, const double *value)
{
	nr_str_printf(s, "%lld,%s,%s", (long long)step, site, group);
	for (int i = 0; i < STATS; i++)
		if (isnan(value[i])) nr_str_add(s, ",");
		else nr_str_printf(s, ",%.9g", value[i]);       /* as metrics.csv has them */
	nr_str_add(s, "\n");
}

int nr_microscope_write(struct nr_microscope *m, const struct nr_microscope *seen, int64_t step, struct nr_error *err)
{
	nr_stepfile_begin(&m->file);
	for (const struct site *s = seen->first; s; s = s->next)
		for (int g = 0; g < NR_GROUPS; g++)
			if (s->group[g].there) add_line(&m->file.text, step, s->name, group_name[g], s->group[g].value);
	if (nr_stepfile_write(&m->file, err) || !m->lambda.plain) return err->code;
	nr_stepfile_begin(&m->lambda);
	nr_str_printf(&m->lambda.text, "%lld", (long long)step);
	each_lambda(m, add_lambda, &m->lambda.text);
	nr_str_add(&m->lambda.text, "\n");
	return nr_stepfile_write(&m->lambda, err);
}

int nr_microscope_sync(struct nr_microscope *m, struct nr_error *err)
{
	if (nr_stepfile_sync(&m->file, err)) return err->code;
	return m->lambda.plain ? nr_stepfile_sync(&m->lambda, err) : NR_OK;
}

void nr_microscope_close(struct nr_microscope *m)
{
	if (!m) return;
	nr_stepfile_close(&m->file);
	nr_stepfile_close(&m->lambda);
}
