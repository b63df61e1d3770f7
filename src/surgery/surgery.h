/* Norm surgery: another norm plan for a trained model, with its outputs changed as little as may be.
 *
 * Entries that both plans have carry over; a new norm takes the gain and bias of the one that it replaces (both sides of sep do).
 * Then, site by site from the input on, over given samples: running statistics are measured, and gain and bias become those with the
 * least squared difference between the outputs of the new norm and of the old one at that site, channel by channel. */
#ifndef NR_SURGERY_H
#define NR_SURGERY_H

#include "infer/evaluate.h"

struct nr_tokenizer;

/* Samples in memory, ready for a model: pictures, or texts of one length with padding. */
struct nr_samples {
	int64_t count, batch;
	float *image;                       /* (count,channels,size,size), or NULL */
	int32_t *ids, *valid;               /* (count,length), (count) */
	int64_t length;
};
int nr_samples_pictures(struct nr_samples *, const struct nr_weights *, const struct nr_evaluation *, int64_t batch, struct nr_error *);
int nr_samples_texts(struct nr_samples *, const struct nr_weights *, const struct nr_tokenizer *, const struct nr_source *, int64_t count,
	int64_t batch, struct nr_error *);
void nr_samples_release(struct nr_samples *);

struct nr_surgery_site {
	const char *name, *was, *is;        /* "blocks.0.attn.res", "layer", "sep(batch,layer)" */
	double copied, fitted;              /* |new - old| / |old| of the outputs at the site; NAN without samples */
};
struct nr_surgery {
	struct nr_surgery_site *site;       /* where the plans differ; in the arena of the weights */
	int64_t sites, carried, fresh;      /* entries with old values, entries with first values */
	double cosine[2], change[2];        /* of the last tokens, special and others: mean cosine, |new - old| / |old|; NAN: none */
	int (*watch)(void *context, int64_t done, int64_t of);  /* non-zero stops it; or NULL */
	void *context;
};
/* The weights get the new plan. samples NULL: nothing is measured and fitted. After a failure they are as they were. */
int nr_surgery(struct nr_weights *, const char *norms, const struct nr_samples *, struct nr_surgery *, struct nr_error *);

/* The model of these weights recorded with a plan, for the table of its sites; NULL: it failed. */
struct nr_net *nr_surgery_record(const struct nr_weights *, struct nr_store *, const char *norms, struct nr_error *);

#endif
