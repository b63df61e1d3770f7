/* A data set: it opens, its samples can be read, labels are classes, and a sample is the same whoever reads it, at any time. */
#include <omp.h>
#include <stdlib.h>

#include "check/check.h"
#include "norma/data.h"

enum { SAMPLES = 64 };

static uint64_t mix(uint64_t h, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) h = (h ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
	return h;
}

/* A number that stands for a sample; 0: it cannot be read, or makes no sense. */
static uint64_t read_sample(const struct nr_source *s, enum nr_split split, int64_t i)
{
	const int32_t label = nr_source_label(s, split, i);
	uint64_t h = mix(1, &label, sizeof label);
	if (label >= s->classes && s->classes) return 0;
	for (int32_t c = 0; s->of->kind == NR_TEXTS && c < s->columns; c++) {
		const char *text = nr_source_text(s, split, i, c);
		if (!text) return 0;
		h = mix(h, text, strlen(text) + 1);
	}
	if (s->of->kind != NR_PICTURES) return h;
	struct nr_picture p = { 0 };
	bool read = !nr_source_get(s, split, i, &p, NULL, NULL) && p.channels == s->channels;
	if (s->h) read = read && p.h == s->h && p.w == s->w;
	if (read) h = mix(h, p.pixels, (size_t)p.h * (size_t)p.w * (size_t)p.channels);
	nr_picture_release(&p);
	return read ? h : 0;
}

static void read_all(const struct nr_source *s, enum nr_split split, int64_t n, int threads, uint64_t *out)
{
#pragma omp parallel for schedule(static, 1) num_threads(threads)
	for (int64_t i = 0; i < n; i++) out[i] = read_sample(s, split, i);
}

static void check_split(struct nr_checker *k, const struct nr_source *s, enum nr_split split)
{
	uint64_t first[SAMPLES], other[SAMPLES];
	const int64_t n = s->count[split] < SAMPLES ? s->count[split] : SAMPLES;
	read_all(s, split, n, 1, first);
	for (int64_t i = 0; i < n; i++)
		nr_check_tell(k, NR_CHECK_BUILDS, first[i] != 0, "sample %d of %s cannot be read, or is not what the source says", (int)i,
			nr_split_name(split));
	for (int threads = 2; threads <= 3; threads++) {
		read_all(s, split, n, threads, other);
		nr_check_tell(k, NR_CHECK_THREADS, !memcmp(first, other, (size_t)n * sizeof *first), "samples of %s differ with %d threads",
			nr_split_name(split), threads);
	}
}

int nr_check_dataset(struct nr_checker *k, const char *text, struct nr_error *err)
{
	const struct nr_subject subject = { .name = text };
	struct nr_source *s;
	if (nr_source_open(&s, text, NULL, err)) return err->code;
	k->subject = &subject, k->at = NULL;
	for (int i = 0; i < NR_SPLITS; i++) check_split(k, s, i);
	nr_source_close(s);
	k->subject = NULL;
	return NR_OK;
}
