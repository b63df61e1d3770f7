/* Fuzzer: any bytes as the files of a raw folder of the Open Graph Benchmark, one after the other with '|' between them; a first byte
 * that is odd packs them. What opens is sound and can be read back. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "graphs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RAW = 6, FILES = 9 };
static const char *const names[FILES] = { "raw/num-node-list.csv", "raw/num-edge-list.csv", "raw/edge.csv", "raw/node-feat.csv",
	"raw/edge-feat.csv", "raw/graph-label.csv", "split/scaffold/train.csv", "split/scaffold/valid.csv", "split/scaffold/test.csv" };
static const char *const folders[] = { "", "/raw", "/split", "/split/scaffold" };
static char root[64];

static const char *path_of(const char *name, const char *end)
{
	static char path[160];
	snprintf(path, sizeof path, "%s%s%s%s", root, *name == '/' || !*name ? "" : "/", name, end);
	return path;
}

static void leave(void)
{
	for (int i = 0; i < FILES; i++) {
		unlink(path_of(names[i], ""));
		unlink(path_of(names[i], ".gz"));
	}
	for (int i = 3; i >= 0; i--) rmdir(path_of(folders[i], ""));
}

static void put(int file, const uint8_t *data, size_t size, int pack)
{
	unlink(path_of(names[file], pack ? "" : ".gz"));
	if (pack) {
		gzFile f = gzopen(path_of(names[file], ".gz"), "wb1");
		assert(f && (!size || gzwrite(f, data, (unsigned)size) == (int)size));
		gzclose(f);
		return;
	}
	FILE *f = fopen(path_of(names[file], ""), "wb");
	assert(f && fwrite(data, 1, size, f) == size);
	fclose(f);
}

static void look(const struct nr_molecules *m)
{
	assert(m->graphs + m->bad == m->rows && m->graphs == m->count[0] + m->count[1] + m->count[2]);
	assert(m->tasks >= 1 && m->node_features >= 1 && m->edge_features >= 1 && m->largest >= 1 && m->largest <= NR_MOLGRAPH_NODES);
	for (int64_t i = 0; i < m->graphs; i++) assert(nr_molecules_sound(m, i));
	read_back(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_molecules *m;
	struct nr_error err = { 0 };
	if (size < 2) return 0;
	if (!*root) {
		/* in memory if that is there: nine files for each input */
		snprintf(root, sizeof root, "%s/norma-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
		assert(mkdtemp(root));
		for (int i = 1; i < 4; i++) assert(!mkdir(path_of(folders[i], ""), 0700));
		atexit(leave);
	}
	const int pack = *data++ & 1;
	size--;
	for (int i = 0; i < FILES; i++) {               /* those that are not there are empty */
		const uint8_t *cut = i + 1 < FILES && size ? memchr(data, '|', size) : NULL;
		const size_t part = cut ? (size_t)(cut - data) : size;
		put(i, data, part, pack);
		data += part + (cut != NULL);
		size -= part + (cut != NULL);
	}
	const int e = nr_molecules_open(&m, &(struct nr_molecules_config){ .path = root, .bad = NR_BAD_SKIP }, &err);
	assert(e == (int)err.code && (!e || err.detail[0]));
	if (!e) look(m);
	nr_molecules_close(m);
	return 0;
}
