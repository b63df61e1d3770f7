/* Tests that come for free: every op, norm and model over its cases, whether it is built in or of a plug-in.
 *
 * In double (libnorma64): finite differences agree for each input and parameter. In both precisions: a second use of an input adds;
 * memory reuse, rebuilding and poisoned memory change no bit; 1, 2 and 3 threads give equal bits; gaps between samples change nothing;
 * padding never leaks. The program in float then compares itself with its twin in double, whose output it reads.
 *
 * test/gradcheck.c runs this on all that is built in, `norma check` on what it is given. */
#ifndef NR_CHECK_H
#define NR_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "norma/model.h"
#include "norma/nn.h"
#include "norma/norm.h"
#include "norma/task.h"
#include "norma/optim.h"

enum nr_check_kind {
	NR_CHECK_BUILDS,
	NR_CHECK_FINITE,
	NR_CHECK_GRADIENT,                  /* the one that is made in double alone */
	NR_CHECK_PRECISION,
	NR_CHECK_ADDS,
	NR_CHECK_POISON,
	NR_CHECK_THREADS,
	NR_CHECK_MEMORY,
	NR_CHECK_FUSING,
	NR_CHECK_GAPS,
	NR_CHECK_PADDING,
	NR_CHECK_RESUME,                    /* of tasks */
	NR_CHECKS
};
extern const char *const nr_check_names[NR_CHECKS];

/* What is checked: a function that builds a graph from inputs of the shapes of a case. */
struct nr_subject {
	const char *name;                   /* "layer.layer" */
	const void *of;
	nr_t *(*build)(const struct nr_subject *, struct nr_net *, nr_t **x, const char *options);
	const struct nr_case *cases;        /* ends with NULL shapes */
	bool backward, strided;             /* it has one; rows of x[0] may have gaps */
	bool approximate;                   /* backward is by design not the derivative */
	bool deep;                          /* many ops: rounding adds up, and differences are tried for some values of a tensor */
};

struct nr_checker {
	/* Of each check of each case; detail: what is wrong. */
	void (*tell)(void *context, const struct nr_subject *, const struct nr_case *, enum nr_check_kind, bool ok, const char *detail);
	void *context;
	FILE *twin;                         /* the output of the program in double; or NULL */
	FILE *dump;                         /* this is that program: values go there, then what it found; or NULL */
	bool values;                        /* with dump: values alone */
	int checks, failed;                 /* out */
	const struct nr_subject *subject;   /* at work */
	const struct nr_case *at;
};

/* All cases of a subject. */
void nr_check_run(struct nr_checker *, const struct nr_subject *);
/* What is no graph: some steps of an optimizer; of a task on pictures, short trainings in the folder dir; the first samples of a data set
 * ("NAME:key=value"). Told as a subject of that name. */
int nr_check_optimizer(struct nr_checker *, const struct nr_optimizer *, struct nr_error *);
int nr_check_task(struct nr_checker *, const struct nr_task *, const char *dir, struct nr_error *);
int nr_check_dataset(struct nr_checker *, const char *text, struct nr_error *);
/* For these: one check. */
__attribute__((format(printf, 4, 5))) void nr_check_tell(struct nr_checker *, enum nr_check_kind, bool ok, const char *fmt, ...);

/* Subjects; their texts live in the arena, NULL: out of memory. */
const struct nr_subject *nr_subject_op(const struct nr_op *, const char *owner, struct nr_arena *);
/* A norm as a plan would have it, on tokens of all the kinds that it can stand. */
const struct nr_subject *nr_subject_norm(const struct nr_norm *, struct nr_arena *);
/* A model of a few tokens. NULL and an error, too, if its text is wrong or its inputs are none that can be made up. */
const struct nr_subject *nr_subject_model(const char *text, struct nr_arena *, struct nr_error *);
/* By name: a norm (with its ops), an op or a model; to is called for each. Unknown ones come with the nearest. */
int nr_subjects_find(const char *name, void (*to)(void *context, const struct nr_subject *), void *context, struct nr_arena *,
	struct nr_error *);

/* main of the twin: [--plugin FILE.so]... NAME... Writes to stdout what nr_checker.twin reads. */
NR_API int nr_check_twin(int argc, char **argv, FILE *out, FILE *log);

#endif
