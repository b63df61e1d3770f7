/* See sphere.h. */
#include "laws/sphere.h"

#include <math.h>

#include "analysis/uniformity.h"
#include "base/rng.h"
#include "laws/norm_trial.h"

void nr_sphere_cloud(real at[NR_SPHERE_POINTS][3])
{
	static const double middle[3] = { 1, .3, -.4 }, wide[3] = { 1.2, .7, .4 };
	const struct nr_rng centres = nr_rng_make(3, 0, 0), points = nr_rng_make(3, 0, 1);
	for (uint64_t i = 0; i < NR_SPHERE_POINTS; i++)
		for (uint64_t c = 0; c < 3; c++) {
			const uint64_t picture = i / NR_SPHERE_TOKENS;
			const double centre = middle[c] + .7 * nr_rng_normal(centres, picture * 4 + c);
			const double scale = wide[c] * (.4 + .2 * (double)picture);
			at[i][c] = (real)(centre + scale * nr_rng_normal(points, i * 4 + c));
		}
}

static int measure(struct nr_sphere *s, struct nr_error *err)
{
	struct nr_pairs pairs;
	double sum = 0, square = 0, off = 0;
	for (int64_t i = 0; i < NR_SPHERE_POINTS; i++) {
		const double x = (double)s->at[i][0], y = (double)s->at[i][1], z = (double)s->at[i][2],
			length = sqrt(x * x + y * y + z * z);
		sum += length / NR_SPHERE_POINTS;
		square += length * length / NR_SPHERE_POINTS;
		off += fabs(x + y + z) / sqrt(3) / NR_SPHERE_POINTS;
	}
	if (nr_uniformity(NR_SPHERE_POINTS, 3, s->at[0], 2, &pairs, err)) return err->code;
	s->length = sum;
	s->length_sd = sqrt(fmax(0, square - sum * sum));
	s->off_plane = off;
	s->uniformity = pairs.uniformity;
	return NR_OK;
}

int nr_sphere_run(struct nr_sphere *s, const char *norm, struct nr_error *err)
{
	const struct nr_trial_shape shape = { .batch = NR_SPHERE_PICTURES, .tokens = NR_SPHERE_TOKENS, .channels = 3, .heads = 1 };
	struct nr_trial t;
	*s = (struct nr_sphere){ .norm = norm };
	nr_sphere_cloud(s->at);
	if (nr_trial_open(&t, norm, &shape, err)) return err->code;
	memcpy(nr_trial_x(&t), s->at, sizeof s->at);
	nr_trial_forward(&t);
	memcpy(s->at, nr_trial_y(&t), sizeof s->at);
	nr_trial_close(&t);
	return measure(s, err);
}

void nr_sphere_view(const struct nr_sphere *s, double at[NR_SPHERE_POINTS][2])
{
	const double turn = -.35, tilt = .2;    /* radians */
	for (int64_t i = 0; i < NR_SPHERE_POINTS; i++) {
		const double x = (double)s->at[i][0], y = (double)s->at[i][1], z = (double)s->at[i][2];
		const double near = x * cos(turn) + y * sin(turn);
		at[i][0] = y * cos(turn) - x * sin(turn);
		at[i][1] = z * cos(tilt) - near * sin(tilt);
	}
}
