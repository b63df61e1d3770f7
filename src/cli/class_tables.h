/* Tables of norma eval: scores of each class, and which are taken for which. */
#ifndef NR_CLASS_TABLES_H
#define NR_CLASS_TABLES_H

#include "cli.h"
#include "infer/classes.h"

enum { CLI_CLASSES_SHOWN = 30 };        /* more than that are for --json */
void cli_print_classes(const struct nr_class_counts *, bool confusion);
/* macro_f1, classes, and the matrix on demand, for an object that is printed as JSON. */
void cli_json_classes(json_t *, const struct nr_class_counts *, bool confusion);

#endif
