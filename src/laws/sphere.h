/* Where a norm puts a cloud of points: tokens of three channels, so that it can be drawn. The geometric reading of norms: one over the
 * channels of a token throws every point onto a sphere of radius sqrt(C) (rms) or onto its cut with the plane of mean 0 (layer); one
 * over tokens only moves and stretches the cloud, along each channel. */
#ifndef NR_SPHERE_H
#define NR_SPHERE_H

#include "base/mem.h"
#include "base/real.h"
#include "norma/norm.h"

enum { NR_SPHERE_PICTURES = 6, NR_SPHERE_TOKENS = 60, NR_SPHERE_POINTS = NR_SPHERE_PICTURES * NR_SPHERE_TOKENS };

struct nr_sphere {
	const char *norm;
	real at[NR_SPHERE_POINTS][3];       /* pictures one after the other */
	double length, length_sd;           /* of a point */
	double off_plane;                   /* mean distance from the plane of mean 0 */
	double uniformity;                  /* of the directions */
};
/* The cloud itself: each picture has a centre and a width of its own. */
void nr_sphere_cloud(real at[NR_SPHERE_POINTS][3]);
/* What the norm, with first values and the statistics of the cloud, makes of it. "none": the cloud. */
int nr_sphere_run(struct nr_sphere *, const char *norm, struct nr_error *);
/* Seen from aside, (points,2), right-handed; the sphere stays a circle. */
void nr_sphere_view(const struct nr_sphere *, double at[NR_SPHERE_POINTS][2]);

#endif
