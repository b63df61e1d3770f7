/* What the files of `norma data` share. */
#ifndef NR_CLI_DATA_H
#define NR_CLI_DATA_H

#include "base/progress.h"
#include "cli.h"
#include "fetch/fetch.h"
#include "norma/data.h"

struct data {
	char *root, *from, *mirror, *output, *augment, *length, *samples, *shapes;
	int32_t split;
	int64_t count, cell, seed, depth, arguments, size;
	bool optional, force, keep, all, json;
};

int data_info(struct cli *, const struct data *, const char *name);
int data_info_graphs(struct cli *, const struct data *, const struct nr_source *, enum nr_split);
int data_show_graphs(struct cli *, const struct data *, const struct nr_source *);
int data_show(struct cli *, const struct data *, const char *name);
int data_make(struct cli *, const struct data *, const char *name, const char *root);
/* Of texts, for a split that has some. */
int data_text_info(struct cli *, const struct data *, const struct nr_source *);
int data_text_show(struct cli *, const struct data *, const struct nr_source *);

#endif
