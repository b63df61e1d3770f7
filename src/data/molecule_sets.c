/* zinc12k, zinc, molhiv, molecules: sets of molecules as graphs. The named ones lie in ROOT/molecules; `molecules` is a CSV of one's
 * own or a raw folder of the Open Graph Benchmark. What was prepared is kept in a file below the folder of the data, if that can be
 * written. */
#include "data/molecule_sets.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/save.h"
#include "data/dataset.h"
#include "data/molecules_split.h"

static const char *const feature_names[] = { "ogb", "zinc", NULL };
static const char *const bad_names[] = { "count", "skip", "fatal", NULL };

enum { AUTO, FILE_S, RANDOM, SCAFFOLD };
static const char *const split_names[] = { "auto", "file", "random", "scaffold", NULL };

struct conf { char *cache; int32_t bad; char *path; int32_t features, split; char *smiles, *targets; double val, test; };
#define CACHE_ROW \
	NR_OPT_STRING(struct conf, cache, "auto", "file for prepared graphs; auto: in the data's folder if that is writable; none")
#define BAD_ROW \
	NR_OPT_ENUM(struct conf, bad, "count", bad_names, "rows that are not molecules: reported one by one, skipped, or an error")
static const struct nr_option named_options[] = { CACHE_ROW, BAD_ROW, NR_OPT_END };
static const struct nr_option own_options[] = {
	NR_OPT_STRING(struct conf, path, NULL, "file with the columns smiles and targets (.csv, .csv.gz), or a raw folder of OGB"),
	NR_OPT_STRING(struct conf, smiles, "smiles", "column of the SMILES; capitals do not matter"),
	NR_OPT_STRING(struct conf, targets, "",
		"columns to predict, as A+B; default: those whose names begin with target, otherwise all but id, name and the like"),
	NR_OPT_ENUM(struct conf, split, "auto", split_names,
		"by the file's column, at random, or by scaffold; auto: the file's if it has one, otherwise random"),
	NR_OPT_FLOAT(struct conf, val, 0.1, 0, 0.9, "random, scaffold: share of the molecules for validation"),
	NR_OPT_FLOAT(struct conf, test, 0, 0, 0.9, "random, scaffold: share for a test"),
	NR_OPT_ENUM(struct conf, features, "ogb", feature_names, "features of atoms and bonds: OGB's or ZINC's"),
	BAD_ROW, CACHE_ROW, NR_OPT_END
};

struct graphs {
	struct nr_molecules *set;
	int64_t *graph[NR_MOL_SPLITS];          /* (count of the split) */
	int64_t told;
};

enum { MOST_TOLD = 20 };

static void tell(void *context, int64_t row, const struct nr_error *why)
{
	struct graphs *g = context;
	if (g->told++ < MOST_TOLD)
		nr_log_line(NR_LOG_WARNING,
			"skipping row %lld: %s%s%s%s", (long long)row, why->detail, *why->subject ? " ('" : "",
			why->subject, *why->subject ? "')" : "");
}

/* A file for prepared graphs in DIR/cache, named after the set and its source; NULL: the folder cannot be written. */
static const char *usual_cache(const struct nr_source *s, const char *dir, const char *path, enum nr_features features)
{
	struct nr_error ignored = { 0 };
	const char *folder = nr_arena_printf(s->arena, "%s/cache", dir);
	if (!folder || access(dir, W_OK) || nr_folder_make(folder, &ignored) || access(folder, W_OK)) return NULL;
	return nr_arena_printf(s->arena, "%s/%s-%s-%08x.graphs", folder, s->of->name, feature_names[features],
		nr_crc32c(0, path, strlen(path)));
}

/* With the usual cache nothing depends on it: one that cannot be used is told, and the graphs are made without. */
static int open_set(struct graphs *g, struct nr_molecules_config *c, bool usual, struct nr_error *err)
{
	if (!nr_molecules_open(&g->set, c, err)) return NR_OK;
	if (!usual || !c->cache) return err->code;
	const struct nr_error first = *err;
	const char *cache = c->cache;
	*err = (struct nr_error){ 0 };
	c->cache = NULL;
	g->told = 0;
	if (nr_molecules_open(&g->set, c, err)) return err->code;
	nr_log_line(NR_LOG_WARNING, "the prepared graphs in '%s' are not used: %s", cache, first.detail);
	return NR_OK;
}

static int sort_by_split(struct nr_source *s, struct graphs *g, struct nr_error *err)
{
	static const enum nr_split to[NR_MOL_SPLITS] = { NR_TRAIN, NR_VAL, NR_TEST };
	for (int k = 0; k < NR_MOL_SPLITS; k++) {
		g->graph[k] = nr_arena_alloc(s->arena, (size_t)g->set->count[k] * sizeof *g->graph[k] + 1);
		if (!g->graph[k]) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	}
	for (int64_t i = 0; i < g->set->graphs; i++) {
		const int k = g->set->split[i];
		g->graph[k][s->count[to[k]]++] = i;
	}
	return NR_OK;
}

/* Sets of one's own that are not divided, or are to be divided anew. */
static int divide(struct nr_source *s, struct graphs *g, const struct conf *conf, struct nr_error *err)
{
	struct nr_molecules *m = g->set;
	const int64_t held = m->count[NR_MOL_VALID] + m->count[NR_MOL_TEST];
	if (s->of->folder || conf->split == FILE_S || (conf->split == AUTO && (held || m->graphs < 2)) ||
		conf->val + conf->test <= 0) return NR_OK;
	if (conf->val + conf->test > 0.9)
		return nr_fail(err, NR_EVALUE, "cannot divide", conf->path, "val and test are more than 0.9 together");
	if (conf->split == SCAFFOLD ? nr_molecules_split_scaffold(m, conf->val, conf->test, err) : nr_molecules_split_random(m, conf->val,
		conf->test, err)) return err->code;
	char test[40] = "";
	if (conf->test > 0) snprintf(test, sizeof test, ", test %lld", (long long)m->count[NR_MOL_TEST]);
	s->said = nr_arena_printf(s->arena, "val is %lld of %lld molecules%s, %s", (long long)m->count[NR_MOL_VALID],
		(long long)m->graphs, test, conf->split == SCAFFOLD ? "by scaffold: none is in two splits" : "chosen by their SMILES");
	return NR_OK;
}

static int open_path(struct nr_source *s, const char *dir, const char *path, enum nr_features features, const struct conf *conf,
	struct nr_error *err)
{
	struct graphs *g = s->own = nr_arena_alloc(s->arena, sizeof *g);
	if (!g || !path) return nr_fail(err, NR_EMEMORY, "cannot open", s->of->name, "out of memory");
	const bool usual = !strcmp(conf->cache, "auto"), none = !*conf->cache || !strcmp(conf->cache, "none");
	struct nr_molecules_config c = { .path = path, .features = features, .bad = (enum nr_bad_rows)conf->bad, .told = tell, .context = g,
		.smiles = conf->smiles, .targets = conf->targets,
		.cache = usual ? usual_cache(s, dir, path, features) : none ? NULL : conf->cache };
	if (open_set(g, &c, usual, err)) return err->code;
	if (c.bad == NR_BAD_COUNT && g->set->bad && (g->told > MOST_TOLD || !g->told))
		nr_log_line(NR_LOG_WARNING, "'%s': %lld of %lld rows are not molecules", path, (long long)g->set->bad,
			(long long)g->set->rows);
	return divide(s, g, conf, err) ? (int)err->code : sort_by_split(s, g, err);
}

/* The set's first official file in dir, packed or not. */
static int open_named(struct nr_source *s, const char *dir, const void *conf, enum nr_features features, struct nr_error *err)
{
	const char *path = nr_arena_printf(s->arena, "%s/%s", dir, s->of->files[0].path);
	if (path && access(path, F_OK)) path = nr_arena_printf(s->arena, "%s.gz", path);
	return open_path(s, dir, path, features, conf, err);
}

static int open_zinc(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	return open_named(s, dir, conf, NR_FEATURES_ZINC, err);
}

static int open_ogb(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	return open_named(s, dir, conf, NR_FEATURES_OGB, err);
}

static int open_own(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	const struct conf *c = conf;
	return open_path(s, dir, c->path, (enum nr_features)c->features, c, err);
}

static void close_set(struct nr_source *s)
{
	if (s->own) nr_molecules_close(((struct graphs *)s->own)->set);
}

const struct nr_molecules *nr_source_molecules(const struct nr_source *s) { return ((const struct graphs *)s->own)->set; }

int64_t nr_source_graph(const struct nr_source *s, enum nr_split split, int64_t i)
{
	return ((const struct graphs *)s->own)->graph[split][i];         /* splits have the same order in both lists */
}

static const struct nr_data_file zinc12k_files[] = { { .path = "zinc12k.csv" }, { .path = NULL } };
static const struct nr_data_file zinc_files[] = { { .path = "zinc_valid_test_pool.csv" }, { .path = NULL } };
static const struct nr_data_file hiv_files[] = { { .path = "hiv.csv" }, { .path = NULL } };

#define ZINC "arXiv:2003.00982"
const struct nr_dataset nr_dataset_zinc12k = {
	.name = "zinc12k", .title = "ZINC, the subset of 12,000 molecules", .cite = ZINC, .licence = "free to use, "
		"not to be redistributed",
	.kind = NR_MOLECULES, .folder = "molecules", .files = zinc12k_files,
	.facts = "10000 / 1000 / 1000 molecules, constrained solubility",
	.conf_size = sizeof(struct conf), .options = named_options, .open = open_zinc, .close = close_set,
};
const struct nr_dataset nr_dataset_zinc = {
	.name = "zinc", .title = "ZINC, its lists for validation and test", .cite = ZINC, .licence = "free to use, "
		"not to be redistributed",
	.kind = NR_MOLECULES, .folder = "molecules", .files = zinc_files, .facts = "0 / 24445 / 5000 molecules, constrained solubility",
	.conf_size = sizeof(struct conf), .options = named_options, .open = open_zinc, .close = close_set,
};
const struct nr_dataset nr_dataset_molhiv = {
	.name = "molhiv", .title = "ogbg-molhiv: does a molecule inhibit HIV?", .cite = "arXiv:2005.00687", .licence = "MIT",
	.kind = NR_MOLECULES, .folder = "molecules", .files = hiv_files,
	.facts = "32901 / 4113 / 4113 molecules by scaffold, one yes or no",
	.conf_size = sizeof(struct conf), .options = named_options, .open = open_ogb, .close = close_set,
};
const struct nr_dataset nr_dataset_molecules = {
	.name = "molecules", .title = "your own molecules: SMILES and targets", .cite = "", .licence = "your own", .kind = NR_MOLECULES,
	.facts = "a CSV: a column `smiles`, the others are targets", .conf_size = sizeof(struct conf),
		.options = own_options, .open = open_own, .close = close_set,
};
