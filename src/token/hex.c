/* See tokenize_hex.h. */
#include "token/hex.h"

#include "base/str.h"
#include "token/tokenizer_inner.h"

struct column { const char *s; size_t n; };

static struct column next_column(const char **s, const char *end)
{
	const char *tab = memchr(*s, '\t', (size_t)(end - *s)), *stop = tab ? tab : end;
	const struct column c = { *s, (size_t)(stop - *s) };
	*s = tab ? tab + 1 : end;
	return c;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9') return c - '0';
	if (c >= 'a' && c <= 'f') return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
static bool is_hex(struct column c)
{
	if (c.n % 2) return false;
	for (size_t i = 0; i < c.n; i++)
		if (digit(c.s[i]) < 0) return false;
	return true;
}

static int decode(const struct nr_hex_lines *h, struct column c, int64_t line, struct nr_str *to, struct nr_error *err)
{
	if (!is_hex(c)) {
		nr_fail(err, NR_EFORMAT, "cannot read", h->name, "line %lld: '%.*s' is not a text in hexadecimal",
			(long long)line, c.n > 32 ? 32 : (int)c.n,
			c.s);
		return nr_hint(err, "each byte is two digits, as in 6162 for ab");
	}
	nr_str_add(to, "");
	for (size_t i = 0; i < c.n; i += 2) nr_str_add_n(to, (const char[]){ (char)(digit(c.s[i]) << 4 | digit(c.s[i + 1])) }, 1);
	return to->failed ? nr_fail(err, NR_EMEMORY, "cannot read", h->name, "out of memory") : NR_OK;
}

static void put_numbers(struct nr_str *out, const int32_t *v, int64_t n)
{
	for (int64_t i = 0; i < n; i++) nr_str_printf(out, "%s%d", i ? " " : "\t", (int)v[i]);
	if (!n) nr_str_add(out, "\t");
}

static int put_columns(const struct nr_hex_lines *h, const struct nr_str *a, const struct nr_str *b,
	struct nr_str *out, struct nr_error *err)
{
	const bool wordpiece = h->encoder->of->kind == NR_WORDPIECE;
	const char *pair = h->pair ? b->text : NULL;
	const int rounds = wordpiece == h->pair ? 2 : 1;        /* also cut, or with a blank in front */
	struct nr_encode_how how = { .max_length = h->pair && wordpiece ? 0 : h->max_length };
	for (int round = 0; round < rounds; round++) {
		struct nr_encoding e;
		if (nr_encode(h->encoder, a->text, a->len, pair, b->len, &how, &e, err)) return err->code;
		put_numbers(out, e.ids, e.count);
		if (h->pair && wordpiece) put_numbers(out, e.types, e.count);
		how = (struct nr_encode_how){ .max_length = h->max_length, .blank_first = !h->pair };
	}
	return NR_OK;
}

int nr_hex_line(const struct nr_hex_lines *h, const char *line, size_t bytes, int64_t number, struct nr_str *out, struct nr_error *err)
{
	struct nr_str a = { 0 }, b = { 0 };
	const char *s = line, *end = line + bytes;
	const struct column first = next_column(&s, end);
	int code = decode(h, first, number, &a, err);
	nr_str_add_n(out, first.s, first.n);
	if (!code && h->pair) {
		const bool there = first.n < bytes;
		const struct column second = next_column(&s, end);
		code = there ? decode(h, second, number, &b, err)
			     : nr_fail(err, NR_EFORMAT, "cannot read", h->name, "line %lld has no second text", (long long)number);
		nr_str_add(out, "\t");
		nr_str_add_n(out, second.s, second.n);
	}
	if (!code) code = put_columns(h, &a, &b, out, err);
	nr_str_add(out, "\n");
	if (!code && out->failed) code = nr_fail(err, NR_EMEMORY, "cannot read", h->name, "out of memory");
	nr_str_release(&a);
	nr_str_release(&b);
	return code;
}

/* A column of ids has a blank wherever special tokens stand around the text. */
bool nr_hex_is_pair(const struct nr_tokenizer *t, const char *line, size_t bytes)
{
	const char *s = line, *end = line + bytes;
	const struct column first = next_column(&s, end);
	return t->single.added > 1 && first.n < bytes && is_hex(next_column(&s, end));
}
