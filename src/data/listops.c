/* ListOps expressions: reading, evaluating, drawing. See listops.h. */
#include "data/listops.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"

enum { DIGITS = 10 };
static const char *const operators[] = { "MIN", "MAX", "MED", "SM", NULL };
enum operator { MIN, MAX, MED, SM };

/* Arguments of an open operator: how often each digit occurs among them. */
struct frame { int op; int64_t count[DIGITS], all; };

static int smallest(const struct frame *f)
{
	int v = 0;
	while (!f->count[v]) v++;
	return v;
}

static int largest(const struct frame *f)
{
	int v = DIGITS - 1;
	while (!f->count[v]) v--;
	return v;
}

/* Digit k of the arguments in order. */
static int ordered(const struct frame *f, int64_t k)
{
	int v = 0;
	for (int64_t seen = f->count[0]; seen <= k; seen += f->count[++v]) {}
	return v;
}

static int value_of(const struct frame *f)
{
	int64_t sum = 0;
	switch (f->op) {
	case MIN: return smallest(f);
	case MAX: return largest(f);
	case MED: return (ordered(f, (f->all - 1) / 2) + ordered(f, f->all / 2)) / 2;
	default:
		for (int v = 0; v < DIGITS; v++) sum += v * (f->count[v] % DIGITS);
		return (int)(sum % DIGITS);
	}
}

/* ---- reading ----------------------------------------------------------------------------------------------------------------- */

struct reading {
	struct frame open[NR_LISTOPS_DEPTH];
	int64_t depth, brackets, tokens;
	bool done;                              /* the expression is complete */
	struct nr_listops *out;
	struct nr_str *words;
	const char *name;
	int64_t line;
	struct nr_error *err;
};

static int bad(struct reading *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int bad(struct reading *r, const char *fmt, ...)
{
	char what[256];
	va_list args;
	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	return nr_fail(r->err, NR_EFORMAT, "cannot read the expression", r->name, "line %lld: %s", (long long)r->line, what);
}

static void word(struct reading *r, const char *text, size_t n)
{
	if (!r->words) return;
	if (r->out->length > 1) nr_str_add(r->words, " ");
	nr_str_add_n(r->words, text, n);
}

static void take(struct reading *r, int value)
{
	if (r->depth) {
		struct frame *f = &r->open[r->depth - 1];
		f->count[value]++;
		f->all++;
		return;
	}
	r->out->value = value;
	r->done = true;
}

static int open_operator(struct reading *r, const char *s, size_t n)
{
	int op = 0;
	while (operators[op] && (strlen(operators[op]) != n || memcmp(operators[op], s, n))) op++;
	if (!operators[op]) {
		char name[32];
		snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), s);
		const char *near = nr_nearest(name, operators);
		bad(r, "unknown operator '[%s'", name);
		return near ? nr_hint(r->err, "did you mean '[%s'?", near) : nr_hint(r->err, "operators are [MIN, [MAX, [MED and [SM");
	}
	if (r->depth == NR_LISTOPS_DEPTH) return bad(r, "more than %d operators inside each other", NR_LISTOPS_DEPTH);
	r->open[r->depth++] = (struct frame){ .op = op };
	if (r->depth > r->out->depth) r->out->depth = r->depth;
	word(r, s, n);
	return NR_OK;
}

static int close_operator(struct reading *r)
{
	if (!r->depth) return bad(r, "']' at token %lld closes no operator", (long long)r->tokens);
	const struct frame *f = &r->open[--r->depth];
	if (!f->all) return bad(r, "'[%s' at token %lld has no arguments", operators[f->op], (long long)r->tokens - 1);
	word(r, "X", 1);
	take(r, value_of(f));
	return NR_OK;
}

static int token(struct reading *r, const char *s, size_t n)
{
	r->tokens++;
	if (n == 1 && *s == '(') return r->brackets++, NR_OK;
	if (n == 1 && *s == ')')
		return --r->brackets < 0 ? bad(r, "')' at token %lld closes no '('", (long long)r->tokens) : NR_OK;
	if (r->done) return bad(r, "token %lld follows a complete expression (is a bracket missing?)", (long long)r->tokens);
	r->out->length++;
	if (*s == '[') return open_operator(r, s + 1, n - 1);
	if (n == 1 && *s == ']') return close_operator(r);
	if (n == 1 && *s >= '0' && *s <= '9') return word(r, s, n), take(r, *s - '0'), NR_OK;
	return bad(r, "token %lld, '%.*s', is neither a digit nor an operator", (long long)r->tokens, (int)(n < 32 ? n : 32), s);
}

int nr_listops_read(const char *text, size_t bytes, struct nr_listops *out, struct nr_str *words, const char *name, int64_t line,
	struct nr_error *err)
{
	struct reading r = { .out = out, .words = words, .name = name, .line = line, .err = err };
	*out = (struct nr_listops){ 0 };
	for (size_t i = 0; i < bytes;) {
		while (i < bytes && strchr(" \t\r\n", text[i])) i++;
		const size_t from = i;
		while (i < bytes && !strchr(" \t\r\n", text[i])) i++;
		if (i > from && token(&r, text + from, i - from)) return err->code;
	}
	if (r.depth) return bad(&r, "%lld operator%s not closed by ']'", (long long)r.depth, r.depth > 1 ? "s are" : " is");
	if (r.brackets) return bad(&r, "%lld '(' %s not closed", (long long)r.brackets, r.brackets > 1 ? "are" : "is");
	return r.done ? NR_OK : bad(&r, "it is empty");
}

/* ---- drawing ------------------------------------------------------------------------------------------------------------------ */

struct drawing { const struct nr_listops_how *how; struct nr_rng rng; uint64_t nodes; struct nr_str *out; struct nr_listops *size; };

static int64_t below(uint32_t word, int64_t n) { return (int64_t)((uint64_t)word * (uint64_t)n >> 32); }

/* A node and all below it: its value, or -1 once the tree is too long. */
static int draw_node(struct drawing *d, int64_t depth)
{
	uint32_t w[4];
	char digit[2] = "0";
	nr_rng_block(d->rng, d->nodes++, w);
	if (depth >= d->how->depth || nr_rng_unit(w[0]) >= 0.25f) {
		const int value = (int)below(w[1], DIGITS);
		d->size->length++;
		digit[0] = (char)('0' + value);
		nr_str_add(d->out, digit);
		return d->size->length < d->how->longest ? value : -1;
	}
	struct frame f = { .op = (int)below(w[1], SM + 1) };
	const int64_t arguments = 2 + below(w[2], d->how->arguments - 1);
	d->size->length += 2;
	if (depth > d->size->depth) d->size->depth = depth;
	for (int64_t i = 0; i <= arguments; i++) nr_str_add(d->out, "( ");
	nr_str_printf(d->out, "[%s", operators[f.op]);
	for (int64_t i = 0; i < arguments; i++) {
		nr_str_add(d->out, " ");
		const int value = draw_node(d, depth + 1);
		if (value < 0) return -1;
		f.count[value]++;
		f.all++;
		nr_str_add(d->out, " )");
	}
	nr_str_add(d->out, " ] )");
	return value_of(&f);
}

bool nr_listops_draw(const struct nr_listops_how *how, uint64_t number, struct nr_str *brackets, struct nr_listops *out)
{
	enum { STREAM = 6 << 24 };
	*out = (struct nr_listops){ 0 };
	brackets->len = 0;
	struct drawing d = { .how = how, .out = brackets, .size = out,
		.rng = nr_rng_make(how->seed, STREAM + (uint32_t)(number >> 32), (uint32_t)number) };
	out->value = draw_node(&d, 1);
	const bool fits = out->value >= 0 && out->length > how->shortest && out->length < how->longest;
	if (!fits) brackets->len = 0;
	return fits;
}
