/* Mixup and CutMix on a batch of the loader: which, how strong, where, drawn as timm's Mixup in batch mode. */
#ifndef NR_DATA_MIX_H
#define NR_DATA_MIX_H

#include "math/mix.h"
#include "norma/data.h"

struct nr_mixing { enum { NR_MIX_NONE, NR_MIX_UP, NR_MIX_CUT } kind; double lam; struct nr_box box; };     /* lam: what stays */

/* A pure function of (seed, number). */
struct nr_mixing nr_mix_draw(const struct nr_loader_config *, int64_t number, int32_t h, int32_t w);
/* In place: sample i takes from B-1-i and the other way round, so pairs are mixed at once. target (B,classes). */
void nr_mix_run(const struct nr_mixing *, int64_t B, int32_t channels, int32_t h, int32_t w, float *image);
void nr_mix_soften(const struct nr_mixing *, int64_t B, int32_t classes, const int32_t *label, double smoothing, float *target);

#endif
