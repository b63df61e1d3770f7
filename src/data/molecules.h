/* Sets of molecules as graphs with targets: ZINC, MolHIV, a CSV of the user's own, or a raw folder of the Open Graph Benchmark.
 *
 * CSV: a header, in which capitals do not matter; the column `smiles`; `split` (train, val or valid, test; absent: all train); targets are
 * the columns whose names begin with "target", or, if there is none, all others but id, name, file and row; a column of words is an error.
 * An empty cell, NA or nan is a missing label (NaN). `.gz` is read as it is. Shortest paths are computed once and
 * kept compactly, in memory and in the cache file. */
#ifndef NR_MOLECULES_H
#define NR_MOLECULES_H

#include "chem/molgraph.h"

enum nr_features { NR_FEATURES_OGB, NR_FEATURES_ZINC };
enum nr_bad_rows { NR_BAD_COUNT, NR_BAD_SKIP, NR_BAD_FATAL };   /* told one by one, left out in silence, or an error */
enum { NR_MOL_TRAIN, NR_MOL_VALID, NR_MOL_TEST, NR_MOL_SPLITS };

struct nr_molecules_config {
	const char *path;               /* .csv, .csv.gz, or a folder with raw/edge.csv.gz */
	const char *smiles, *targets;   /* columns of a CSV: "SMILES", "logP+logS"; NULL: by the rules above */
	enum nr_features features;      /* of SMILES; raw folders bring their own */
	enum nr_bad_rows bad;
	const char *cache;              /* file to keep the prepared set in; NULL: none. Made anew if the source has changed */
	void (*told)(void *context, int64_t row, const struct nr_error *);      /* of bad rows with NR_BAD_COUNT, in order; may be NULL */
	void *context;
};

struct nr_molecules {
	int64_t graphs, rows, bad;      /* rows: of the source; bad: left out */
	int64_t count[NR_MOL_SPLITS];
	int32_t node_features, edge_features, tasks, largest;
	uint8_t *split;                 /* (graphs) */
	float *target;                  /* (graphs, tasks); NaN: missing */
	int64_t *at;                    /* (graphs + 1) places in packed */
	uint8_t *packed;                /* one record for each graph (molecules.c) */
	int64_t *text_at;               /* (graphs + 1) places in text */
	char *text;                     /* the SMILES, one after the other; all are empty if the source has none */
	char **task_name;               /* (tasks) and NULL: the columns' names; NULL: the source has none */
	bool cached;                    /* came from the cache */
};

int nr_molecules_open(struct nr_molecules **, const struct nr_molecules_config *, struct nr_error *);
/* A set of these lines, which begin with SMILES; without targets. Of the configuration path and cache do not count, and it is no error
 * if no line is a molecule. */
int nr_molecules_make(struct nr_molecules **, const struct nr_molecules_config *, const struct nr_smiles_span *line, int64_t count,
	struct nr_error *);
void nr_molecules_close(struct nr_molecules *);         /* NULL is fine */
int32_t nr_molecules_nodes(const struct nr_molecules *, int64_t i);
const char *nr_molecules_smiles(const struct nr_molecules *, int64_t i, size_t *size);  /* not terminated; size 0: there is none */
/* Graph i, and what Graphormer reads of it; all memory is the arena's. */
int nr_molecules_graph(const struct nr_molecules *, int64_t i, struct nr_molgraph *, struct nr_arena *, struct nr_error *);
int nr_molecules_input(const struct nr_molecules *, int64_t i, const struct nr_molgraph_offsets *, struct nr_molgraph_input *,
	struct nr_arena *, struct nr_error *);

/* ---- between the files of the reader ------------------------------------------------------------------------------------------ */

/* One row of a source: the text or the graph, its split and targets, and what became of it. */
struct nr_molecules_row {
	const char *smiles;
	size_t size;
	struct nr_molgraph graph;          /* if smiles is NULL */
	uint8_t split;
	float *target;
	uint8_t *packed;                /* malloc; NULL: bad */
	int64_t bytes;
	struct nr_error *bad;           /* malloc; why it is */
};

struct nr_molecules_source {
	struct nr_arena *arena;
	struct nr_molecules_row *row;
	int64_t rows;
	int32_t tasks, node_features, edge_features;
	struct nr_smiles_span *task_name;       /* (tasks); NULL: it has none */
	uint32_t sum;                   /* CRC-32C of all that was read */
};

int nr_molecules_read_csv(struct nr_molecules_source *, const struct nr_molecules_config *, struct nr_error *);
int nr_molecules_read_raw(struct nr_molecules_source *, const char *folder, struct nr_error *);
/* Marks the row bad; the first reason stays. */
int nr_molecules_blame(struct nr_molecules_row *, const struct nr_error *why);

/* NR_ENAME: there is none for this source; other errors: it is broken. */
int nr_molecules_load(struct nr_molecules *, const char *path, uint32_t source, enum nr_features, struct nr_error *);
int nr_molecules_save(const struct nr_molecules *, const char *path, uint32_t source, enum nr_features, struct nr_error *);
/* Does the record at packed[at[i]] lie within bounds and name only its own nodes? */
bool nr_molecules_sound(const struct nr_molecules *, int64_t i);

#endif
