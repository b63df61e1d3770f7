/* Masked autoencoder (MAE) and its uniform twin (U-MAE): the graph that pre-trains an encoder, and its masks.
 *
 *   struct nr_mae o; nr_option_defaults(nr_mae_options, &o); o.decoder_dim = 64; ...
 *   nr_mae_encoder(&spec, &o, arena, &err);                    a ViT's text, with the positions and the norm that MAE wants
 *   struct nr_mae_graph g;
 *   nr_t *loss = nr_mae_record(net, &spec, &o, batch, &g);     after nr_norms_use; then nr_norms_done, nr_plan_make
 *   const struct nr_mae_mask m = nr_mae_mask(&g, plan);
 *   nr_mae_mask_draw(&m, nr_rng_make(seed, NR_STREAM_MASK, step), 0);
 *
 * The store then holds the encoder under a ViT's own names and the rest under "decoder". */
#ifndef NR_MAE_H
#define NR_MAE_H

#include "base/real.h"
#include "base/rng.h"
#include "norma/model.h"
#include "norma/task.h"

enum { NR_MAE_MAX_PATCHES = 4096 };

struct nr_mae_graph {
	nr_t *image;                        /* (B,channels,H,W) */
	nr_t *kept;                         /* (B,K) int32: the patches that the encoder sees, in its order */
	nr_t *restore;                      /* (B,P+N) int32: for each place of the decoder the row of latent; too large: masked. */
					    /* P is 1 with a class token, else 0 */
	nr_t *weight;                       /* (B,N): 1 where a patch is masked, else 0 */
	nr_t *latent;                       /* (B,S+K,C): the encoder's output after its final norm, S special tokens */
	nr_t *pred;                         /* (B,N,p*p*channels): row, column, channel */
	nr_t *mae, *unif, *loss;            /* unif: without lambda; NULL without uniformity */
};

/* How many of N patches the encoder sees: int(N (1 - ratio)), as the released code rounds it. */
int64_t nr_mae_kept(int64_t patches, double ratio);
/* Settles the encoder's options that MAE decides: position table, and a final norm on the tokens themselves. */
int nr_mae_encoder(struct nr_model_spec *, const struct nr_mae *, struct nr_arena *, struct nr_error *);
/* Records inputs image, kept, restore and weight, encoder, decoder and loss; returns the loss. Taps: loss, loss.mae, loss.unif,
 * and if the net keeps hidden ones: latent, pred, blockN, decoder.blockN. NULL after an error, which sticks in the net. */
nr_t *nr_mae_record(struct nr_net *, const struct nr_model_spec *, const struct nr_mae *, int64_t batch, struct nr_mae_graph *);

/* The decoder's sizes from the shapes of a file's tensors, under any of the model's namings; false: it has none. Heads cannot be
 * seen: a width of 32 is assumed, as in the published models. */
struct nr_st_file;
bool nr_mae_guess(struct nr_mae *, const struct nr_model *, const struct nr_st_file *, struct nr_arena *);

/* ---- masks ------------------------------------------------------------------------------------------------------------- */

struct nr_mae_mask {
	int64_t batch, patches, visible;
	int64_t special, places;            /* rows before the patches: S of latent, P of the decoder */
	int32_t *kept, *restore;            /* (B,visible), (B,places+patches) */
	real *weight;                       /* (B,patches) */
};
struct nr_mae_mask nr_mae_mask(const struct nr_mae_graph *, const struct nr_plan *);
/* The patches with the smallest noise (B,patches) are kept, equal ones by their number. No NaN. */
void nr_mae_mask_noise(const struct nr_mae_mask *, const float *noise);
/* The same with noise from counters; `first` is the number within the step of the first sample: micro-batches differ. */
void nr_mae_mask_draw(const struct nr_mae_mask *, struct nr_rng, int64_t first);

#endif
