/* The recorder: scopes, inputs, parameters, op applications. The first error sticks; builders then pass NULL along. */
#include "graph/net.h"

#include <omp.h>
#include <stdarg.h>
#include <stdlib.h>

struct nr_net *nr_net_make(struct nr_store *store)
{
	struct nr_arena *a = nr_arena_make();
	struct nr_net *n = a ? nr_arena_alloc(a, sizeof *n) : NULL;
	if (!n) {
		nr_arena_free(a);
		return NULL;
	}
	n->arena = a;
	n->store = store;
	return n;
}

void nr_net_free(struct nr_net *n)
{
	if (n) nr_arena_free(n->arena);
}

const struct nr_error *nr_net_error(const struct nr_net *n) { return &n->error; }
struct nr_store *nr_net_store(const struct nr_net *n) { return n->store; }
struct nr_arena *nr_net_arena(const struct nr_net *n) { return n->arena; }

struct nr_net *nr_at(struct nr_net *n, const char *file, int line)
{
	n->file = file;
	n->line = line;
	return n;
}

static const char *base_name(const char *file)
{
	const char *slash = strrchr(file, '/');
	return slash ? slash + 1 : file;
}

__attribute__((format(printf, 5, 0))) static nr_t *fail(struct nr_net *n, enum nr_err code, const char *op,
	const char *subject, const char *fmt, va_list ap)
{
	char text[512], what[96], place[96] = "";       /* unknown before the first nr_at */
	vsnprintf(text, sizeof text, fmt, ap);
	if (n->file) snprintf(place, sizeof place, " [%s:%d]", base_name(n->file), n->line);
	snprintf(what, sizeof what, "cannot build %s", op);
	nr_fail(&n->error, code, what, subject && *subject ? subject : "(top)", "%s%s", text, place);
	return NULL;
}

nr_t *nr_net_fail(struct nr_net *n, enum nr_err code, const char *subject, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fail(n, code, "the graph", subject ? subject : n->scope, fmt, ap);
	va_end(ap);
	return NULL;
}

int nr_expect(struct nr_node *k, int condition, const char *fmt, ...)
{
	if (condition) return 0;
	va_list ap;
	va_start(ap, fmt);
	fail(k->net, NR_ESHAPE, k->op->name, k->where.scope, fmt, ap);
	va_end(ap);
	return NR_ESHAPE;
}

static void out_of_memory(struct nr_net *n)
{
	nr_fail(&n->error, NR_EMEMORY, "cannot record", n->scope, "out of memory");
}

/* Lists double in the arena; the old copy stays behind, which costs at most as much again. */
static int grow(struct nr_net *n, void **list, int32_t count, int32_t *cap)
{
	if (count < *cap) return 0;
	int32_t more = *cap ? *cap * 2 : 256;
	void **p = nr_arena_alloc(n->arena, (size_t)more * sizeof *p);
	if (!p) {
		out_of_memory(n);
		return NR_EMEMORY;
	}
	if (count) memcpy(p, *(void ***)list, (size_t)count * sizeof *p);
	*(void ***)list = p;
	*cap = more;
	return 0;
}

static nr_t *make_tensor(struct nr_net *n, enum nr_dtype dtype, int nd, const int64_t *d, const struct nr_tokens *tok)
{
	if (nd < 0 || nd > NR_MAXD) return nr_net_fail(n, NR_ELIMIT, NULL, "%d dimensions, at most %d", nd, NR_MAXD);
	if (grow(n, (void **)&n->tensor, n->n_tensor, &n->cap_tensor)) return NULL;
	nr_t *t = nr_arena_alloc(n->arena, sizeof *t);
	if (!t) {
		out_of_memory(n);
		return NULL;
	}
	t->dtype = dtype;
	t->nd = nd;
	t->tok = tok;
	int64_t count = 1;
	for (int i = 0; i < nd; i++) {
		t->d[i] = d[i];
		if (d[i] < 1 || __builtin_mul_overflow(count, d[i], &count) || count > INT64_MAX / 64)
			return nr_net_fail(n, NR_ESHAPE, NULL,
				"size %lld of dimension %d is not positive, or the tensor is too large", (long long)d[i], i);
	}
	t->id = n->n_tensor;
	n->tensor[n->n_tensor++] = t;
	return t;
}

static struct nr_node *make_node(struct nr_net *n)
{
	if (grow(n, (void **)&n->node, n->n_node, &n->cap_node)) return NULL;
	struct nr_node *k = nr_arena_alloc(n->arena, sizeof *k);
	if (!k) {
		out_of_memory(n);
		return NULL;
	}
	k->net = n;
	k->threads = omp_get_max_threads();
	k->id = n->n_node;
	k->where = (struct nr_where){ nr_arena_strdup(n->arena, n->scope), n->file, n->line };
	n->node[n->n_node++] = k;
	return k;
}

/* ---- scopes ---------------------------------------------------------------------------------------------------- */

void nr_push(struct nr_net *n, const char *fmt, ...)
{
	size_t used = strlen(n->scope);
	if (n->depth == NR_MAXDEPTH) {
		nr_net_fail(n, NR_ELIMIT, NULL, "scopes are nested too deep");
		return;
	}
	n->of[n->depth] = 0;
	n->mark[n->depth++] = (int32_t)used;
	if (used && used + 1 < sizeof n->scope) n->scope[used++] = '.';
	va_list ap;
	va_start(ap, fmt);
	int more = vsnprintf(n->scope + used, sizeof n->scope - used, fmt, ap);
	va_end(ap);
	if (more < 0 || (size_t)more >= sizeof n->scope - used) nr_net_fail(n, NR_ELIMIT, NULL, "the scope's name is too long");
	if (!more) n->scope[n->mark[n->depth - 1]] = 0; /* an empty name is no name */
}

void nr_push_nth(struct nr_net *n, const char *name, int64_t i, int64_t of)
{
	const int32_t depth = n->depth;
	nr_push(n, "%s.%lld", name, (long long)i);
	if (n->depth > depth) n->of[depth] = of;
}

int64_t nr_net_block(const struct nr_net *n)
{
	int32_t d = n->depth;
	while (d > 0 && !n->of[d - 1]) d--;
	if (!d) return -1;
	const int32_t end = d < n->depth ? n->mark[d] : (int32_t)strlen(n->scope);
	int32_t at = end;
	while (at > 0 && n->scope[at - 1] != '.') at--;
	return strtoll(n->scope + at, NULL, 10);
}

nr_t *nr_pop(struct nr_net *n, nr_t *x)
{
	if (n->depth) n->scope[n->mark[--n->depth]] = 0;
	return x;
}

static const char *scoped(struct nr_net *n, const char *name)
{
	const char *s = n->scope[0] && name[0] ? nr_arena_printf(n->arena, "%s.%s", n->scope, name)
					       : nr_arena_strdup(n->arena, n->scope[0] ? n->scope : name);
	if (!s) out_of_memory(n);
	return s;
}

/* ---- leaves ---------------------------------------------------------------------------------------------------- */

nr_t *nr_input(struct nr_net *n, const char *name, enum nr_dtype dtype, struct nr_shape s)
{
	nr_t *t = n->error.code ? NULL : make_tensor(n, dtype, s.nd, s.d, NULL);
	if (!t) return NULL;
	t->name = scoped(n, name);
	t->flags = NR_INPUT;
	return t;
}

static int need_leaf(struct nr_net *n, int64_t number)
{
	while (number >= n->cap_leaf)
		if (grow(n, (void **)&n->leaf, n->cap_leaf, &n->cap_leaf)) return NR_EMEMORY;
	return 0;
}

static nr_t *leaf(struct nr_net *n, const char *name, int init, int buffer, int nd, const int64_t *d)
{
	if (n->error.code) return NULL;
	const char *full = scoped(n, name);
	struct nr_entry *e = full ? nr_store_find(n->store, full) : NULL;
	nr_t *t = e && e->number < n->cap_leaf ? n->leaf[e->number] : NULL;
	if (t && (t->nd != nd || memcmp(t->d, d, (size_t)nd * sizeof *d)))
		return nr_net_fail(n, NR_ESHAPE, full, "it is used with two shapes");
	if (t) return t; /* tied weights: one tensor per name in a net */
	e = full ? nr_store_need(n->store, full, init, buffer, nd, d, &n->error) : NULL;
	t = e ? make_tensor(n, NR_REAL, nd, d, NULL) : NULL;
	if (!t || need_leaf(n, e->number)) return NULL;
	n->leaf[e->number] = t;
	t->name = full;
	t->entry = e;
	t->flags = buffer ? NR_BUFFER : NR_PARAM;
	return t;
}

nr_t *nr_param(struct nr_net *n, const char *name, int init, struct nr_shape s)
{
	if (n->weights && (init & NR_INIT_KIND) == NR_XAVIER) init = (init & ~NR_INIT_KIND) | n->weights;
	return leaf(n, name, init, 0, s.nd, s.d);
}

nr_t *nr_buffer(struct nr_net *n, const char *name, int init, struct nr_shape s) { return leaf(n, name, init, 1, s.nd, s.d); }

void nr_weights_start_as(struct nr_net *n, int init) { n->weights = init; }

void nr_net_keep_hidden(struct nr_net *n, int on) { n->keep_hidden = on; }

nr_t *nr_hidden(struct nr_net *n, nr_t *x, const char *fmt, ...)
{
	if (!n->keep_hidden || !x) return x;
	char name[128];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(name, sizeof name, fmt, ap);
	va_end(ap);
	return nr_tap(n, name, x);
}

void nr_init_gain(struct nr_net *n, const char *name, int64_t from, double gain)
{
	const char *full = nr_arena_printf(n->arena, "%s%s%s", n->scope, n->scope[0] ? "." : "", name);
	struct nr_entry *e = full ? nr_store_find(n->store, full) : NULL;
	if (e) e->gain = gain, e->gain_from = from;
	else if (!n->error.code) nr_net_fail(n, NR_ENAME, name, "no such parameter to scale");
}

nr_t *nr_with_tokens(struct nr_net *n, nr_t *x, struct nr_tokens tok)
{
	struct nr_tokens *copy = x ? nr_arena_alloc(n->arena, sizeof *copy) : NULL;
	if (!copy) return NULL;
	*copy = tok;
	x->tok = copy;
	return x;
}

/* ---- applications ---------------------------------------------------------------------------------------------- */

nr_t *nr_out(struct nr_node *k, int j, enum nr_dtype dtype, int nd, const int64_t *d, const struct nr_tokens *tok)
{
	nr_t *t = make_tensor(k->net, dtype, nd, d, tok);
	if (!t) return NULL;
	t->src = k;
	k->out[j] = t;
	if (j >= k->n_out) k->n_out = j + 1;
	return t;
}

nr_t *nr_out_like(struct nr_node *k, int j, const nr_t *x) { return nr_out(k, j, x->dtype, x->nd, x->d, x->tok); }

int nr_has_gaps(const nr_t *x) { return x->src && x->src->op == &nr_op_span; }
int nr_op_accepts_gaps(const struct nr_op *op, int i)
{
	return op->flags & NR_STRIDED && (i == 0 || op->flags & (NR_VIEW | NR_SUM));
}

nr_t *nr_tap(struct nr_net *n, const char *name, nr_t *x)
{
	if (x && nr_has_gaps(x)) x = nr_pack(n, x); /* readers expect plain rows */
	if (!x) return NULL;
	x->flags |= NR_TAP;
	x->name = scoped(n, name);
	return x;
}

nr_t *nr_apply_list(struct nr_net *n, const struct nr_op *op, const void *attr, size_t size, int n_in, nr_t *const *in)
{
	if (n->error.code) return NULL;
	if (n_in > NR_MAXIN) return nr_net_fail(n, NR_ELIMIT, op->name, "%d inputs, at most %d", n_in, NR_MAXIN);
	nr_t *x[NR_MAXIN] = { NULL };
	for (int i = 0; i < n_in; i++) {
		if (!in[i]) return NULL;
		int twice = 0;
		for (int j = 0; j < i; j++) twice |= in[j] == in[i]; /* each input has its own gradient */
		x[i] = in[i]->dtype == NR_REAL && (twice || (nr_has_gaps(in[i]) && !nr_op_accepts_gaps(op, i))) ? nr_pack(n, in[i]) : in[i];
		if (!x[i]) return NULL;
	}
	struct nr_node *k = make_node(n);
	if (!k) return NULL;
	k->op = op;
	k->n_in = n_in;
	memcpy(k->in, x, sizeof x);
	if (size) {
		void *copy = nr_arena_alloc(n->arena, size);
		if (!copy) {
			out_of_memory(n);
			return NULL;
		}
		k->attr = memcpy(copy, attr, size);
	}
	n->n_random += (op->flags & NR_RANDOM) != 0;
	if (op->shape(k) && !n->error.code) nr_expect(k, 0, "the shapes do not match");
	if (n->error.code) return NULL;
	return k->out[0];
}
