/* Checkpoints. Tensors: NAME, optim.m.NAME, optim.v.NAME, ema.NAME, teacher.NAME; all else is metadata. */
#include "train/checkpoint.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/optdoc.h"
#include "base/safetensors.h"
#include "base/str.h"
#include "plugin/plugin.h"

enum { MAX_META = 23 + NR_TASK_META };
enum { PARTS = 4 };
static const char *const prefix[PARTS] = { "", "optim.m.", "optim.v.", "ema." };
static const char of_teacher[] = "teacher.";

/* Where the values of part p (0 weights, 1 m, 2 v, 3 EMA) of an entry lie; NULL: it has none. */
static real *values_of(const struct nr_checkpoint *c, const struct nr_entry *e, int part)
{
	if (part == 0) return nr_value(e);
	if (part == 3) return c->ema ? c->ema + (nr_value(e) - nr_store_values(c->store, &(int64_t){ 0 })) : NULL;
	return !e->buffer && c->slots >= part ? nr_moment(e, part - 1, NULL) : NULL;
}

static char *names_text(char *const *name, int64_t count)
{
	json_t *list = json_array();
	for (int64_t i = 0; i < count; i++) {
		json_t *text = json_string(name[i]);            /* NULL: not UTF-8 */
		json_array_append_new(list, text ? text : json_string("?"));
	}
	char *text = nr_json_dump(list, JSON_COMPACT);
	json_decref(list);
	return text;
}

static int64_t names_in(char *const *name)
{
	int64_t n = 0;
	while (name[n]) n++;
	return n;
}

struct meta { struct nr_st_meta item[MAX_META]; int64_t count; char *own[MAX_META]; int n_own; };

static void add(struct meta *m, const char *key, const char *value)
{
	if (value && m->count < MAX_META) m->item[m->count++] = (struct nr_st_meta){ key, value };
}
static void add_own(struct meta *m, const char *key, char *value)
{
	if (m->n_own < MAX_META) m->own[m->n_own++] = value;
	add(m, key, value);
}

/* Of red, green and blue: those that the user gave, else those of the data. */
static const char *three(const double *given, const float *own, struct nr_arena *arena)
{
	const double v[3] = { given ? given[0] : (double)own[0], given ? given[1] : (double)own[1], given ? given[2] : (double)own[2] };
	return nr_arena_printf(arena, "%.9g %.9g %.9g", v[0], v[1], v[2]);
}

/* A model alone carries nothing of the clock: equal runs write equal files. */
static void describe(const struct nr_checkpoint *c, bool full, struct meta *m, struct nr_arena *arena)
{
	add(m, "format", "pt");
	add(m, "norma", "1");
	add(m, "norma.model", c->model);
	add(m, "norma.norms", c->norms);
	add(m, "norma.pooler", c->pooler);
	add(m, "norma.objective", c->objective);
	add(m, "norma.step", nr_arena_printf(arena, "%lld", (long long)c->state.step));
	if (full) {
		add_own(m, "norma.state", nr_state_text(&c->state));
		add(m, "norma.data_sha256", *c->origin.data ? c->origin.data : NULL);
		add(m, "norma.eval_sha256", *c->origin.eval_data ? c->origin.eval_data : NULL);
		add(m, "norma.isa", *c->origin.isa ? c->origin.isa : NULL);
	}
	int plugins;
	const struct nr_plugin_file *files = nr_plugins(&plugins);
	struct nr_str names = { 0 };
	for (int i = 0; i < plugins; i++) {
		const char *name = strrchr(files[i].path, '/');
		nr_str_printf(&names, "%s%s sha256=%s", i ? "\n" : "", name ? name + 1 : files[i].path, files[i].sha256);
	}
	if (plugins) add_own(m, "norma.plugins", nr_str_take(&names));
	if (c->config) {
		struct nr_str yaml = { 0 };
		nr_option_yaml(nr_train_options(c->config->task), c->config, 0, &yaml);
		add_own(m, "norma.config", nr_str_take(&yaml));
		add(m, "norma.task", c->config->task);
		for (int i = 0; i < c->metas; i++) add(m, c->meta[i].key, c->meta[i].value);
		add(m, "norma.data", c->config->data);
		add(m, "norma.normalize", c->config->augment.normalize ? "1" : "0");
	}
	if (!c->source) return;
	if (c->source->class_name) add_own(m, "norma.classes", names_text(c->source->class_name, c->source->classes));
	else if (c->class_name) add_own(m, "norma.classes", names_text(c->class_name, names_in(c->class_name)));
	const struct nr_augment *a = c->config && c->config->augment.std[0] > 0 ? &c->config->augment : NULL;
	add(m, "norma.mean", three(a ? a->mean : NULL, c->source->mean, arena));
	add(m, "norma.std", three(a ? a->std : NULL, c->source->std, arena));
}

static void put(struct nr_st_tensor *t, const char *before, const struct nr_entry *e, const real *v, struct nr_arena *arena)
{
	*t = (struct nr_st_tensor){ .name = nr_arena_printf(arena, "%s%s", before, e->name),
		.dtype = sizeof(real) == 4 ? NR_ST_F32 : NR_ST_F64, .nd = e->nd, .data = v, .bytes = (size_t)e->count * sizeof(real) };
	memcpy(t->shape, e->d, (size_t)e->nd * sizeof *e->d);
}

/* All of a training, or the model alone: the teacher if there is one, else averages or the weights. */
static int64_t put_all(const struct nr_checkpoint *c, bool full, struct nr_st_tensor *t, struct nr_arena *arena)
{
	int64_t count = 0;
	for (int64_t i = 0; i < nr_store_count(c->store) && (full || !c->teacher); i++)
		for (int part = 0; part < (full ? PARTS : 1); part++) {
			const struct nr_entry *e = nr_store_at(c->store, i);
			const real *v = values_of(c, e, !full && c->ema ? 3 : part);
			if (v) put(&t[count++], prefix[part], e, v, arena);
		}
	for (int64_t i = 0; c->teacher && i < nr_store_count(c->teacher); i++) {
		const struct nr_entry *e = nr_store_at(c->teacher, i);
		if (full || nr_store_find(c->store, e->name))   /* what the student lacks is for the training alone */
			put(&t[count++], full ? of_teacher : "", e, nr_value(e), arena);
	}
	return count;
}

int nr_checkpoint_write(const struct nr_checkpoint *c, const char *path, bool full, struct nr_error *err)
{
	const int64_t failures = nr_memory_failures();
	struct nr_arena *arena = nr_arena_make();
	const int64_t n = PARTS * nr_store_count(c->store) + (c->teacher ? nr_store_count(c->teacher) : 0);
	struct nr_st_tensor *t = arena ? nr_arena_alloc(arena, (size_t)(n + 1) * sizeof *t) : NULL;
	if (!t) {
		nr_arena_free(arena);
		return nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
	}
	const int64_t count = put_all(c, full, t, arena);
	struct meta m = { .count = 0 };
	describe(c, full, &m, arena);
	int code = NR_OK;
	for (int i = 0; i < m.n_own; i++)
		if (!m.own[i]) code = nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
	if (!code) code = nr_memory_since(failures, "cannot write", path, err);         /* a name or a note would be missing */
	if (!code) code = nr_st_write(path, t, count, m.item, m.count, err);
	for (int i = 0; i < m.n_own; i++) free(m.own[i]);
	nr_arena_free(arena);
	return code;
}

static int read_values(const struct nr_st_file *f, const char *path, const char *name, const struct nr_entry *e, real *to,
	struct nr_error *err)
{
	const struct nr_st_tensor *t = nr_st_need(f, name, err);
	if (!t) return err->code;
	if (nr_st_elements(t) != e->count)
		return nr_fail(err, NR_ESHAPE, "cannot resume from", path,
			"tensor '%s' has %lld values, but the model needs %lld", name,
			(long long)nr_st_elements(t), (long long)e->count);
	return nr_st_to_real(t, to, e->count, err);
}

static void copy_text(char *to, size_t size, const char *text) { snprintf(to, size, "%s", text ? text : ""); }

int nr_checkpoint_origin(struct nr_origin *o, const char *path, struct nr_error *err)
{
	struct nr_st_file *f;
	if (nr_st_open(&f, path, err)) return err->code;
	copy_text(o->data, sizeof o->data, nr_st_metadata(f, "norma.data_sha256"));
	copy_text(o->eval_data, sizeof o->eval_data, nr_st_metadata(f, "norma.eval_sha256"));
	copy_text(o->isa, sizeof o->isa, nr_st_metadata(f, "norma.isa"));
	nr_st_close(f);
	return NR_OK;
}

int nr_checkpoint_read(struct nr_checkpoint *c, const char *path, int64_t steps, struct nr_error *err)
{
	struct nr_st_file *f;
	if (nr_st_open(&f, path, err)) return err->code;
	const char *state = nr_st_metadata(f, "norma.state");
	int code = state ? nr_state_read(&c->state, state, path, steps, err)
			 : nr_fail(err, NR_EFORMAT, "cannot resume from", path, "it is not a training checkpoint");
	for (int64_t i = 0; !code && i < nr_store_count(c->store); i++)
		for (int part = 0; !code && part < PARTS; part++) {
			const struct nr_entry *e = nr_store_at(c->store, i);
			char name[512];
			snprintf(name, sizeof name, "%s%s", prefix[part], e->name);
			real *v = values_of(c, e, part);
			if (v) code = read_values(f, path, name, e, v, err);
		}
	for (int64_t i = 0; !code && c->teacher && i < nr_store_count(c->teacher); i++) {
		const struct nr_entry *e = nr_store_at(c->teacher, i);
		char name[512];
		snprintf(name, sizeof name, "%s%s", of_teacher, e->name);
		code = read_values(f, path, name, e, nr_value(e), err);
	}
	nr_st_close(f);
	return code;
}
