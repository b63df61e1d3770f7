/* A ViT's training step written by hand, for `norma bench loop`. */
#ifndef NR_HAND_H
#define NR_HAND_H

#include "bench.h"

struct hand;
/* On failure *out may be set and wants hand_close. */
int hand_open(struct hand **out, const struct bench *, struct nr_error *);
void hand_close(struct hand *);
void hand_step(struct hand *);                                  /* forward and backward */
void hand_update(struct hand *, const struct nr_optim *);       /* AdamW */
double hand_loss(const struct hand *);
bool hand_same_gradients(const struct hand *, const struct bench *);

#endif
