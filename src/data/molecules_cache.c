/* The prepared set on disk: a header, the arrays, and the CRC-32C of all that. Another source, version or choice of features means that
 * there is no cache; a broken sum is an error, for the file is then not what was written. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/save.h"
#include "data/molecules.h"

struct header {
	char magic[8];
	uint32_t version, source, features, tasks;
	int32_t node_features, edge_features, largest, spare;
	int64_t graphs, rows, bad, bytes, letters;
};

static const struct header blank = { .magic = "NRGRAPHS", .version = 3 };

enum { PIECES = 6 };
struct piece { const void *data; size_t size; };

static void pieces(const struct nr_molecules *m, struct piece *p)
{
	const size_t n = (size_t)m->graphs;
	p[0] = (struct piece){ m->at, (n + 1) * sizeof *m->at };
	p[1] = (struct piece){ m->target, n * (size_t)m->tasks * sizeof *m->target };
	p[2] = (struct piece){ m->split, n };
	p[3] = (struct piece){ m->packed, (size_t)m->at[n] };
	p[4] = (struct piece){ m->text_at, (n + 1) * sizeof *m->text_at };
	p[5] = (struct piece){ m->text, (size_t)m->text_at[n] };
}

int nr_molecules_save(const struct nr_molecules *m, const char *path, uint32_t source, enum nr_features features, struct nr_error *err)
{
	struct header h = blank;
	struct piece p[PIECES];
	struct nr_save f;
	h.source = source;
	h.features = features;
	h.tasks = (uint32_t)m->tasks;
	h.node_features = m->node_features;
	h.edge_features = m->edge_features;
	h.largest = m->largest;
	h.graphs = m->graphs;
	h.rows = m->rows;
	h.bad = m->bad;
	h.bytes = m->at[m->graphs];
	h.letters = m->text_at[m->graphs];
	pieces(m, p);
	uint32_t sum = nr_crc32c(0, &h, sizeof h);
	int e = nr_save_open(&f, path, err);
	if (e) return e;
	e = nr_save_write(&f, &h, sizeof h, err);
	for (int i = 0; !e && i < PIECES; i++) {
		sum = nr_crc32c(sum, p[i].data, p[i].size);
		e = nr_save_write(&f, p[i].data, p[i].size, err);
	}
	if (!e) e = nr_save_write(&f, &sum, sizeof sum, err);
	return e ? e : nr_save_close(&f, err);
}

static int broken(const char *path, struct nr_error *err, const char *why)
{
	nr_fail(err, NR_EFORMAT, "cannot read cache", path, "%s", why);
	return nr_hint(err, "delete it: norma will rebuild it");
}

static bool plausible(const struct header *h, size_t size)
{
	const int64_t most = (int64_t)size;
	if (h->graphs < 1 || h->graphs > most || h->tasks > 100000 || h->bytes < 0 || h->bytes > most || h->letters < 0 ||
		h->letters > most || h->node_features < 1 ||
		h->node_features > 4096 || h->edge_features < 1 || h->edge_features > 4096) return false;
	const int64_t arrays = (h->graphs + 1) * 16 + h->graphs * (int64_t)h->tasks * 4 + h->graphs;
	return arrays + h->bytes + h->letters + (int64_t)sizeof *h + 4 == most;
}

static int copy(struct nr_molecules *m, const uint8_t *p, const struct header *h, struct nr_error *err)
{
	const size_t n = (size_t)h->graphs, targets = n * h->tasks * sizeof *m->target;
	m->at = malloc((n + 1) * sizeof *m->at);
	m->target = malloc(targets + 1);
	m->split = malloc(n);
	m->packed = malloc((size_t)h->bytes + 1);
	m->text_at = malloc((n + 1) * sizeof *m->text_at);
	m->text = malloc((size_t)h->letters + 1);
	if (!m->at || !m->target || !m->split || !m->packed || !m->text_at || !m->text)
		return nr_fail(err, NR_EMEMORY, "cannot read molecules", NULL, "out of memory");
	memcpy(m->at, p, (n + 1) * sizeof *m->at);
	p += (n + 1) * sizeof *m->at;
	memcpy(m->target, p, targets);
	memcpy(m->split, p + targets, n);
	p += targets + n;
	memcpy(m->packed, p, (size_t)h->bytes);
	memcpy(m->text_at, p + h->bytes, (n + 1) * sizeof *m->text_at);
	memcpy(m->text, p + h->bytes + (n + 1) * sizeof *m->text_at, (size_t)h->letters);
	return NR_OK;
}

static bool sound(struct nr_molecules *m, const struct header *h)
{
	if (m->at[0] != 0 || m->at[m->graphs] != h->bytes || m->text_at[0] != 0 || m->text_at[m->graphs] != h->letters) return false;
	for (int64_t i = 0; i < m->graphs; i++) {
		if (m->at[i + 1] < m->at[i] || m->at[i + 1] > h->bytes || m->split[i] >= NR_MOL_SPLITS) return false;
		if (m->text_at[i + 1] < m->text_at[i] || m->text_at[i + 1] > h->letters) return false;
		if (!nr_molecules_sound(m, i)) return false;
		m->count[m->split[i]]++;
	}
	return true;
}

int nr_molecules_load(struct nr_molecules *m, const char *path, uint32_t source, enum nr_features features, struct nr_error *err)
{
	struct nr_bytes b = { 0 };
	struct header h;
	uint32_t sum;
	int e = NR_OK;
	if (access(path, F_OK)) return nr_fail(err, NR_ENAME, "no cache", path, "there is no such file");
	if (nr_bytes_map(&b, path, err)) return err->code;
	if (b.size < sizeof h + sizeof sum) {
		nr_bytes_release(&b);
		return broken(path, err, "it is incomplete");
	}
	memcpy(&h, b.data, sizeof h);
	memcpy(&sum, b.data + b.size - sizeof sum, sizeof sum);
	if (memcmp(h.magic, blank.magic, sizeof h.magic)) e = broken(path, err, "it is not a cache of graphs");
	else if (h.version != blank.version || h.source != source || h.features != (uint32_t)features)
		e = nr_fail(err, NR_ENAME, "no cache", path, "it belongs to another source or version");
	else if (!plausible(&h, b.size) || nr_crc32c(0, b.data, b.size - sizeof sum) != sum) e = broken(path, err, "its checksum is wrong");
	if (!e) {
		*m = (struct nr_molecules){ .graphs = h.graphs, .rows = h.rows, .bad = h.bad, .tasks = (int32_t)h.tasks,
			.largest = h.largest, .node_features = h.node_features, .edge_features = h.edge_features, .cached = true };
		e = copy(m, b.data + sizeof h, &h, err);
	}
	nr_bytes_release(&b);
	if (!e && !sound(m, &h)) e = broken(path, err, "a record is invalid");
	return e;
}
