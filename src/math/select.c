/* See select.h. */
#include "math/select.h"

#include "math/detect.h"

void nr_box_decode(const struct nr_decode *d, const real box[4], const real offset[4], double h, double w, real out[4])
{
	const double bw = (double)box[2] - box[0], bh = (double)box[3] - box[1];
	const double x = box[0] + .5 * bw + offset[0] * d->std[0] * bw, y = box[1] + .5 * bh + offset[1] * d->std[1] * bh;
	double lw = fmin(offset[2] * d->std[2], d->limit), lh = fmin(offset[3] * d->std[3], d->limit);
	if (d->both_sides) lw = fmax(lw, -d->limit), lh = fmax(lh, -d->limit);
	const double ow = .5 * exp(lw) * bw, oh = .5 * exp(lh) * bh;
	out[0] = (real)fmin(fmax(x - ow, 0), w);
	out[1] = (real)fmin(fmax(y - oh, 0), h);
	out[2] = (real)fmin(fmax(x + ow, 0), w);
	out[3] = (real)fmin(fmax(y + oh, 0), h);
}

size_t nr_select_bytes(int groups, int64_t most)
{
	return (size_t)groups * ((size_t)most * (5 * sizeof(real) + 3 * sizeof(int32_t)) + 2 * sizeof(int32_t));
}

struct nr_select nr_select_at(void *memory, int groups, int64_t most)
{
	const int64_t all = groups * most;
	real *r = memory;
	int32_t *i = (int32_t *)(r + 5 * all);
	return (struct nr_select){ .groups = groups, .most = most, .box = r, .score = r + 4 * all, .from = i, .keep = i + all,
		.order = i + 2 * all, .count = i + 3 * all, .next = i + 3 * all + groups };
}

void nr_select_start(struct nr_select *s, int group) { s->count[group] = 0; }

void nr_select_add(struct nr_select *s, int group, const real box[4], real score, int32_t from, double min_size)
{
	const double w = (double)box[2] - box[0], h = (double)box[3] - box[1];
	if (!(w > 0 && h > 0 && w >= min_size && h >= min_size)) return;
	const int64_t at = group * s->most + s->count[group]++;
	for (int j = 0; j < 4; j++) s->box[4 * at + j] = box[j];
	s->score[at] = score;
	s->from[at] = from;
}

void nr_select_nms(struct nr_select *s, int group, double threshold)
{
	const int64_t at = group * s->most;
	s->count[group] = (int32_t)nr_box_nms(s->count[group], s->box + 4 * at, s->score + at, threshold, s->keep + at, s->order + at);
}

int64_t nr_select_best(struct nr_select *s, int64_t rows, int32_t *place)
{
	for (int g = 0; g < s->groups; g++) s->next[g] = 0;
	for (int64_t i = 0; i < rows; i++) {
		int64_t best = -1;
		int from = 0;
		for (int g = 0; g < s->groups; g++) {
			if (s->next[g] == s->count[g]) continue;
			const int64_t at = g * s->most + s->keep[g * s->most + s->next[g]];
			if (best < 0 || s->score[at] > s->score[best]) best = at, from = g;
		}
		if (best < 0) return i;
		s->next[from]++;
		place[i] = (int32_t)best;
	}
	return rows;
}
