/* What the files of `norma robust` share. */
#ifndef NR_CLI_ROBUST_H
#define NR_CLI_ROBUST_H

#include "model_flags.h"
#include "surgery/shifted.h"

enum { ROBUST_ADAPTS = 4 };
struct robust {                                 /* settings */
	char *model, *norm, *data, *data_root, *split, *resample;
	int64_t batch;
	double crop_share;
	bool json;
	char *corruptions, *severities, *corrupted, *frost, *adapt, *relative_to, *classes, *out;
	int64_t samples, seed;
	int32_t setting;
	double prior, adapt_lr, margin, radius, floor, leave;
	bool adapt_all, stored;
};

struct robust_result {                          /* a checkpoint under one adaptation */
	const char *arm, *file, *norms;
	enum nr_adapt_kind adapt;
	struct nr_calibration clean, cell[NR_CORRUPTIONS][NR_SEVERITIES];
	int64_t free, batchwise, restarts;
};
struct robust_arm { const char *name; enum nr_adapt_kind adapt; };
struct robust_job {
	struct cli *c;
	const struct robust *v;
	int corruption[NR_CORRUPTIONS], severity[NR_SEVERITIES];        /* measured ones, in the order of the tables */
	int corruptions, severities;
	struct nr_adapt adapt[ROBUST_ADAPTS];
	int adapts;
	struct nr_frost frost;
	enum nr_corrupt_setting setting;
	bool stored;                            /* as JPEG, after each corruption */
	const char *data;                       /* for headings */
	int64_t samples, present, classes;      /* classes that occur; of the model */
	struct robust_result *result;           /* (results): checkpoint by checkpoint, the adaptations of each in order */
	int64_t results;
	struct robust_arm *arm;                 /* (arms) */
	int64_t arms;
	struct nr_picture pictures;             /* for the page: of each corruption one, from clean to severe */
	bool alexnet;                           /* all of ImageNet-C: relative to AlexNet's published errors */
};

/* Means over all corruptions and severities of one result. */
struct robust_means { double clean, error, nll, brier, ece, mce, relative_mce; };        /* mce NAN: relative to nothing */
struct robust_means robust_means_of(const struct robust_job *, const struct robust_result *);
double robust_error(const struct robust_job *, const struct robust_result *, int corruption);    /* mean over severities */
bool robust_in(const struct robust_arm *, const struct robust_result *);
const char *robust_arm_title(const struct robust_job *, int64_t arm);

/* robust_table.c */
void robust_print(const struct robust_job *);
json_t *robust_json(const struct robust_job *, bool bins);       /* bins: with those of the reliability diagrams */
/* robust_page.c: robust.json, errors.csv, pictures.png and robust.html in a folder. */
int robust_write(const struct robust_job *, const char *dir);
int robust_picture_grid(struct robust_job *, struct nr_shift_set *);
/* Frost is there, and it is no photograph. */
bool robust_own_frost(const struct robust_job *);

#endif
