/* DINO: the graphs of its student and its teacher, and what lies between them: the teacher's targets, its centre and its schedules.
 *
 *   struct nr_dino o; nr_option_defaults(nr_dino_options, &o);
 *   nr_t *loss = nr_dino_student(net, &spec, &o, batch, &s);     after nr_norms_use; then nr_norms_done, nr_plan_make
 *   nr_t *out = nr_dino_teacher(other_net, &spec, &o, batch, &t);      in a store of its own
 *   after a run of the teacher: nr_dino_targets(...) makes s.target of its output, nr_dino_centre(...) moves the centre
 *
 * Both stores hold the encoder under the model's own names and the head under "dino". */
#ifndef NR_DINO_H
#define NR_DINO_H

#include "base/real.h"
#include "norma/model.h"

enum { NR_DINO_GLOBAL = 2, NR_DINO_MOST_VIEWS = 32 };       /* crops that the teacher sees; crops of a picture at most */

struct nr_dino {
	/* crops */
	int64_t local_crops, local_size;    /* local_size 0: 96 / 224 of the picture, a multiple of the patch */
	double global_scale_min, local_scale_min, local_scale_max;      /* shares of the area; global crops go up to 1 */
	double blur_first, blur_second;     /* probabilities, of the global crops; that of local ones is as for every augmentation */
	/* head */
	int64_t prototypes, head_hidden, head_bottleneck, head_layers;
	bool head_bn, norm_last_layer;
	/* loss and schedules */
	double student_temp, teacher_temp, warmup_teacher_temp, warmup_teacher_temp_epochs;
	double center_momentum, teacher_momentum, weight_decay_end, freeze_last_layer;
	/* evaluation */
	int64_t knn, knn_k;
	double knn_temp;
	int64_t linear, linear_blocks;
	bool linear_mean;
};
extern const struct nr_option nr_dino_options[];

struct nr_dino_graph {
	nr_t *global, *local;               /* (2 B,channels,S,S); (n B,channels,s,s) or NULL: crop after crop */
	nr_t *target;                       /* (2 B,prototypes): the teacher's probabilities; of a student only */
	nr_t *out;                          /* (crops B,prototypes): what the head makes of them, crop after crop */
	nr_t *loss;                         /* of a student only */
};

/* The side of a local crop; 0: there is none. */
int64_t nr_dino_local_size(const struct nr_dino *, const struct nr_model_spec *);
nr_t *nr_dino_student(struct nr_net *, const struct nr_model_spec *, const struct nr_dino *, int64_t batch, struct nr_dino_graph *);
nr_t *nr_dino_teacher(struct nr_net *, const struct nr_model_spec *, const struct nr_dino *, int64_t batch, struct nr_dino_graph *);
/* The released code's rule: all but biases and vectors decay, tokens and position tables too. For a store that is recorded. */
void nr_dino_decay(struct nr_store *);
bool nr_dino_last_layer(const char *entry);     /* does the entry belong to the layer that is frozen at first? */

/* The head's sizes from the shapes of a file's tensors, under any of the model's namings; false: it has none. */
struct nr_st_file;
bool nr_dino_guess(struct nr_dino *, const struct nr_model *, const struct nr_st_file *, struct nr_arena *);

/* ---- between teacher and student ------------------------------------------------------------------------------------------- */

struct nr_dino_meter {                      /* in nats; collapse: one is 0 or both are log(prototypes) */
	double entropy;                     /* of the teacher's outputs, their mean */
	double spread;                      /* entropy of the mean output: 0: all pictures get the same, log(prototypes): all are used */
};
/* out (rows,K): the teacher's outputs, which are overwritten; shift (K): room. target = softmax((out - centre) / temperature). */
void nr_dino_targets(int64_t rows, int64_t K, real *out, const real *centre, double temperature, real *target, real *shift);
/* logit (rows,K): what nr_dino_targets left in `out`; room: (K + rows) values and as many as nr_col_sum wants. */
struct nr_dino_meter nr_dino_measure(int64_t rows, int64_t K, const real *logit, const real *target, real *room);
size_t nr_dino_room(int64_t rows, int64_t K);   /* values, for any function here */
/* next = keep centre + (1 - keep) mean of the rows, which were not overwritten yet; next may be centre. */
void nr_dino_centre(int64_t rows, int64_t K, const real *out, double keep, const real *centre, real *next, real *room);
/* Every parameter (no buffer) of the teacher: keep its own + (1 - keep) the student's. Entries are matched by number. */
void nr_dino_follow(struct nr_store *teacher, const struct nr_store *student, double keep);

/* Schedules, by step from 0 on. */
double nr_dino_momentum(const struct nr_dino *, int64_t step, int64_t steps);
double nr_dino_weight_decay(const struct nr_dino *, double start, int64_t step, int64_t steps);
double nr_dino_temperature(const struct nr_dino *, int64_t step, int64_t per_epoch);

#endif
