/* Numbers that tell how features differ between normalizations: mean cosine, outlier channels, DTN's variation coefficient,
 * token magnitude per head, quantiles of dimensions. Sums are in double. */
#ifndef NR_FEATURE_STATS_H
#define NR_FEATURE_STATS_H

#include "norma/err.h"

/* Mean over i != j of the cosine of rows i and j of x (N,C), in O(N C): (|sum u|^2 - sum |u|^2) / (N (N - 1)). A row of zeros has
 * cosine 0 to all. 0 when N < 2. */
int nr_mean_cosine(int64_t N, int64_t C, const real *x, double *out, struct nr_error *);

/* Outlier channels of x (N,C). The scale is the median over channels of a channel's standard deviation (over rows), which the
 * outliers themselves do not move; when that is 0, the deviation of all N C values. A channel is an outlier when |its mean| or
 * its largest |value| is at least `threshold` scales, such as 6 (Dettmers et al. 2022 take 6 of the values as they are). */
struct nr_outliers {
	double scale;
	int64_t by_mean, by_max;        /* channels whose mean, whose largest value passes; the second are all the outliers */
	int64_t worst;                  /* channel of the largest max_over */
};
/* x (N,C); mean_over, max_over (C): |mean| / scale and max |value| / scale; 0 when the scale is 0. */
int nr_outlier_channels(int64_t N, int64_t C, const real *x, double threshold, double *mean_over, double *max_over,
	struct nr_outliers *, struct nr_error *);

/* Variation coefficient (DTN, Fig. 3b): "the norm of |(x - mu) / x| where mu is the mean in normalization layer". For each token
 * the Euclidean norm over its C channels. Entries x = 0 are left out and counted. Entries near 0 make the norms heavy-tailed, and
 * the paper does not say how tokens are put together: both mean and median are given; the median is the steady one. */
enum nr_mean_of {
	NR_MEAN_LAYER,                  /* of the token's channels */
	NR_MEAN_INSTANCE,               /* of the channel over the sample's tokens */
	NR_MEAN_BATCH,                  /* of the channel over all samples and tokens */
	NR_MEAN_GIVEN,                  /* mu (B,T,C) of the caller, such as DTN's */
};
struct nr_variation { double mean, median; int64_t zeros; };
/* x (B,T,C); mu: NULL unless NR_MEAN_GIVEN. per_token (B,T) or NULL. */
int nr_variation_coefficient(int64_t B, int64_t T, int64_t C, const real *x, enum nr_mean_of, const real *mu, double *per_token,
	struct nr_variation *, struct nr_error *);

/* Magnitude of tokens in each head (DTN, Fig. 1): Euclidean norm of channels [h C/H, (h+1) C/H) of each token. x (B,T,C), C a
 * multiple of H; out (B,H,T): each (T) is a heat map of the grid. spread (H) or NULL: standard deviation over tokens / mean over
 * tokens, mean over samples; 0: every token has the same size; small after norms of single tokens. */
int nr_token_magnitude(int64_t B, int64_t T, int64_t C, int64_t H, const real *x, double *out, double *spread, struct nr_error *);

/* Distribution of the first D dimensions of x (N,C), D at most C: out (D,NR_QUANTILES), the quantiles below of each, linear between
 * order statistics (numpy's default). Call it with what goes into a norm and with what comes out. */
enum { NR_QUANTILES = 7, NR_DISTRIBUTION_DIMS = 50 };
extern const double nr_quantile_at[NR_QUANTILES]; /* .01 .05 .25 .5 .75 .95 .99 */
int nr_distribution(int64_t N, int64_t C, const real *x, int64_t D, double *out, struct nr_error *);

#endif
