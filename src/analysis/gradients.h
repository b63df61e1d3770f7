/* Gradients of a checkpoint's loss: how large they are in each block, and who makes those of a norm's gain and bias.
 *
 * SepNorm, Eq. 6: a norm that [CLS] shares with the other tokens has d L / d gamma_i = sum_l (d L / d y_li) xhat_li and
 * d L / d beta_i = sum_l d L / d y_li over the tokens l. Here the sums are kept apart for l = [CLS] and for all others. xhat is
 * (y - beta) / gamma, so that this holds for every norm that ends with gain and bias. */
#ifndef NR_GRADIENTS_H
#define NR_GRADIENTS_H

#include "base/mem.h"
#include "infer/molecule_batch.h"
#include "models/mae.h"
#include "norma/infer.h"

enum nr_grad_loss { NR_GRAD_CROSS_ENTROPY, NR_GRAD_MAE, NR_GRAD_UNIFORMITY, NR_GRAD_ERROR, NR_GRAD_YES_OR_NO, NR_GRAD_SPREAD };
extern const char *const nr_grad_loss_names[];          /* a sentence each */

struct nr_grad_site {
	const char *name;                   /* "blocks.3.attn.in" */
	const nr_t *y, *z;                  /* its output; zeros that were added to it, whose gradient is that of y */
	const struct nr_entry *gain, *bias; /* shared by all tokens; NULL: none */
	bool cls;
	double *sum;                        /* (4,C): gain from [CLS], gain from the others, bias likewise; over batches */
	double cls_length, length;          /* sums of |d L / d y| over [CLS], over other tokens, for the loss of one sample */
	int64_t cls_count, count;
};
struct nr_gradients {
	struct nr_net *net;
	struct nr_plan *plan;
	const struct nr_weights *w;
	enum nr_grad_loss kind;
	nr_t *image, *label, *loss;
	struct nr_mae_graph mae;
	struct nr_mae_mask mask;
	const struct nr_mol_view *graphs;         /* NULL: pictures */
	struct nr_mol_inputs inputs;
	int32_t *nodes;                     /* (batch) of the last one of graphs */
	struct nr_grad_site *site;
	int64_t sites, batch, batches;
	double *part;                       /* (batch,4,C), then two lengths for each sample */
	double loss_sum;
};
/* The loss: cross entropy if the model has a head and `labels` says that the data fit it; else that of `whole`, the model with the
 * decoder it was pre-trained with; else the uniformity of [CLS] (or the mean token) in the batch and of the patch tokens in
 * their picture (Eq. 4), which needs nothing but the encoder. */
int nr_gradients_open(struct nr_gradients *, const struct nr_weights *, const struct nr_weights *whole, int64_t batch, bool labels,
	struct nr_error *);
/* Of a model of graphs, whose view must stay: the absolute error, or the cross entropy if targets are 0 and 1, if the model has a head
 * for them; else the uniformity of [VNode] in the batch. */
int nr_gradients_open_graphs(struct nr_gradients *, const struct nr_weights *, const struct nr_mol_view *, int64_t batch,
	struct nr_error *);
/* Forward and backward as a training step would do it, with batch statistics and dropout; nothing is changed but the gradients. */
void nr_gradients_step(struct nr_gradients *, const struct nr_batch *);
void nr_gradients_step_graphs(struct nr_gradients *, int64_t first);    /* the samples from that one on, a full batch */
/* Length of the mean gradient of the parameters whose name begins so, over the batches seen. NULL: those before the blocks. */
double nr_gradients_norm(const struct nr_gradients *, const char *prefix, int64_t *parameters);
void nr_gradients_close(struct nr_gradients *);

#endif
