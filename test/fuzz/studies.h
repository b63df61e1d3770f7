/* Commands that studies of the fuzzers may run. */
#ifndef FUZZ_STUDIES_H
#define FUZZ_STUDIES_H

#include "study/study.h"

struct fuzz_conf { char *data, *norm, *out; double lr; int64_t seed; bool json; };
static const struct nr_option fuzz_train[] = {
	NR_OPT_STRING(struct fuzz_conf, data, "", "data"),
	NR_OPT_STRING(struct fuzz_conf, norm, "", "norm"),
	NR_OPT_STRING(struct fuzz_conf, out, "", "out"),
	NR_OPT_FLOAT(struct fuzz_conf, lr, 1e-3, 0, 1, "rate"),
	NR_OPT_INT(struct fuzz_conf, seed, 0, 0, 9e15, "seed"),
	NR_OPT_END
};
static const struct nr_option fuzz_knn[] = { NR_OPT_BOOL(struct fuzz_conf, json, "0", "JSON"), NR_OPT_END };
static const struct nr_study_command fuzz_commands[] = {
	{ "train", fuzz_train, sizeof(struct fuzz_conf), false, true },
	{ "knn", fuzz_knn, sizeof(struct fuzz_conf), true, false },
	{ NULL, NULL, 0, false, false },
};
#define FUZZ_STUDY "title: t\nstages: [{train: {run: train}}, {knn: {run: knn}}]\nbase: {data: x}\n" \
	"arms: [{name: a, norm: ln}, {name: b, norm: bn}]\nseeds: [0, 1]\nmetric: knn.top1\n"

#endif
