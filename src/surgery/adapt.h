/* Test-time adaptation: a trained model meets shifted pictures, batch after batch and without labels, and only its norms change.
 *
 *   stats   batch norms take mean and variance between the running ones, as of `prior` samples, and those of the batch (Schneider et al.
 *           2020, arXiv:2006.16971). Norms without running statistics stay as they are
 *   tent    in addition one step of Adam on the parameters of all norms, down the mean entropy of the predictions, with the batch's own
 *           statistics (Wang et al. 2021, arXiv:2006.10726). A batch is predicted before its step
 *   sar     likewise by SGD, from pictures of low entropy alone, towards flat minima (SAM), and from the start again when the moving mean
 *           of the entropy collapses (Niu et al. 2023, arXiv:2302.12400, Algorithm 1) */
#ifndef NR_ADAPT_H
#define NR_ADAPT_H

#include "base/real.h"
#include "norma/infer.h"

enum nr_adapt_kind { NR_ADAPT_NONE, NR_ADAPT_STATS, NR_ADAPT_TENT, NR_ADAPT_SAR };
extern const char *const nr_adapt_names[];      /* "none", "stats", "tent", "sar", NULL */

struct nr_adapt {
	enum nr_adapt_kind kind;
	double prior;                           /* stats */
	double lr;                              /* tent, sar; 0: 1e-3 */
	double margin, radius, floor;           /* sar: of log(classes), .4; of SAM's step, .05; mean entropy that starts anew, .2 */
	double leave;                           /* sar: share of the blocks, from the last one back, whose norms stay as they are, with all
						   that follow; .25: 9 to 11 of ViT-B and the final norm, as the authors have it */
	bool whole;                             /* all parameters of the norms (DTN's lambda and P too), not gain and bias alone */
};
struct nr_adapt nr_adapt_defaults(enum nr_adapt_kind);

struct nr_adapter;
/* The weights outlive it and are as before when it closes; meanwhile nobody else runs or changes them. */
int nr_adapter_open(struct nr_adapter **, const struct nr_weights *, int64_t batch, const struct nr_adapt *, struct nr_error *);
void nr_adapter_close(struct nr_adapter *);     /* NULL is fine */
/* The model as it was trained: before each shift. */
void nr_adapter_reset(struct nr_adapter *);
/* Logits (batch,classes) of image (batch,channels,size,size), which stay until the next run; then the model adapts. `samples` of them
 * count, all unless the kind is none. NULL: the gradient is not finite. */
const real *nr_adapter_run(struct nr_adapter *, const float *image, int64_t samples, struct nr_error *);
int64_t nr_adapter_classes(const struct nr_adapter *);
enum nr_adapt_kind nr_adapter_kind(const struct nr_adapter *);
/* Parameters that it may change, batch norms with running statistics, how often sar started anew. */
int64_t nr_adapter_free(const struct nr_adapter *), nr_adapter_batchwise(const struct nr_adapter *),
	nr_adapter_restarts(const struct nr_adapter *);

#endif
