/* How a model does on pictures that are not like those it was trained on: error, likelihood and calibration, with or without adaptation. */
#ifndef NR_SHIFTED_H
#define NR_SHIFTED_H

#include "picture/corrupt.h"
#include "surgery/adapt.h"

enum { NR_CALIBRATION_BINS = 15 };
struct nr_calibration {                         /* shares of 1; bins of equal width of the largest probability (Guo et al. 2017) */
	int64_t samples;
	double error, nll, ece;
	double brier;                           /* mean over samples of the sum over classes of (p - truth)^2 */
	double bin_count[NR_CALIBRATION_BINS], bin_confidence[NR_CALIBRATION_BINS], bin_right[NR_CALIBRATION_BINS];     /* sums */
};

/* Pictures in a fixed order, which adaptation needs mixed; cropped once and kept where they fit into a gigabyte. */
struct nr_shift_set;
struct nr_shift_source {
	const struct nr_source *source;
	enum nr_split split;
	int64_t samples;                        /* how many; 0: all */
	uint64_t seed;                          /* of the order: which come first */
	struct nr_augment view;                 /* as the evaluation of the training saw pictures */
};
int nr_shift_set_open(struct nr_shift_set **, const struct nr_shift_source *, struct nr_error *);
void nr_shift_set_close(struct nr_shift_set *); /* NULL is fine */
int64_t nr_shift_set_count(const struct nr_shift_set *);
/* Picture i as the model would see it, corrupted unless how is NULL; `sample` of how is set by this. */
int nr_shift_set_picture(struct nr_shift_set *, int64_t i, const struct nr_corrupt *how, struct nr_picture *, struct nr_error *);
/* Classes that occur: (classes) true; how many. */
int64_t nr_shift_set_present(const struct nr_shift_set *, bool *present);

struct nr_shift {
	const struct nr_corrupt *corrupt;       /* NULL: pictures as they are */
	const bool *present;                    /* (classes) to which the softmax is limited; NULL: all */
	int64_t batch;                          /* the adapter's */
	int (*watch)(void *context, int64_t done);      /* after each batch; non-zero stops; or NULL */
	void *context;
};
/* From the model as trained, batch after batch; what adapts leaves out a last batch that is not full. */
int nr_shift_score(struct nr_shift_set *, struct nr_adapter *, const struct nr_shift *, struct nr_calibration *, struct nr_error *);

#endif
