/* ZINC-12k (zinc12k.csv.gz in the data folder or its folder molecules; otherwise as many made-up molecules of that kind) from text to
 * the inputs of Graphormer: parsing, features, shortest paths, edges along them. The peer gets the finished graphs and does only the
 * second half, with scipy and numpy, on one thread. */
#include "molecules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <omp.h>

#include "base/clock.h"
#include "data/dataset.h"
#include "data/molecules.h"

enum { MADE_UP = 12000, PEER_GRAPHS = 2000 };

struct work { char csv[512], graphs[64], made[64]; const char *name; };

static int write_made_up(struct work *w, int64_t count, struct nr_error *err)
{
	static const char *const piece[] = { "CCN(Cc1ccc(OC)c(OC)c1)C(=O)c1ccsc1", "CC1=NN([C@H](C#N)c2ccoc2)[C@@H](c2ccccc2)C1",
		"C1CC[C@H](c2nccs2)CN1C(=O)Nc1ccc2c(c1)OCO2", "Cc1ccc(/C=N/N2CC[NH+](Cc3cccc4ccccc34)CC2)cc1",
		"COc1ccc(C[NH2+]CC(=O)Nc2cc(C)ccc2C)cc1", "CS(=O)(=O)c1ccc(C(=O)N2CCN(c3ccccn3)CC2)cc1" };
	strcpy(w->made, "/tmp/norma-molecules-XXXXXX");
	const int fd = mkstemp(w->made);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!f) return nr_fail(err, NR_EIO, "cannot write", w->made, "%s", strerror(errno));
	fprintf(f, "split,smiles,target\n");
	for (int64_t i = 0; i < count; i++) fprintf(f, "train,%.*s%s,%g\n", (int)(i % 4), "CCCC", piece[i % 6], (double)i / 1000);
	snprintf(w->csv, sizeof w->csv, "%s", w->made);
	w->name = "made up, as ZINC";
	return fclose(f) ? nr_fail(err, NR_EIO, "cannot write", w->made, "%s", strerror(errno)) : NR_OK;
}

static int find_data(struct work *w, bool tiny, struct nr_error *err)
{
	static const char *const places[] = { "molecules/zinc12k.csv.gz", "zinc12k.csv.gz" };
	struct nr_arena *arena = nr_arena_make();
	const char *root = arena ? nr_data_root(NULL, arena, err) : NULL;
	for (int i = 0; i < 2 && root && !tiny; i++) {
		snprintf(w->csv, sizeof w->csv, "%s/%s", root, places[i]);
		if (access(w->csv, R_OK)) continue;
		w->name = "ZINC-12k";
		break;
	}
	nr_arena_free(arena);
	return w->name ? NR_OK : write_made_up(w, tiny ? 12 : MADE_UP, err);
}

/* Inputs of every graph, on all threads. */
static void expand(const struct nr_molecules *m)
{
#pragma omp parallel
	{
		struct nr_arena *arena = nr_arena_make();
#pragma omp for schedule(dynamic, 64)
		for (int64_t i = 0; i < m->graphs; i++) {
			const struct nr_molgraph_offsets offsets = { 512, 512, 5 };
			const struct nr_mark mark = nr_arena_mark(arena);
			struct nr_molgraph_input in;
			struct nr_error err = { 0 };
			(void)nr_molecules_input(m, i, &offsets, &in, arena, &err);
			nr_arena_reset(arena, mark);
		}
		nr_arena_free(arena);
	}
}

/* Molecules per second of whole passes. */
static double rate(const struct work *w, double seconds, struct nr_error *err)
{
	const struct nr_molecules_config c = { .path = w->csv, .features = NR_FEATURES_ZINC, .bad = NR_BAD_FATAL };
	const double start = nr_clock();
	int64_t done = 0;
	do {
		struct nr_molecules *m;
		if (nr_molecules_open(&m, &c, err)) return err->code;
		expand(m);
		done += m->graphs;
		nr_molecules_close(m);
	} while (nr_clock() - start < seconds);
	return (double)done / (nr_clock() - start);
}

/* Graphs for the peer: `nodes edges`, the types, and the edges as from, to, order. */
static int write_graphs(struct work *w, struct nr_error *err)
{
	const struct nr_molecules_config c = { .path = w->csv, .features = NR_FEATURES_ZINC };
	struct nr_molecules *m;
	struct nr_arena *arena = nr_arena_make();
	if (!arena || nr_molecules_open(&m, &c, err)) {
		nr_arena_free(arena);
		return nr_fail(err, NR_EMEMORY, "cannot bench molecules", NULL, "out of memory");
	}
	strcpy(w->graphs, "/tmp/norma-graphs-XXXXXX");
	const int fd = mkstemp(w->graphs);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	for (int64_t i = 0; f && i < m->graphs && i < PEER_GRAPHS; i++) {
		struct nr_molgraph g;
		if (nr_molecules_graph(m, i, &g, arena, err)) break;
		fprintf(f, "%d %d", g.nodes, g.edges);
		for (int32_t k = 0; k < g.nodes; k++) fprintf(f, " %d", g.node[k]);
		for (int32_t k = 0; k < g.edges; k++) fprintf(f, " %d %d %d", g.from[k], g.to[k], g.edge[k]);
		fputc('\n', f);
	}
	const bool bad = !f || fclose(f);
	nr_molecules_close(m);
	nr_arena_free(arena);
	return bad ? nr_fail(err, NR_EIO, "cannot write", w->graphs, "%s", strerror(errno)) : (int)err->code;
}

static double peer_rate(const struct work *w, double seconds, struct nr_error *err)
{
	char script[512], python[512], s[32], graphs[64];
	if (bench_find_peer("bench/peers/molecules.py", script, python, sizeof python, err)) return err->code;
	snprintf(s, sizeof s, "%g", seconds);
	snprintf(graphs, sizeof graphs, "%s", w->graphs);
	char graphs_flag[] = "--graphs", seconds_flag[] = "--seconds";
	char *argv[] = { python, script, graphs_flag, graphs, seconds_flag, s, NULL };
	json_t *records = bench_records(argv, err);
	if (!records) return err->code;
	const double v = json_number_value(json_object_get(json_array_get(records, 0), "molecules_per_s"));
	json_decref(records);
	return v > 0 ? v : nr_fail(err, NR_EFORMAT, "no result from", script, "molecules_per_s is missing");
}

static int report(const struct bench_options *o, const struct work *w, int threads, double ours, double peer, double ratio,
	struct nr_error *err)
{
	if (o->json) {
		json_t *r = json_pack("{s:s,s:i,s:f}", "case", w->name, "threads", threads, "molecules_per_s", ours);
		if (r) bench_limits_add(r, o->tiny);
		if (r && peer > 0) {
			json_object_set_new(r, "peer_molecules_per_s", json_real(peer));
			json_object_set_new(r, "ratio", json_real(ratio));
		}
		return bench_json_line(stdout, r, err);
	}
	printf("%-20s %7d %12.0f", w->name, threads, ours);
	if (peer > 0) printf(" %12.0f %6.1fx", peer, ratio);
	printf("\n");
	return NR_OK;
}

static int one(const struct bench_options *o, const struct work *w, int threads, struct nr_error *err)
{
	double ours[BENCH_MAX_ROUNDS], theirs[BENCH_MAX_ROUNDS], ratio[BENCH_MAX_ROUNDS];
	const bool peer = o->peer != BENCH_NONE;
	const int64_t rounds = peer ? o->rounds : 1;
	omp_set_num_threads(threads);
	for (int64_t i = 0; i < rounds; i++) {
		ours[i] = rate(w, o->tiny ? 0 : o->seconds, err);
		if (ours[i] < 0) return (int)ours[i];
		theirs[i] = peer ? peer_rate(w, o->seconds, err) : 0;
		if (theirs[i] < 0) return (int)theirs[i];
		ratio[i] = peer ? ours[i] / theirs[i] : 0;
	}
	return report(o, w, threads, bench_median(ours, rounds), bench_median(theirs, rounds), bench_median(ratio, rounds), err);
}

int bench_molecules(const struct bench_options *o, int threads, struct nr_error *err)
{
	struct work w = { 0 };
	int code = find_data(&w, o->tiny, err);
	if (!code && o->peer != BENCH_NONE) code = write_graphs(&w, err);
	if (!code && !o->json)
		printf("%-20s %7s %12s%s\n", "case", "threads", "molecules/s", o->peer != BENCH_NONE ? "        scipy   ratio" : "");
	for (int t = 1; !code && t <= threads; t++) code = one(o, &w, t, err);
	if (*w.made) unlink(w.made);
	if (*w.graphs) unlink(w.graphs);
	return code;
}
