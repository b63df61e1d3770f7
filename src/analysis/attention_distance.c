/* Mean attention distance. See attention_distance.h. */
#include "analysis/attention_distance.h"

static double distance(int64_t i, int64_t j, int64_t w)
{
	const double dy = (double)(i / w - j / w), dx = (double)(i % w - j % w);
	return sqrt(dy * dy + dx * dx);
}

void nr_grid_distance(int64_t h, int64_t w, real *out)
{
	for (int64_t i = 0; i < h * w; i++)
		for (int64_t j = 0; j < h * w; j++) out[i * h * w + j] = (real)distance(i, j, w);
}

void nr_attention_distance(int64_t B, int64_t H, int64_t S, int64_t h, int64_t w, const real *attn,
	int renormalise, double *per_head, real *per_token)
{
	const int64_t T = h * w, A = S + T;
#pragma omp parallel for schedule(static) if (B * H * T * T > 20000)
	for (int64_t k = 0; k < H; k++) {
		per_head[k] = 0;
		for (int64_t i = 0; i < T; i++) {
			double token = 0;
			for (int64_t b = 0; b < B; b++) {
				const real *row = attn + ((b * H + k) * A + S + i) * A + S;
				double d = 0, mass = 0;
				for (int64_t j = 0; j < T; j++) {
					d += row[j] * distance(i, j, w);
					mass += row[j];
				}
				token += renormalise ? d / mass : d;
			}
			token /= (double)B;
			if (per_token) per_token[k * T + i] = (real)token;
			per_head[k] += token / (double)T;
		}
	}
}
