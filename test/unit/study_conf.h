/* A made-up command of two stages whose studies tests read. */
#ifndef UNIT_STUDY_CONF_H
#define UNIT_STUDY_CONF_H

#include "norma/option.h"
#include "study/study.h"

struct study_conf { char *data, *norm, *out; double lr, wd; int64_t seed, epochs; };
static const struct nr_option study_rows[] = {
	NR_OPT_STRING(struct study_conf, data, "", "data"),
	NR_OPT_STRING(struct study_conf, norm, "", "norm"),
	NR_OPT_STRING(struct study_conf, out, "", "out"),
	NR_OPT_FLOAT(struct study_conf, lr, 1e-3, 0, 1, "rate"),
	NR_OPT_FLOAT(struct study_conf, wd, 1e-3, 0, 1, "decay"),
	NR_OPT_INT(struct study_conf, seed, 0, 0, 9e15, "seed"),
	NR_OPT_INT(struct study_conf, epochs, 1, 1, 100, "epochs"),
	NR_OPT_END
};
static const struct nr_study_command commands[] = {
	{ "train", study_rows, sizeof(struct study_conf), false, true }, { "probe", study_rows, sizeof(struct study_conf), true, false },
	{ NULL, NULL, 0, false, false },
};

#endif
