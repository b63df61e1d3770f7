/* Pictures of one size in memory: see raw.h. */
#include "data/raw.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct nr_raw *nr_raw_make(struct nr_source *s, struct nr_error *err)
{
	if (!s->own) s->own = nr_arena_alloc(s->arena, sizeof(struct nr_raw));
	if (!s->own) nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	return s->own;
}

const struct nr_bytes *nr_raw_file(struct nr_source *s, const char *path, size_t limit, struct nr_error *err)
{
	struct nr_raw *r = nr_raw_make(s, err);
	if (!r) return NULL;
	if (r->files == NR_RAW_FILES) {
		nr_fail(err, NR_ELIMIT, "cannot open", path, "more than %d files", NR_RAW_FILES);
		return NULL;
	}
	struct nr_bytes *b = &r->file[r->files];
	if (nr_bytes_open(b, path, limit, err)) return NULL;
	r->files++;
	return b;
}

int nr_raw_add(struct nr_source *s, enum nr_split split, struct nr_raw_part part, struct nr_error *err)
{
	struct nr_raw *r = nr_raw_make(s, err);
	if (!r) return NR_EMEMORY;
	if (r->split[split].parts == NR_RAW_PARTS || part.count > INT32_MAX - s->count[split])
		return nr_fail(err, NR_ELIMIT, "cannot open", s->of->name, "too many pictures");
	r->split[split].part[r->split[split].parts++] = part;
	s->count[split] += part.count;
	return NR_OK;
}

int nr_raw_labels(struct nr_source *s, enum nr_split split, const uint8_t *bytes, size_t stride, int64_t count,
	int32_t base,
	const char *path, struct nr_error *err)
{
	struct nr_raw *r = nr_raw_make(s, err);
	if (!r) return NR_EMEMORY;
	const int64_t n = s->count[split], before = n - count;
	int32_t *label = nr_arena_alloc(s->arena, (size_t)n * sizeof *label);
	if (!label) return nr_fail(err, NR_EMEMORY, "cannot open", path, "out of memory");
	if (before > 0) memcpy(label, r->split[split].label, (size_t)before * sizeof *label);
	for (int64_t i = 0; i < count; i++) {
		label[before + i] = bytes[(size_t)i * stride] - base;
		if (label[before + i] < 0 || label[before + i] >= s->classes)
			return nr_fail(err, NR_EFORMAT, "cannot read", path,
				"label %d of picture %lld is not from %d to %d",
				bytes[(size_t)i * stride], (long long)i, base, base + s->classes - 1);
	}
	r->split[split].label = label;
	return NR_OK;
}

static const uint8_t *find(const struct nr_raw *r, enum nr_split split, int64_t i)
{
	const struct nr_raw_part *p = r->split[split].part;
	while (i >= p->count) i -= p++->count;
	return p->first + (size_t)i * p->stride;
}

int nr_raw_get(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, struct nr_error *err)
{
	const struct nr_raw *r = s->own;
	const uint8_t *from = find(r, split, i);
	const int32_t h = s->h, w = s->w, channels = s->channels;
	if (nr_picture_resize(p, h, w, channels, err)) return NR_EMEMORY;
	uint8_t *to = p->pixels;
	if (channels == 1 && r->sx == 1) {
		for (int32_t y = 0; y < h; y++) memcpy(to + (int64_t)y * w, from + y * r->sy, (size_t)w);
	} else {
		for (int32_t y = 0; y < h; y++)
			for (int32_t k = 0; k < channels; k++) {
				const uint8_t *row = from + y * r->sy + k * r->sk;
				uint8_t *out = to + (int64_t)y * w * channels + k;
				for (int32_t x = 0; x < w; x++) out[x * channels] = row[x * r->sx];
			}
	}
	for (int64_t k = 0; r->scale > 1 && k < (int64_t)h * w * channels; k++) {
		const int32_t v = to[k] * r->scale;
		to[k] = (uint8_t)(v < 255 ? v : 255);
	}
	return NR_OK;
}

int32_t nr_raw_label(const struct nr_source *s, enum nr_split split, int64_t i)
{
	const struct nr_raw *r = s->own;
	return r->split[split].label ? r->split[split].label[i] : -1;
}

void nr_raw_close(struct nr_source *s)
{
	struct nr_raw *r = s->own;
	for (int i = 0; r && i < r->files; i++) nr_bytes_release(&r->file[i]);
}
