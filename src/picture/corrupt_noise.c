/* Noise: corruptions of single values. */
#include <math.h>

#include "picture/corrupt_inner.h"

void nr_add_noise(struct nr_field *x, const double *noise, double sigma)
{
	const int64_t n = nr_field_len(x);
	for (int64_t i = 0; i < n; i++) x->v[i] += sigma * noise[i];
}

int nr_gaussian_noise(struct nr_corrupting *k)
{
	const int64_t n = nr_field_len(&k->x);
	double *noise = nr_corrupt_room(k, 1, n);
	if (!noise) return k->err->code;
	for (int64_t i = 0; i < n; i++) noise[i] = nr_rng_normal(k->draws.rng, (uint64_t)i);
	nr_add_noise(&k->x, noise, k->c[0]);
	nr_corrupt_put(k->p, &k->x);
	return NR_OK;
}

/* The sum of terms that follow from each other; means up to 500, so that the first does not vanish. */
void nr_poisson_cdf(double mean, double *cdf)
{
	double term = exp(-mean), sum = 0;
	for (int i = 0; i < NR_POISSON_MOST; i++) {
		cdf[i] = sum += term;
		term *= mean / (i + 1);
	}
}

static int first_above(const double *cdf, double u)
{
	int low = 0, high = NR_POISSON_MOST - 1;
	while (low < high) {
		const int middle = (low + high) / 2;
		if (cdf[middle] > u) high = middle;
		else low = middle + 1;
	}
	return low;
}

int nr_shot_noise(struct nr_corrupting *k)
{
	const int64_t n = nr_field_len(&k->x);
	for (int64_t i = 0; i < n; i++) {
		const double *cdf = nr_corrupt_poisson(k, k->c[0], k->p->pixels[i]);
		if (!cdf) return k->err->code;
		k->x.v[i] = first_above(cdf, (double)nr_rng_uniform(k->draws.rng, (uint64_t)i)) / k->c[0];
	}
	nr_corrupt_put(k->p, &k->x);
	return NR_OK;
}

/* Salt and pepper alike, every channel for itself. */
int nr_impulse_noise(struct nr_corrupting *k)
{
	const int64_t n = nr_field_len(&k->x);
	for (int64_t i = 0; i < n; i++) {
		const double u = (double)nr_rng_uniform(k->draws.rng, (uint64_t)i);
		if (u < k->c[0]) k->x.v[i] = u < k->c[0] / 2;
	}
	nr_corrupt_put(k->p, &k->x);
	return NR_OK;
}
