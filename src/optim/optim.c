/* The registry of optimizers, their options, and the frame of a step: chunks, gradient norm, clipping. See optimizers.h. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/registry.h"
#include "math/chunk.h"
#include "optim/optimizers.h"

#define OPTIMIZER(name) extern const struct nr_optimizer nr_optimizer_##name;
#include "optim/optimizers.def"
#undef OPTIMIZER

#define OPTIMIZER(name) &nr_optimizer_##name,
static const struct nr_optimizer *const built_in[] = {
#include "optim/optimizers.def"
	NULL
};
#undef OPTIMIZER
enum { MAX_KINDS = sizeof built_in / sizeof *built_in - 1 + NR_REGISTRY_ROOM };

const struct nr_optimizer *const *nr_optimizers(void) { return NR_REGISTRY(NR_OF_OPTIMIZERS, nr_optimizer, built_in); }

int32_t nr_optim_kind(const char *name)
{
	for (int32_t i = 0; nr_optimizers()[i]; i++)
		if (!strcmp(nr_optimizers()[i]->name, name)) return i;
	return -1;
}

static const struct nr_optimizer *optimizer(const struct nr_optim *o)
{
	int32_t n = 0;
	while (nr_optimizers()[n]) n++;
	return o->kind >= 0 && o->kind < n ? nr_optimizers()[o->kind] : NULL;
}

/* ---- options --------------------------------------------------------------------------------------------------------------- */

static const char *kinds[MAX_KINDS + 1];
static const char *const clips[] = { "none", "global", "global-bv", "tensor", NULL };

static const struct nr_option first[] = {
	NR_OPT_ENUM(struct nr_optim, kind, "adamw", kinds, "update rule"),
	NR_OPT_FLOAT(struct nr_optim, lr, 1e-3, 0, 1e6, "learning rate before the schedule"),
	NR_OPT_FLOAT(struct nr_optim, weight_decay, 0.05, 0, 1e6, "weight decay, for parameters that have any"),
	NR_OPT_END
};
static const struct nr_option last[] = {
	NR_OPT_ENUM(struct nr_optim, clip, "none", clips, "what gradient clipping measures the norm of"),
	NR_OPT_FLOAT(struct nr_optim, clip_norm, 1, 0, 1e30, "largest norm allowed by clipping"),
	NR_OPT_FLOAT(struct nr_optim, layer_decay, 1, 0, 1, "learning-rate factor from one layer to the one below"),
	NR_OPT_END
};

enum { MAX_ROWS = 64 };
static struct nr_option rows[MAX_ROWS];
static char helps[MAX_ROWS][160];
static int n_rows;
static size_t own_at[MAX_KINDS];            /* where an optimizer's own options stand in nr_optim.own */
static int built;                           /* optimizers whose rows are there */
static size_t own_used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A row that several optimizers read stands there once, and its help says whose it is. */
static void add_row(const struct nr_option *row, size_t offset, const char *whose)
{
	int i = 0;
	while (i < n_rows && strcmp(rows[i].name, row->name) != 0) i++;
	if (i + 1 >= MAX_ROWS) return;
	if (i == n_rows) {
		rows[n_rows++] = *row;
		rows[i].offset += offset;
		snprintf(helps[i], sizeof helps[i], "%s", row->help);
		rows[i].help = helps[i];
	}
	const size_t n = strlen(helps[i]), bracket = n && helps[i][n - 1] == ')';
	if (whose) snprintf(helps[i] + n - bracket, sizeof helps[i] - n, bracket ? ", %s)" : " (%s)", whose);
}

static void add_rows(const struct nr_option *row, size_t offset, const char *whose)
{
	for (; row && row->name; row++) add_row(row, offset, whose);
}

static size_t own_size(const struct nr_optimizer *of) { return (of->own_size + sizeof(double) - 1) / sizeof(double) * sizeof(double); }

/* Rows of optimizers that came since the last time; those that registered ones bring stand behind the others. */
static void build(void)
{
	pthread_mutex_lock(&lock);
	const bool all = built;
	if (!all) add_rows(first, 0, NULL);
	for (const struct nr_optimizer *of; (of = nr_optimizers()[built]); built++) {
		kinds[built] = of->name;
		add_rows(of->options, 0, of->name);
		if (!of->own || own_used + own_size(of) > NR_FIELD_SIZE(struct nr_optim, own)) continue;
		own_at[built] = own_used;
		add_rows(of->own, offsetof(struct nr_optim, own) + own_used, of->name);
		own_used += own_size(of);
	}
	if (!all) add_rows(last, 0, NULL);
	pthread_mutex_unlock(&lock);
}

size_t nr_optim_own_left(void)
{
	build();
	return NR_FIELD_SIZE(struct nr_optim, own) - own_used;
}

const struct nr_option *nr_optim_options(void)
{
	build();
	return rows;
}

/* ---- chunks ---------------------------------------------------------------------------------------------------------------- */

static int64_t chunks_of(const struct nr_segment *s)
{
	return s->grad && s->count > 0 ? (s->count + NR_UPDATE_CHUNK - 1) / NR_UPDATE_CHUNK : 0;
}

/* Numbers the chunks; returns how many there are. */
static int64_t number(const struct nr_segment *seg, int64_t count, struct nr_optim_arg *a)
{
	int64_t total = 0;
	for (int64_t i = 0; i < count; i++) {
		if (a) a[i].first = total;
		total += chunks_of(&seg[i]);
	}
	return total;
}

static struct nr_optim_chunk chunk(const struct nr_optim_call *k, int64_t c)
{
	/* The last parameter with first <= c; empty ones share a number and come before. */
	int64_t lo = 0, hi = k->count - 1;
	while (lo < hi) {
		const int64_t mid = lo + (hi - lo + 1) / 2;
		if (k->arg[mid].first <= c) lo = mid;
		else hi = mid - 1;
	}
	while (chunks_of(&k->segment[lo]) == 0) lo--;
	const int64_t at = (c - k->arg[lo].first) * NR_UPDATE_CHUNK;
	return (struct nr_optim_chunk){ c, lo, at, nr_min64(NR_UPDATE_CHUNK, k->segment[lo].count - at) };
}

enum { THREADS_FROM = 4 * NR_UPDATE_CHUNK }; /* values: many small parameters are still little work */

static int64_t values(const struct nr_optim_call *k)
{
	int64_t sum = 0;
	for (int64_t i = 0; i < k->count; i++) sum += chunks_of(&k->segment[i]) ? k->segment[i].count : 0;
	return sum;
}

void nr_optim_each(const struct nr_optim_call *k, void (*run)(const struct nr_optim_call *, struct nr_optim_chunk))
{
#pragma omp parallel for schedule(static) if (values(k) >= THREADS_FROM)
	for (int64_t c = 0; c < k->chunks; c++) run(k, chunk(k, c));
}

double nr_optim_fold(const struct nr_optim_call *k, int64_t i, const double *part)
{
	double s = 0;
	for (int64_t c = 0; c < chunks_of(&k->segment[i]); c++) s += part[k->arg[i].first + c];
	return s;
}

/* ---- a step ---------------------------------------------------------------------------------------------------------------- */

/* The scratch: arguments, a number for each chunk, and the optimizer's own. */
static struct nr_optim_call begin(const struct nr_segment *seg, int64_t count, void *scratch, struct nr_optim_arg **arg, double **part)
{
	*arg = scratch;
	*part = (double *)(*arg + count);
	const int64_t chunks = number(seg, count, *arg);
	return (struct nr_optim_call){ .segment = seg, .arg = *arg, .count = count, .chunks = chunks, .scratch = *part + chunks };
}

size_t nr_optim_scratch(const struct nr_optim *o, const struct nr_segment *seg, int64_t count)
{
	const struct nr_optimizer *of = o ? optimizer(o) : NULL;
	const int64_t chunks = number(seg, count, NULL);
	const size_t own = of ? of->scratch(seg, count, chunks) : 0;
	return (size_t)count * sizeof(struct nr_optim_arg) + (size_t)chunks * sizeof(double) + own;
}

static void squares(const struct nr_optim_call *k, struct nr_optim_chunk c)
{
	double *part = (double *)k->scratch - k->chunks;
	part[c.number] = nr_update_active->sum_sq(c.n, k->segment[c.parameter].grad + c.at);
}

static double grad_norm(const struct nr_optim_call *k, const double *part)
{
	double sum = 0;
	nr_optim_each(k, squares);
	for (int64_t c = 0; c < k->chunks; c++) sum += part[c];
	return sqrt(sum);
}

double nr_optim_grad_norm(const struct nr_segment *seg, int64_t count, void *scratch)
{
	struct nr_optim_arg *arg;
	double *part;
	const struct nr_optim_call k = begin(seg, count, scratch, &arg, &part);
	return grad_norm(&k, part);
}

double nr_clip_scale(int clip, double clip_norm, double norm)
{
	double s = 1;
	if (clip == NR_CLIP_GLOBAL || clip == NR_CLIP_TENSOR) s = clip_norm / (norm + 1e-6);
	if (clip == NR_CLIP_GLOBAL_BV && norm > 0) s = clip_norm / norm;
	return s < 1 ? s : 1;
}

int nr_optim_slots(const struct nr_optim *o)
{
	const struct nr_optimizer *of = optimizer(o);
	return of ? of->slots(o) : 0;
}

int nr_optim_step(const struct nr_optim *o, const struct nr_rates *r, int64_t t, const struct nr_segment *seg, int64_t count, void *scratch,
	struct nr_optim_info *info)
{
	const struct nr_optimizer *of = optimizer(o);
	struct nr_optim_arg *arg;
	double *part, norm, clip = 1;
	if (!of) return NR_ENAME;
	build();
	struct nr_optim_call k = begin(seg, count, scratch, &arg, &part);
	k.o = o, k.own = (const char *)o->own + own_at[o->kind], k.t = t;
	if (info || o->clip != NR_CLIP_NONE) {
		norm = grad_norm(&k, part);
		if (o->clip != NR_CLIP_TENSOR) clip = nr_clip_scale(o->clip, o->clip_norm, norm);
		if (info) *info = (struct nr_optim_info){ norm, clip };
		if (!isfinite(norm)) return NR_EDIVERGED;
	}
	for (int64_t i = 0; i < count; i++) {
		arg[i].scale = o->clip == NR_CLIP_TENSOR ? nr_clip_scale(o->clip, o->clip_norm, sqrt(nr_optim_fold(&k, i, part))) : clip;
		arg[i].lr = r->lr * seg[i].lr_scale;
		arg[i].decay = r->weight_decay * seg[i].decay;
	}
	of->step(&k);
	for (int64_t i = 0; i < count; i++) {
		if (!seg[i].grad || seg[i].nd != 2 || !seg[i].d) continue;
		if (seg[i].flags & NR_SEGMENT_UNIT_ROWS) nr_rows_to_unit(seg[i].d[0], seg[i].d[1], seg[i].value);
		if (seg[i].flags & NR_SEGMENT_UNIT_COLUMNS) nr_columns_to_unit(seg[i].d[0], seg[i].d[1], seg[i].value);
	}
	return NR_OK;
}
