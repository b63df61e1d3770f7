/* The store: every parameter and buffer by name, in flat slabs so that an optimizer is one pass. Parameters come first;
 * each entry begins at a multiple of 16 values (one line of 64 bytes in float). */
#include "graph/store.h"

#include "base/str.h"
#include "graph/net.h"
#include "graph/streams.h"
#include "math/random.h"
#include "math/transpose.h"
#include "math/update.h"

int nr_store_make(struct nr_store **out, uint64_t seed, struct nr_error *err)
{
	struct nr_arena *a = nr_arena_make();
	struct nr_store *s = *out = a ? nr_arena_alloc(a, sizeof *s) : NULL;
	if (!s) {
		nr_arena_free(a);
		return nr_fail(err, NR_EMEMORY, "cannot make a store", NULL, "out of memory");
	}
	s->arena = a;
	s->seed = seed;
	return 0;
}

void nr_store_free(struct nr_store *s)
{
	if (!s) return;
	nr_slab_free(s->value, (size_t)s->total * sizeof(real));
	nr_slab_free(s->grad, (size_t)s->params * sizeof(real));
	nr_slab_free(s->turned, (size_t)s->params * sizeof(real));
	for (int i = 0; i < 2; i++) nr_slab_free(s->moment[i], (size_t)s->params * sizeof(real));
	nr_arena_free(s->arena);
}

int64_t nr_store_count(const struct nr_store *s) { return s->n_entry; }
struct nr_entry *nr_store_at(const struct nr_store *s, int64_t i) { return s->entry[i]; }

/* FNV-1a. */
static uint32_t hash_of(const char *name)
{
	uint32_t h = 2166136261u;
	for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
	return h;
}

/* The slot of the name, or the empty one where it would go. */
static int64_t *slot_of(const struct nr_store *s, const char *name)
{
	const uint32_t mask = (uint32_t)(2 * s->cap_entry - 1);
	uint32_t i = hash_of(name) & mask;
	while (s->slot[i] && strcmp(s->entry[s->slot[i] - 1]->name, name) != 0) i = (i + 1) & mask;
	return &s->slot[i];
}

struct nr_entry *nr_store_find(const struct nr_store *s, const char *name)
{
	const int64_t at = s->slot ? *slot_of(s, name) : 0;
	return at ? s->entry[at - 1] : NULL;
}

static int grow(struct nr_store *s)
{
	const int64_t cap = s->cap_entry ? s->cap_entry * 2 : 128;
	struct nr_entry **more = nr_arena_alloc(s->arena, (size_t)cap * sizeof *more);
	int64_t *slot = nr_arena_alloc(s->arena, 2 * (size_t)cap * sizeof *slot);
	if (!more || !slot) return NR_EMEMORY;
	if (s->n_entry) memcpy(more, s->entry, (size_t)s->n_entry * sizeof *more);
	s->entry = more;
	s->slot = slot;
	s->cap_entry = cap;
	for (int64_t i = 0; i < s->n_entry; i++) *slot_of(s, s->entry[i]->name) = i + 1;
	return 0;
}

static int same_shape(const struct nr_entry *e, int nd, const int64_t *d)
{
	return e->nd == nd && !memcmp(e->d, d, (size_t)nd * sizeof *d);
}

/* Found or made. */
struct nr_entry *nr_store_need(struct nr_store *s, const char *name, int init, int buffer, int nd, const int64_t *d,
	struct nr_error *err)
{
	struct nr_entry *e = nr_store_find(s, name);
	if (e && (!same_shape(e, nd, d) || e->buffer != buffer)) {
		nr_fail(err, NR_ESHAPE, "cannot use the parameter", name, "it was made with another shape or kind");
		return NULL;
	}
	if (e) return e;
	if (s->value) {
		nr_fail(err, NR_EUSAGE, "cannot add the parameter", name, "the store is sealed: a plan was made from it");
		return NULL;
	}
	if (s->n_entry == s->cap_entry) grow(s);
	e = s->n_entry < s->cap_entry ? nr_arena_alloc(s->arena, sizeof *e) : NULL;
	if (!e || !(e->name = nr_arena_strdup(s->arena, name))) {
		nr_fail(err, NR_EMEMORY, "cannot add the parameter", name, "out of memory");
		return NULL;
	}
	e->nd = nd;
	e->count = 1;
	for (int i = 0; i < nd; i++) e->count *= e->d[i] = d[i];
	e->init = init;
	e->value = e->gain = 1;
	e->buffer = buffer;
	e->store = s;
	e->number = s->n_entry;
	s->entry[s->n_entry++] = e;
	*slot_of(s, name) = s->n_entry;
	return e;
}

int nr_entry_fill(struct nr_entry *e, void (*fill)(const struct nr_entry *, const void *, real *), const void *conf, size_t size,
	struct nr_error *err)
{
	if (!e || e->fill) return 0; /* found again by another graph: it has its values */
	void *copy = nr_arena_alloc(e->store->arena, size + 1);
	if (!copy) return nr_fail(err, NR_EMEMORY, "cannot add the parameter", e->name, "out of memory");
	if (size) memcpy(copy, conf, size);
	e->fill_conf = copy;
	e->fill = fill;
	return 0;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static int64_t lay_out(struct nr_store *s, int buffers, int64_t at)
{
	for (int64_t i = 0; i < s->n_entry; i++) {
		struct nr_entry *e = s->entry[i];
		if (e->buffer != buffers) continue;
		e->offset = at;
		at += (e->count + 15) / 16 * 16;
	}
	return at;
}

/* Initial values are a pure function of (seed, name, index): models that differ in a norm start from the same weights. */
static void fill(const struct nr_entry *e, uint64_t seed)
{
	real *v = nr_value(e);
	if (e->fill) {
		e->fill(e, e->fill_conf, v);
		return;
	}
	const struct nr_rng rng = nr_rng_make(seed, NR_STREAM_INIT, hash_of(e->name));
	const double fan_out = (double)e->d[0], fan_in = (double)e->count / fan_out;
	const double bound = sqrt(6 / (fan_in + fan_out));
	switch (e->init & NR_INIT_KIND) {
	case NR_ONES:
		for (int64_t i = 0; i < e->count; i++) v[i] = (real)e->value;
		break;
	case NR_XAVIER:
		nr_fill_uniform(e->count, v, -bound, bound, rng, 0);
		break;
	case NR_NORMAL_02: nr_fill_normal(e->count, v, 0, 0.02, rng, 0); break;
	case NR_TRUNC_02: nr_fill_trunc_normal(e->count, v, 0, 0.02, -0.04, 0.04, rng, 0); break;
	default: break; /* slabs are zero */
	}
	if (e->init & NR_ZERO_ROW) memset(v, 0, (size_t)(e->count / e->d[0]) * sizeof *v);
	if (e->init & NR_UNIT_ROWS) nr_rows_to_unit(e->d[0], e->count / e->d[0], v);
	if (e->init & NR_UNIT_COLUMNS) nr_columns_to_unit(e->d[0], e->count / e->d[0], v);
}

double nr_store_bytes(const struct nr_store *s) { return ((double)s->params + (double)s->total) * sizeof(real); }

int nr_store_reserve(struct nr_store *s, struct nr_error *err)
{
	if (s->value) return 0;
	s->params = lay_out(s, 0, 0);
	s->total = lay_out(s, 1, s->params);
	const int code = nr_memory_check(nr_store_bytes(s), "cannot make room for the parameters", NULL, err);
	if (code) return nr_hint(err, "%s", NR_SMALLER);
	s->value = nr_slab_make((size_t)s->total * sizeof(real));
	if (s->params) s->grad = nr_slab_make((size_t)s->params * sizeof(real));
	if (!s->value || (s->params && !s->grad))
		return nr_fail(err, NR_EMEMORY, "cannot make room for the parameters", NULL, "%lld values were refused",
			(long long)s->total);
	return 0;
}

int nr_store_seal(struct nr_store *s, struct nr_error *err)
{
	if (s->filled) return 0;
	const int code = nr_store_reserve(s, err);
	if (code) return code;
	for (int64_t i = 0; i < s->n_entry; i++) {
		const struct nr_entry *e = s->entry[i];
		fill(e, s->seed);
		for (int64_t k = e->gain_from; k < e->count && e->gain != 1; k++) nr_value(e)[k] *= (real)e->gain;
	}
	s->filled = true;
	return 0;
}

real *nr_value(const struct nr_entry *e) { return e->store->value ? e->store->value + e->offset : NULL; }
real *nr_grad(const struct nr_entry *e) { return e->buffer || !e->store->grad ? NULL : e->store->grad + e->offset; }

real *nr_moment(const struct nr_entry *e, int which, struct nr_error *err)
{
	struct nr_store *s = e->store;
	if (e->buffer || !s->value) return NULL;
	if (!s->moment[which]) s->moment[which] = nr_slab_make((size_t)s->params * sizeof(real));
	if (!s->moment[which]) {
		nr_fail(err, NR_EMEMORY, "cannot make room for the optimizer", NULL, "%lld values were refused", (long long)s->params);
		return NULL;
	}
	return s->moment[which] + e->offset;
}

void nr_store_fix(struct nr_store *s) { s->fixed = 1; }

real *nr_store_turned(struct nr_entry *e)
{
	struct nr_store *s = e->store;
	if (!s->fixed || e->buffer) return NULL;
	if (!s->turned) s->turned = nr_slab_make((size_t)s->params * sizeof(real));
	if (!s->turned) return NULL;
	real *y = s->turned + e->offset;
	if (!e->turned) nr_matrix_transpose(e->d[0], e->count / e->d[0], nr_value(e), e->count / e->d[0], y, e->d[0], 0);
	e->turned = 1;
	return y;
}

real *nr_store_values(const struct nr_store *s, int64_t *count)
{
	*count = s->total;
	return s->value;
}
real *nr_store_grads(const struct nr_store *s, int64_t *count)
{
	*count = s->params;
	return s->grad;
}
