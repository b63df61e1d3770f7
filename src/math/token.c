/* The token family in plain C: see token.h for the equations. */
#include "math/token.h"

#include <string.h>

#include "math/row.h"

static real rms_of(const struct nr_token_unit *k, int64_t i) { return k->rms ? k->rms[i * k->ldr] : 1; }
static int64_t row_of(const struct nr_token_unit *k, int64_t i) { return k->at ? k->at[i] : i; }

static void gather(const struct nr_token_unit *k, int64_t rows, real share, real *out)
{
	const int64_t d = k->d;
	if (k->at) memset(out, 0, (size_t)(rows * 2 * d) * sizeof(real));
	for (int64_t i = 0; i < k->n; i++) {
		real *u = out + row_of(k, i) * 2 * d;
		for (int64_t c = 0; c < d; c++) {
			const real v = k->x[i * k->ldx + c] / rms_of(k, i) - k->centre[c];
			if (k->at) u[c] += v;
			else u[c] = v, u[d + c] = v * v;
		}
	}
	for (int64_t r = 0; k->at && r < rows; r++, out += 2 * d)
		for (int64_t c = 0; c < d; c++) {
			out[c] *= share;
			out[d + c] = out[c] * out[c];
		}
}

struct value { real u, m, v, mean, rstd, hat; }; /* mean: of the token, about the centre */

static struct value value(const struct nr_token_unit *k, int64_t i, int64_t c)
{
	const real *mq = k->mq + row_of(k, i) * k->ldmq;
	struct value r = { .m = mq[c], .mean = k->mean[i] - k->centre[c] };
	r.u = k->x[i * k->ldx + c] / rms_of(k, i) - k->centre[c];
	const real v = mq[k->d + c] - r.m * r.m;
	r.v = v > 0 ? v : 0;
	r.rstd = 1 / nr_sqrt(k->lam_var * k->var[i] + (1 - k->lam_var) * r.v + k->eps);
	r.hat = (r.u - k->lam_mean * r.mean - (1 - k->lam_mean) * r.m) * r.rstd;
	return r;
}

static void normalize(const struct nr_token_unit *k)
{
	for (int64_t i = 0; i < k->n; i++)
		for (int64_t c = 0; c < k->d; c++) {
			const real h = value(k, i, c).hat;
			k->y[i * k->ldy + c] = k->weight ? k->weight[c] * h + k->bias[c] : h;
		}
}

static void gradients(const struct nr_token_unit *k)
{
	const int64_t d = k->d;
	real lam_mean = 0, lam_var = 0;
	for (int64_t i = 0; i < k->n; i++) {
		real *dmq = k->dmq ? k->dmq + row_of(k, i) * 2 * d : NULL, mean = 0, var = 0;
		for (int64_t c = 0; c < d; c++) {
			const struct value r = value(k, i, c);
			const real dy = k->dy[i * k->lddy + c];
			const real g = (k->weight ? dy * k->weight[c] : dy) * r.rstd;
			const real s = -g * r.hat * r.rstd / 2;       /* of var' */
			k->dz[i * k->lddz + c] = g;
			mean -= g;
			var += s;
			lam_mean -= g * (r.mean - r.m);
			lam_var += s * (k->var[i] - r.v);
			if (k->dweight) k->dweight[c] += dy * r.hat, k->dbias[c] += dy;
			if (!dmq) continue;
			const real dq = r.v > 0 ? (1 - k->lam_var) * s : 0;
			nr_put(&dmq[c], (k->lam_mean - 1) * g - 2 * r.m * dq, k->at != NULL);
			nr_put(&dmq[d + c], dq, k->at != NULL);
		}
		k->dmean[i * k->ldd] = k->lam_mean * mean;
		k->dvar[i * k->ldd] = k->lam_var * var;
	}
	if (!k->dlam) return;
	k->dlam[0] += lam_mean;
	k->dlam[1] += lam_var;
}

static void scatter(const struct nr_token_unit *k, real share, const real *u, const real *g)
{
	const int64_t d = k->d;
	for (int64_t i = 0; i < k->n; i++) {
		const int64_t r = row_of(k, i) * 2 * d;
		for (int64_t c = 0; c < d; c++)
			k->dz[i * k->lddz + c] += share * (g[r + c] + 2 * u[r + c] * g[r + d + c]);
	}
}

static void spread(int64_t heads, int64_t d, const real *x, const real *rms, real mean, real dmean, real dvar,
	const real *dz, real *dx, int add)
{
	for (int64_t h = 0; h < heads; h++, x += d, dz += d, dx += d) {
		const real s = rms ? rms[h] : 1;
		real dot = 0;
		for (int64_t c = 0; rms && c < d; c++)
			dot += (dz[c] + dmean + dvar * (x[c] / s - mean)) * (x[c] / s);
		dot /= (real)d;
		for (int64_t c = 0; c < d; c++) {
			const real z = x[c] / s, g = (dz[c] + dmean + dvar * (z - mean) - z * dot) / s;
			dx[c] = add ? dx[c] + g : g;
		}
	}
}

static void scores(int64_t n, const real *px, const real *py, real x, real y, const real *a, real *s)
{
	for (int64_t j = 0; j < n; j++) {
		const real dx = px[j] - x, dy = py[j] - y;
		s[j] = a[0] * (dx * dx + dy * dy) + a[1] * dx + a[2] * dy;
	}
}

static void score_sums(int64_t n, const real *px, const real *py, real x, real y, const real *ds, double *da)
{
	real s0 = 0, s1 = 0, s2 = 0;
	for (int64_t j = 0; j < n; j++) {
		const real dx = px[j] - x, dy = py[j] - y;
		s0 += ds[j] * (dx * dx + dy * dy);
		s1 += ds[j] * dx;
		s2 += ds[j] * dy;
	}
	da[0] += (double)s0;
	da[1] += (double)s1;
	da[2] += (double)s2;
}

const struct nr_token_kernels nr_token_plain = {
	.gather = gather, .normalize = normalize, .gradients = gradients, .scatter = scatter, .spread = spread,
	.scores = scores, .score_sums = score_sums,
};
const struct nr_token_kernels *nr_token_active = &nr_token_plain;
