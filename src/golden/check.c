/* The error measure, the file's tolerances and the settings of a golden file. See check.h. */
#include "golden/check.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"

__attribute__((format(printf, 3, 0))) static void report(
	struct golden_case *c, const char *tensor, const char *fmt, va_list ap)
{
	c->failures++;
	fprintf(c->out, "FAIL %s%s%s: ", c->path, tensor ? " " : "", tensor ? tensor : "");
	vfprintf(c->out, fmt, ap);
	fputc('\n', c->out);
}

void golden_fail(struct golden_case *c, const char *tensor, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	report(c, tensor, fmt, ap);
	va_end(ap);
}

void golden_stop(struct golden_case *c, const char *tensor, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	report(c, tensor, fmt, ap);
	va_end(ap);
	longjmp(c->leave, 1);
}

void *golden_alloc(struct golden_case *c, int64_t count, size_t size)
{
	void *p = count < 0 || count > INT64_C(1) << 40
		? NULL
		: nr_arena_alloc(c->arena, (size_t)(count ? count : 1) * size);
	if (!p) golden_stop(c, NULL, "out of memory");
	return p;
}

real *golden_reals(struct golden_case *c, int64_t count) { return golden_alloc(c, count, sizeof(real)); }

#define FORMAT_NAME(name, fmt) \
	char name[256]; \
	do { \
		va_list ap_; \
		va_start(ap_, fmt); \
		vsnprintf(name, sizeof name, fmt, ap_); \
		va_end(ap_); \
	} while (0)

static const struct nr_st_tensor *look(struct golden_case *c, const char *name)
{
	for (int64_t i = 0; i < nr_st_count(c->file); i++)
		if (!strcmp(nr_st_get(c->file, i)->name, name)) {
			c->seen[i] = true;
			return nr_st_get(c->file, i);
		}
	return NULL;
}

bool golden_has(struct golden_case *c, const char *name) { return nr_st_find(c->file, name) != NULL; }

static const struct nr_st_tensor *demand(struct golden_case *c, int nd, const char *name)
{
	const struct nr_st_tensor *t = look(c, name);
	if (!t) golden_stop(c, name, "not in the file");
	if (nd >= 0 && t->nd != nd) golden_stop(c, name, "has %d dimensions, not %d", t->nd, nd);
	return t;
}

struct golden_tensor golden_tensor(struct golden_case *c, int nd, const char *fmt, ...)
{
	FORMAT_NAME(name, fmt);
	const struct nr_st_tensor *t = demand(c, nd, name);
	struct golden_tensor g = { .name = t->name, .nd = t->nd, .n = nr_st_elements(t) };
	memcpy(g.d, t->shape, sizeof g.d);
	g.x = golden_reals(c, g.n);
	struct nr_error err = { 0 };
	char text[512];
#ifdef NR_DOUBLE
	if (nr_st_to_f64(t, g.x, g.n, &err))
		golden_stop(c, name, "%s", nr_error_text(&err, text, sizeof text));
#else
	if (nr_st_to_f32(t, g.x, g.n, &err))
		golden_stop(c, name, "%s", nr_error_text(&err, text, sizeof text));
#endif
	return g;
}

struct golden_ints golden_ints(struct golden_case *c, int nd, const char *fmt, ...)
{
	FORMAT_NAME(name, fmt);
	const struct nr_st_tensor *t = demand(c, nd, name);
	struct golden_ints g = { .name = t->name, .nd = t->nd, .n = nr_st_elements(t) };
	memcpy(g.d, t->shape, sizeof g.d);
	g.x = golden_alloc(c, g.n, sizeof *g.x);
	int64_t *wide = golden_alloc(c, g.n, sizeof *wide);
	struct nr_error err = { 0 };
	char text[512];
	if (nr_st_to_i64(t, wide, g.n, &err))
		golden_stop(c, name, "%s", nr_error_text(&err, text, sizeof text));
	for (int64_t i = 0; i < g.n; i++) {
		if (wide[i] < INT32_MIN || wide[i] > INT32_MAX)
			golden_stop(c, name, "%" PRId64 " is too large", wide[i]);
		g.x[i] = (int32_t)wide[i];
	}
	return g;
}

void golden_expect(struct golden_case *c, bool ok, const char *what)
{
	if (!ok) golden_stop(c, NULL, "the shapes do not fit: %s", what);
}

/* ---- settings ---- */

static json_t *walk(struct golden_case *c, const char *path)
{
	json_t *at = c->config;
	for (const char *s = path; at && *s;) {
		const size_t len = strcspn(s, ".");
		char key[64];
		snprintf(key, sizeof key, "%.*s", (int)len, s);
		at = json_object_get(at, key);
		s += len + (s[len] == '.');
	}
	return at;
}

double golden_number_or(struct golden_case *c, const char *path, double otherwise)
{
	json_t *v = walk(c, path);
	if (v && !json_is_number(v)) golden_stop(c, NULL, "config '%s' is not a number", path);
	return v ? json_number_value(v) : otherwise;
}

double golden_number(struct golden_case *c, const char *path)
{
	if (!walk(c, path)) golden_stop(c, NULL, "config has no '%s'", path);
	return golden_number_or(c, path, 0);
}

const char *golden_text(struct golden_case *c, const char *path)
{
	json_t *v = walk(c, path);
	if (!json_is_string(v)) golden_stop(c, NULL, "config has no text '%s'", path);
	return json_string_value(v);
}

double golden_item(struct golden_case *c, const char *path, size_t i)
{
	json_t *v = json_array_get(walk(c, path), i);
	if (!json_is_number(v)) golden_stop(c, NULL, "config has no number %zu in '%s'", i, path);
	return json_number_value(v);
}

double golden_after(struct golden_case *c, const char *sentence, const char *word)
{
	const char *s = strstr(sentence, word);
	if (!s) golden_stop(c, NULL, "no '%s' in the setting '%s'", word, sentence);
	s += strlen(word);
	while (*s && !isdigit((unsigned char)*s) &&
		!((*s == '-' || *s == '.') && isdigit((unsigned char)s[1])))
		s++;
	if (!*s) golden_stop(c, NULL, "no number after '%s' in the setting '%s'", word, sentence);
	return strtod(s, NULL);
}

double golden_before(struct golden_case *c, const char *sentence, const char *word)
{
	const char *end = strstr(sentence, word), *s = end;
	while (s && s > sentence && !isdigit((unsigned char)s[-1])) s--;
	while (s && s > sentence && (isdigit((unsigned char)s[-1]) || strchr(".e-+", s[-1]))) s--;
	if (!s || s == end || !strpbrk(s, "0123456789"))
		golden_stop(c, NULL, "no number before '%s' in '%s'", word, sentence);
	return strtod(s, NULL);
}

/* ---- comparisons ---- */

static bool meta_number(struct golden_case *c, const char *prefix, const char *kind, double *out)
{
	char key[64], *end;
	snprintf(key, sizeof key, "%s_%s", prefix, kind);
	const char *text = nr_st_metadata(c->file, key);
	if (!text) return false;
	*out = strtod(text, &end);
	if (end == text || *end || isnan(*out))
		golden_stop(c, NULL, "metadata '%s' is not a number: '%s'", key, text);
	return true;
}

static void check(struct golden_case *c, const char *kind, const double *got, int64_t n, const char *name)
{
	const struct nr_st_tensor *t = look(c, name);
	double tolerance, scale = 1;
	if (!t || !meta_number(c, "tol", kind, &tolerance)) return;
	meta_number(c, "scale", kind, &scale);
	c->checks++;
	if (nr_st_elements(t) != n) {
		golden_fail(c, name, "has %" PRId64 " values, computed %" PRId64, nr_st_elements(t), n);
		return;
	}
	double *want = golden_alloc(c, n, sizeof *want), worst = 0, largest = scale;
	struct nr_error err = { 0 };
	char text[512];
	if (nr_st_to_f64(t, want, n, &err))
		golden_stop(c, name, "%s", nr_error_text(&err, text, sizeof text));
	int64_t place = 0;
	for (int64_t i = 0; i < n; i++) {
		const double d = got[i] == want[i] ? 0 : fabs(got[i] - want[i]);        /* infinities may be equal */
		if (fabs(want[i]) > largest && isfinite(want[i])) largest = fabs(want[i]);
		if (d > worst || (isnan(d) && !isnan(worst))) worst = d, place = i;
	}
	const double error = worst == 0 ? 0 : worst / largest;
	if (!(error <= tolerance))
		golden_fail(c, name, "error %.3g, tolerance %.3g (value %" PRId64 ": got %.9g, want %.9g)",
			error, tolerance, place, got[place], want[place]);
	else if (c->verbose)
		fprintf(c->out, "  ok %s %s: error %.3g, tolerance %.3g\n", c->path, name, error, tolerance);
}

void golden_check(struct golden_case *c, const char *kind, const real *got, int64_t n, const char *fmt, ...)
{
	FORMAT_NAME(name, fmt);
	double *wide = golden_alloc(c, n, sizeof *wide);
	for (int64_t i = 0; i < n; i++) wide[i] = (double)got[i];
	check(c, kind, wide, n, name);
}

void golden_check_value(struct golden_case *c, const char *kind, double got, const char *fmt, ...)
{
	FORMAT_NAME(name, fmt);
	check(c, kind, &got, 1, name);
}

void golden_check_ints(struct golden_case *c, const int32_t *got, int64_t n, const char *fmt, ...)
{
	FORMAT_NAME(name, fmt);
	if (!look(c, name)) return;
	c->checks++;
	const struct golden_ints want = golden_ints(c, -1, "%s", name);
	if (want.n != n) {
		golden_fail(c, name, "has %" PRId64 " values, computed %" PRId64, want.n, n);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		if (got[i] != want.x[i]) {
			golden_fail(c, name,
				"not equal (value %" PRId64 ": got %" PRId32 ", want %" PRId32 ")", i, got[i],
				want.x[i]);
			return;
		}
	if (c->verbose) fprintf(c->out, "  ok %s %s: equal\n", c->path, name);
}
