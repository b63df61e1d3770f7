/* Facts of a split: see measure.h. */
#include "data/measure.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "data/molecule_sets.h"
#include "fetch/checksum.h"

/* Sums of values and squares of one channel. 2^40 pixels still fit. */
struct sums { uint64_t n, one, two; };

static void add(struct sums *s, const struct nr_picture *p)
{
	const int64_t pixels = (int64_t)p->h * p->w;
	for (int32_t k = 0; k < p->channels && k < 3; k++) {
		uint64_t one = 0, two = 0;
		for (int64_t i = 0; i < pixels; i++) {
			const uint32_t v = p->pixels[i * p->channels + k];
			one += v;
			two += v * v;
		}
		s[k].n += (uint64_t)pixels;
		s[k].one += one;
		s[k].two += two;
	}
}

static void range(int32_t r[2], int32_t v, bool first)
{
	if (first || v < r[0]) r[0] = v;
	if (first || v > r[1]) r[1] = v;
}

int nr_source_measure(const struct nr_source *s, enum nr_split split, struct nr_split_facts *m, bool (*tell)(void *,
	int64_t done), void *arg,
	struct nr_error *err)
{
	struct sums sum[3] = { { 0 } };
	struct nr_picture p = { 0 };
	int e = NR_OK;
	*m = (struct nr_split_facts){ 0 };
	for (int64_t i = 0; i < s->count[split] && !e; i++) {
		e = nr_source_get(s, split, i, &p, NULL, err);
		if (e) break;
		range(m->h, p.h, i == 0);
		range(m->w, p.w, i == 0);
		add(sum, &p);
		m->pictures++;
		if (tell && !tell(arg, i + 1)) e = nr_fail(err, NR_EIO, "stopped reading", s->of->name,
			"after %lld pictures", (long long)i + 1);
	}
	for (int k = 0; k < 3; k++) {
		if (!sum[k].n) continue;
		const double mean = (double)sum[k].one / (double)sum[k].n, square = (double)sum[k].two / (double)sum[k].n;
		m->mean[k] = mean / 255;
		m->std[k] = sqrt(fmax(square - mean * mean, 0)) / 255;
	}
	nr_picture_release(&p);
	return e;
}

int64_t nr_source_histogram(const struct nr_source *s, enum nr_split split, int64_t *count)
{
	int64_t none = 0;
	memset(count, 0, (size_t)s->classes * sizeof *count);
	for (int64_t i = 0; i < s->count[split]; i++) {
		const int32_t label = nr_source_label(s, split, i);
		if (label >= 0 && label < s->classes) count[label]++;
		else none++;
	}
	return none;
}

int nr_source_map_histogram(const struct nr_source *s, enum nr_split split, int64_t *count, int64_t *none, struct nr_error *err)
{
	struct nr_picture map = { 0 };
	int code = NR_OK;
	*none = 0;
	memset(count, 0, (size_t)s->classes * sizeof *count);
	for (int64_t i = 0; i < s->count[split] && !code; i++) {
		code = nr_source_map(s, split, i, NULL, &map, err);
		for (int64_t k = 0; !code && k < (int64_t)map.h * map.w; k++)
			if (map.pixels[k] < s->classes) count[map.pixels[k]]++;
			else ++*none;
	}
	nr_picture_release(&map);
	return code;
}

/* All targets, and some of the graphs. */
static void add_graphs(struct nr_str *all, const struct nr_source *s, enum nr_split split, int64_t step)
{
	const struct nr_molecules *m = nr_source_molecules(s);
	for (int64_t i = 0; i < s->count[split]; i++) {
		const int64_t k = nr_source_graph(s, split, i);
		nr_str_add_n(all, (const char *)(m->target + k * m->tasks), (size_t)m->tasks * sizeof *m->target);
		if (i % step == 0) nr_str_add_n(all, (const char *)m->packed + m->at[k], (size_t)(m->at[k + 1] - m->at[k]));
	}
}

int nr_source_digest(const struct nr_source *s, enum nr_split split, char *hex, struct nr_error *err)
{
	const int64_t n = s->count[split], step = n > 64 ? n / 64 : 1;
	struct nr_str all = { 0 };
	struct nr_picture picture = { 0 };
	int code = NR_OK;
	nr_str_printf(&all, "%s %s %lld %d\n", s->of->name, nr_split_name(split), (long long)n, s->classes);
	for (int64_t i = 0; i < n; i++) {
		const int32_t label = nr_source_label(s, split, i);
		nr_str_add_n(&all, (const char *)&label, sizeof label);
	}
	for (int64_t i = 0; s->of->kind == NR_TEXTS && i < n; i++)
		for (int32_t k = 0; k < s->columns; k++) nr_str_printf(&all, "%s\n", nr_source_text(s, split, i, k));
	if (s->of->kind == NR_MOLECULES) add_graphs(&all, s, split, step);
	for (int64_t i = 0; s->of->kind == NR_PICTURES && !code && i < n; i += step) {
		code = nr_source_get(s, split, i, &picture, NULL, err);
		const size_t bytes = code ? 0 : (size_t)picture.h * (size_t)picture.w * (size_t)picture.channels;
		nr_str_add_n(&all, (const char *)picture.pixels, bytes);
		if (code || !s->of->map || (code = nr_source_map(s, split, i, NULL, &picture, err))) continue;
		nr_str_add_n(&all, (const char *)picture.pixels, (size_t)picture.h * (size_t)picture.w);
	}
	if (!code && all.failed) code = nr_fail(err, NR_EMEMORY, "cannot read", s->of->name, "out of memory");
	if (!code) nr_checksum_bytes(nr_str_text(&all), all.len, NR_SHA256, hex);
	nr_picture_release(&picture);
	nr_str_release(&all);
	return code;
}
