/* Models recorded once, so that their store knows its entries, with memory or without, and files to write them to. */
#ifndef UNIT_BUILT_H
#define UNIT_BUILT_H

#include <unistd.h>

#include "base/mem.h"
#include "norma/infer.h"
#include "norma/model.h"
#include "unit/rig.h"

struct built { struct nr_arena *arena; struct nr_store *store; struct nr_model_spec model; };

static inline struct built build(const char *text, const char *norms, uint64_t seed)
{
	struct built b = { .arena = nr_arena_make() };
	struct nr_error err = { 0 };
	char line[1200];
	assert_non_null(b.arena);
	if (nr_model_parse(&b.model, text, b.arena, &err) || nr_store_make(&b.store, seed, &err))
		fail_msg("%s", nr_error_text(&err, line, sizeof line));
	struct nr_net *n = nr_net_make(b.store);
	assert_int_equal(nr_norms_use(n, norms, &b.model.norms, &err), 0);
	const struct nr_inputs in = nr_model_inputs(n, &b.model, 1);
	nr_model_logits(n, &b.model, &in);
	if (nr_net_error(n)->code) fail_msg("%s", nr_error_text(nr_net_error(n), line, sizeof line));
	nr_net_free(n);
	return b;
}

/* With memory and first values. */
static inline struct built build_whole(const char *text, const char *norms, uint64_t seed)
{
	struct built b = build(text, norms, seed);
	struct nr_error err = { 0 };
	assert_int_equal(nr_store_seal(b.store, &err), 0);
	return b;
}

static inline void discard(struct built *b)
{
	nr_store_free(b->store);
	nr_arena_free(b->arena);
}

static inline const char *temp_file(void)
{
	static char path[64];
	snprintf(path, sizeof path, "/tmp/norma-built-%d.safetensors", (int)getpid());
	return path;
}

static inline void write_built(const struct built *b, const char *path, const char *naming, const struct nr_st_meta *meta,
	int64_t n_meta)
{
	struct nr_error err = { 0 };
	char line[1200];
	if (nr_model_export(b->store, b->model.of, path, naming, meta, n_meta, &err))
		fail_msg("%s", nr_error_text(&err, line, sizeof line));
}

static inline struct nr_weights *open_built(const char *path, const char *text, const char *norms)
{
	struct nr_error err = { 0 };
	struct nr_weights *w;
	char line[1200];
	if (nr_weights_open(&w, path, &(struct nr_weights_how){ .model = text, .norms = norms }, &err))
		fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return w;
}

#endif
