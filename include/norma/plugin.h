/* Norms, models, tasks, data sets, optimizers, schedules and ops from outside this library.
 *
 * A plug-in is a shared object that ends with one table of what it brings:
 *
 *   NR_PLUGIN(.norms = NR_LIST(nr_norm, &my_norm))
 *
 *   cc -O3 -shared -fPIC my_norm.c $(pkg-config --cflags norma) -o my_norm.so
 *   norma --plugin ./my_norm.so train --norm my_norm ...
 *
 * It is linked with nothing: the program that loads it has the library. A C program registers the same table by nr_register, without
 * a file. What is registered stays until the program ends and behaves like what is built in. docs/plugins.md has more. */
#ifndef NORMA_PLUGIN_H
#define NORMA_PLUGIN_H

#include "norma/data.h"
#include "norma/model.h"
#include "norma/norm.h"
#include "norma/op.h"
#include "norma/task.h"
#include "norma/optim.h"

#define NR_PLUGIN_VERSION 1                 /* of this header and of the structs below it */

struct nr_plugin {
	/* NR_PLUGIN_HEAD fills these: what the table was compiled with. */
	uint32_t version, real_size;
	uint32_t size[7];                   /* of the structs, in the order of the lists */
	/* Lists end with NULL; NULL: none. */
	const struct nr_norm *const *norms;
	const struct nr_model *const *models;
	const struct nr_task *const *tasks;
	const struct nr_dataset *const *datasets;
	const struct nr_optimizer *const *optimizers;
	const struct nr_schedule_rule *const *schedules;
	const struct nr_op *const *ops;     /* for `norma check`, beside those that the norms name */
};
#define NR_PLUGIN_HEAD                                                                                                      \
	.version = NR_PLUGIN_VERSION, .real_size = sizeof(nr_real),                                                            \
	.size = { sizeof(struct nr_norm), sizeof(struct nr_model), sizeof(struct nr_task), sizeof(struct nr_dataset),       \
		sizeof(struct nr_optimizer), sizeof(struct nr_schedule_rule), sizeof(struct nr_op) }
#define NR_LIST(type, ...) (const struct type *const[]){ __VA_ARGS__, NULL }
/* The table of a shared object: the one symbol that is looked for. */
#define NR_PLUGIN(...)                                                                                                      \
	extern NR_DATA const struct nr_plugin nr_plugin;                                                                    \
	const struct nr_plugin nr_plugin = { NR_PLUGIN_HEAD, __VA_ARGS__ };

/* Adds what the table lists; all of it, or nothing and an error: another version, a name that is taken, a field that is missing. The
 * descriptors are kept, not copied. Before other threads use the library. */
NR_API int nr_register(const struct nr_plugin *, struct nr_error *);

/* ---- shared objects ------------------------------------------------------------------------------------------------- */

struct nr_plugin_file {
	const char *path, *sha256;          /* as realpath gives it; in hexadecimal digits */
	const struct nr_plugin *table;
};
/* Loads and registers a file; one that is loaded already is fine. */
NR_API int nr_plugin_load(const char *path, struct nr_error *);
/* Those that the key `plugins` of a YAML file names: a recipe, a study, the config.yaml of a run. Each is PATH, from the file's folder,
 * or PATH sha256=DIGITS: then a file with other contents is refused, and one with the same contents that is loaded already will do. A
 * file without the key is fine. Returns at the first that cannot be loaded. */
NR_API int nr_plugins_read(const char *yaml, struct nr_error *);
NR_API void nr_plugins_allow_changed(bool);         /* from now on contents may differ from what was recorded */
/* What is loaded, in that order. Trainings write it into config.yaml. */
NR_API const struct nr_plugin_file *nr_plugins(int *count);

#endif
