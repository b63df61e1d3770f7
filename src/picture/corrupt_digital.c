/* Contrast, elastic distortion, resolution, compression; and the photographs of frost, which are read here. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture/corrupt_inner.h"
#include "picture/picture.h"

int nr_lower_contrast(struct nr_corrupting *k)
{
	const int64_t n = nr_field_len(&k->x);
	const int32_t C = k->x.c;
	double mean[3] = { 0 };
	for (int64_t i = 0; i < n; i++) mean[i % C] += k->x.v[i];
	for (int32_t c = 0; c < C; c++) mean[c] /= (double)(n / C);
	for (int64_t i = 0; i < n; i++) k->x.v[i] = (k->x.v[i] - mean[i % C]) * k->c[0] + mean[i % C];
	nr_corrupt_put(k->p, &k->x);
	return NR_OK;
}

/* ---- elastic: three corners move, then every pixel by smooth noise ---- */

/* The affine map m with m from[i] = to[i], as x' = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y + m[5]. */
static void affine_of(const double from[3][2], const double to[3][2], double m[6])
{
	const double ax = from[1][0] - from[0][0], ay = from[1][1] - from[0][1], bx = from[2][0] - from[0][0], by = from[2][1] - from[0][1];
	const double area = ax * by - ay * bx;
	for (int i = 0; i < 2; i++) {
		const double u = to[1][i] - to[0][i], v = to[2][i] - to[0][i];
		m[3 * i] = (u * by - v * ay) / area;
		m[3 * i + 1] = (v * ax - u * bx) / area;
		m[3 * i + 2] = to[0][i] - m[3 * i] * from[0][0] - m[3 * i + 1] * from[0][1];
	}
}

/* Bilinear; the border says what is outside. */
static void sample(const struct nr_field *x, double px, double py, enum nr_border border, double *out)
{
	const double fx = floor(px), fy = floor(py), u = px - fx, v = py - fy;
	for (int32_t c = 0; c < x->c; c++) out[c] = 0;
	for (int i = 0; i < 4; i++) {
		const int32_t xx = nr_border((int32_t)fx + (i & 1), x->w, border), yy = nr_border((int32_t)fy + (i >> 1), x->h, border);
		const double w = (i & 1 ? u : 1 - u) * (i >> 1 ? v : 1 - v), *p = x->v + ((int64_t)yy * x->w + xx) * x->c;
		for (int32_t c = 0; c < x->c; c++) out[c] += w * p[c];
	}
}

static void move_corners(struct nr_corrupting *k, double by, struct nr_field *to)
{
	const double cx = k->x.w / 2, cy = k->x.h / 2, side = (k->x.h < k->x.w ? k->x.h : k->x.w) / 3;
	const double corner[3][2] = { { cx + side, cy + side }, { cx + side, cy - side }, { cx - side, cy - side } };
	double moved[3][2], back[6];
	for (int i = 0; i < 6; i++) moved[i / 2][i % 2] = corner[i / 2][i % 2] + nr_draw_between(&k->draws, -by, by);
	affine_of(moved, corner, back);
	for (int32_t y = 0; y < to->h; y++)
		for (int32_t x = 0; x < to->w; x++)
			sample(&k->x, back[0] * x + back[1] * y + back[2], back[3] * x + back[4] * y + back[5], NR_BORDER_MIRROR_INSIDE,
				to->v + ((int64_t)y * to->w + x) * to->c);
}

int nr_elastic(struct nr_corrupting *k)
{
	const double unit = k->how->setting == NR_CORRUPT_32 ? 32 : 244, alpha = k->c[0] * unit, sigma = k->c[1] * unit;
	const int64_t n = (int64_t)k->x.h * k->x.w;
	struct nr_field moved = k->x, shift[2] = { { k->x.h, k->x.w, 1, NULL }, { k->x.h, k->x.w, 1, NULL } };
	double *room = nr_corrupt_room(k, 2, nr_smooth_room(&shift[0]));
	moved.v = nr_corrupt_room(k, 1, nr_field_len(&moved));
	for (int i = 0; i < 2; i++) shift[i].v = nr_corrupt_room(k, 3 + i, n);
	if (!room || !moved.v || !shift[0].v || !shift[1].v) return k->err->code;
	move_corners(k, k->c[2] * unit, &moved);
	for (int64_t i = 0; i < 2 * n; i++) shift[i / n].v[i % n] = 2 * (double)nr_rng_uniform(k->draws.rng, (uint64_t)i) - 1;
	for (int i = 0; i < 2; i++) nr_smooth(&shift[i], sigma, 3, NR_BORDER_MIRROR, room);
	for (int64_t i = 0; i < n; i++)
		sample(&moved, (double)(i % k->x.w) + alpha * shift[0].v[i], (double)(i / k->x.w) + alpha * shift[1].v[i], NR_BORDER_MIRROR,
			k->x.v + i * k->x.c);
	nr_corrupt_put(k->p, &k->x);
	return NR_OK;
}

/* ---- resolution, compression ---- */

int nr_pixelate(struct nr_corrupting *k)
{
	struct nr_picture *p = k->p, *small = nr_corrupt_picture(k, 0), *back = nr_corrupt_picture(k, 1);
	const int32_t h = (int32_t)(p->h * k->c[0]), w = (int32_t)(p->w * k->c[0]);
	int code = nr_resize(p, NULL, h > 1 ? h : 1, w > 1 ? w : 1, NR_FILTER_BOX, small, nr_corrupt_resize(k), k->err);
	if (!code) code = nr_resize(small, NULL, p->h, p->w, NR_FILTER_BOX, back, nr_corrupt_resize(k), k->err);
	if (!code) memcpy(p->pixels, back->pixels, (size_t)nr_field_len(&k->x));
	return code;
}

int nr_jpeg_compression(struct nr_corrupting *k) { return nr_jpeg_again(k->p, (int)k->c[0], k->err); }

/* ---- photographs of frost ---- */

static int seen(const struct dirent *e) { return e->d_name[0] != '.'; }

int nr_frost_open(struct nr_frost *f, const char *dir, struct nr_error *err)
{
	struct dirent **entry = NULL;
	*f = (struct nr_frost){ 0 };
	const int n = scandir(dir, &entry, seen, alphasort);
	if (n < 1) {
		free(entry);
		nr_fail(err, NR_EIO, "cannot read photographs of frost", dir, n ? "no such folder" : "the folder is empty");
		return nr_hint(err, "name a folder of pictures, such as the frost1.png to frost6.jpg of ImageNet-C's authors");
	}
	int code = NR_OK;
	if (!(f->photo = calloc((size_t)n, sizeof *f->photo))) code = nr_fail(err, NR_EMEMORY, "cannot read", dir, "out of memory");
	for (int i = 0; i < n; i++) {
		char path[4096];
		if (!code && snprintf(path, sizeof path, "%s/%s", dir, entry[i]->d_name) >= (int)sizeof path)
			code = nr_fail(err, NR_EIO, "cannot read photographs of frost", dir, "the name is too long");
		if (!code) code = nr_picture_read(&f->photo[f->count++], path, 3, err);
		free(entry[i]);
	}
	free(entry);
	if (code) nr_frost_close(f);
	return code;
}

void nr_frost_close(struct nr_frost *f)
{
	for (int32_t i = 0; i < f->count; i++) nr_picture_release(&f->photo[i]);
	free(f->photo);
	*f = (struct nr_frost){ 0 };
}
