/* Gradient norms by layer: see layer_gradients.h. */
#include "train/layer_gradients.h"

#include <ctype.h>
#include <string.h>

#include "train/stepfile.h"

struct layer { const char *name; size_t length; struct nr_segment *segment; int64_t count; };

struct nr_layer_gradients {
	struct nr_arena *arena;
	struct layer *layer;
	int64_t layers;
	void *scratch;
	struct nr_stepfile file;
};

/* How much of a parameter's name is that of its layer: up to the number of its block, or to the first point. */
static size_t layer_length(const char *name)
{
	const char *blocks = strstr(name, "blocks.");
	if (!blocks || (blocks > name && blocks[-1] != '.')) return strcspn(name, ".");
	const char *end = blocks + strlen("blocks.");
	while (isdigit((unsigned char)*end)) end++;
	return (size_t)(end - name);
}

static struct layer *layer_of(struct nr_layer_gradients *g, const char *name)
{
	const size_t n = layer_length(name);
	for (int64_t i = 0; i < g->layers; i++)
		if (g->layer[i].length == n && !strncmp(g->layer[i].name, name, n)) return &g->layer[i];
	g->layer[g->layers] = (struct layer){ .name = name, .length = n };
	return &g->layer[g->layers++];
}

int nr_layer_gradients_make(struct nr_layer_gradients **out, const struct nr_store *store, const struct nr_params *params,
	struct nr_arena *arena, struct nr_error *err)
{
	const int64_t n = nr_store_count(store);
	const size_t room = (size_t)(n + 1);
	struct nr_layer_gradients *g = *out = nr_arena_alloc(arena, sizeof *g);
	if (g) *g = (struct nr_layer_gradients){ .arena = arena, .layer = nr_arena_alloc(arena, room * sizeof *g->layer) };
	if (g) g->scratch = nr_arena_alloc(arena, nr_optim_scratch(NULL, params->segment, params->count) + 1);
	if (!g || !g->layer || !g->scratch) return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	for (int64_t i = 0, k = 0; i < n; i++) {
		const struct nr_entry *e = nr_store_at(store, i);
		if (e->buffer) continue;
		struct layer *l = layer_of(g, e->name);
		if (!l->segment) l->segment = nr_arena_alloc(arena, room * sizeof *l->segment);
		if (!l->segment) return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
		l->segment[l->count++] = params->segment[k++];
	}
	return NR_OK;
}

int nr_layer_gradients_open(struct nr_layer_gradients *g, const char *path, bool resume, int64_t step, struct nr_error *err)
{
	struct nr_str header = { 0 };
	nr_str_add(&header, "step");
	for (int64_t i = 0; i < g->layers; i++) nr_str_printf(&header, ",%.*s", (int)g->layer[i].length, g->layer[i].name);
	nr_str_add(&header, "\n");
	const int code = header.failed ? nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory")
				       : nr_stepfile_open(&g->file, path, nr_str_text(&header), resume, step, err);
	nr_str_release(&header);
	return code;
}

int nr_layer_gradients_write(struct nr_layer_gradients *g, int64_t step, struct nr_error *err)
{
	nr_stepfile_begin(&g->file);
	nr_str_printf(&g->file.text, "%lld", (long long)step);
	for (int64_t i = 0; i < g->layers; i++)
		nr_str_printf(&g->file.text, ",%.9g", nr_optim_grad_norm(g->layer[i].segment, g->layer[i].count, g->scratch));
	nr_str_add(&g->file.text, "\n");
	return nr_stepfile_write(&g->file, err);
}

int nr_layer_gradients_sync(struct nr_layer_gradients *g, struct nr_error *err) { return nr_stepfile_sync(&g->file, err); }

void nr_layer_gradients_close(struct nr_layer_gradients *g)
{
	if (g) nr_stepfile_close(&g->file);
}
