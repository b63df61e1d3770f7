/* A run folder, read for a report: what `norma train`, `norma pretrain` and `norma probe` left there. Only config.yaml must be
 * there; what else is missing or cannot be read becomes a note, for the page to say. Everything lives in the arena but the
 * JSON values. */
#ifndef NR_RUNFOLDER_H
#define NR_RUNFOLDER_H

#include <stdbool.h>

#include "analysis/part_told.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

/* A CSV file of numbers. A cell that is empty was not measured; one that is no number counts as NaN. Columns called smiles or split hold
 * words: their text is kept too. */
struct nr_column { const char *name; double *value; bool *given; const char **text; };
struct nr_columns { struct nr_column *column; int count; int64_t rows; };

/* A last line without its end is a record being written: it does not count. */
int nr_columns_parse(char *text, size_t size, const char *name, struct nr_arena *, struct nr_columns *, struct nr_error *);
int nr_columns_load(const char *path, struct nr_arena *, struct nr_columns *, struct nr_error *);
const struct nr_column *nr_column_find(const struct nr_columns *, const char *name);    /* NULL if there is none */

struct nr_config_line { const char *key, *value; };
struct nr_config { struct nr_config_line *item; int count; };
/* Lines `key: value`; comments and quotes are taken off, indents do not count. */
int nr_config_parse(char *text, struct nr_arena *, struct nr_config *);
const char *nr_config_find(const struct nr_config *, const char *key);               /* NULL if there is none */

struct nr_picture_bytes { const unsigned char *bytes; size_t size; int64_t width, height; };

struct nr_runfolder {
	const char *dir, *name;                 /* as given; its last part */
	struct nr_config settings;
	json_t *env, *probe, *analysis, *classes, *objects;  /* objects of JSON, or NULL */
	struct nr_columns metrics, spectrum, predictions, layer_gradients, lambda;  /* without columns if not there */
	struct nr_columns points[NR_PARTS_MAX]; /* of the parts of the analysis that have maps of samples, likewise */
	struct nr_picture_bytes reconstruction, attention, drawn;   /* PNG; size 0 if not there */
	const char *status;                     /* "done", ...; "not finished" without an event "stop" */
	double seconds;                         /* wall time, all sessions; NAN if unknown */
	int64_t step, resumed;                  /* the last step; how often it was resumed */
	int64_t seed;                           /* -1 if unknown */
	struct nr_str notes;                    /* what is wrong, one line each */
	struct nr_str absent;                   /* files that are not there, likewise */
	struct nr_str commands;                 /* of the stages of a study that it went through, likewise */
};

int nr_runfolder_read(struct nr_runfolder *, const char *dir, struct nr_arena *, struct nr_error *);
/* Takes what norma probe and norma analyze left in a folder of their own, if anything. */
void nr_runfolder_add(struct nr_runfolder *, const char *dir, struct nr_arena *);
/* The command lines that a log begins with, as a study writes them. */
void nr_runfolder_add_log(struct nr_runfolder *, const char *path, struct nr_arena *);
void nr_runfolder_release(struct nr_runfolder *);

/* Where samples lie by a part of the analysis; NULL: there is no such part. */
const struct nr_columns *nr_runfolder_points(const struct nr_runfolder *, const char *part);
/* A text of env.json, else NULL. */
const char *nr_runfolder_env(const struct nr_runfolder *, const char *key);
/* A line "name   text" of the header that the trainer printed; NULL if it has none. In the arena. */
char *nr_runfolder_header(const struct nr_runfolder *, const char *name, struct nr_arena *);
/* The last value of a metric that was recorded; NAN if there is none. */
double nr_runfolder_last(const struct nr_runfolder *, const char *metric);
/* Of the probe with these features ("cls", "mean"): a number by its key, NAN if there is none. */
double nr_runfolder_probe(const struct nr_runfolder *, const char *features, const char *key);

#endif
