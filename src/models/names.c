/* Public checkpoints: tensor names of timm and Hugging Face in and out of safetensors. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/safetensors.h"
#include "base/str.h"
#include "math/resample.h"
#include "models/names.h"
#include "norma/model.h"

/* How many blocks each stage of the store's model has, and how many of its levels a neck reads. */
static struct nr_numbers numbers_of(const struct nr_store *s)
{
	struct nr_numbers n = { .levels = 0 };
	for (int64_t i = 0; i < nr_store_count(s); i++) {
		const char *name = nr_store_at(s, i)->name;
		long long stage, block;
		int end = 0;
		if (sscanf(name, "stages.%lld.blocks.%lld.", &stage, &block) == 2 && stage >= 0 && stage < NR_MAXLEVELS &&
			block >= n.depth[stage])
			n.depth[stage] = block + 1;
		if (sscanf(name, "detect.levels.%lld.neck.lateral.%n", &stage, &end) == 1 && end && stage >= n.levels) n.levels = stage + 1;
	}
	return n;
}

/* ---- values with their order changed --------------------------------------------------------------------------------- */

/* One entry's values from their order to ours, or the other way. */
static void reorder(const struct nr_store *s, char order, const struct nr_entry *e, const real *from, real *to, bool out)
{
	const struct nr_entry *w = nr_store_find(s, "patch_embed.proj.weight");
	const int64_t n = e->count, p = w && w->nd == 4 ? w->d[3] : 1, channels = order == '%' ? e->d[e->nd - 1] / 4 : n / (p * p);
	for (int64_t i = 0; i < n; i++) {
		const int64_t theirs = nr_naming_place(order, e, i, p, channels);
		if (out) to[theirs] = from[i];
		else to[i] = from[theirs];
	}
}

/* ---- in --------------------------------------------------------------------------------------------------------------- */

struct reading {
	const struct nr_store *store;
	const struct nr_st_file *file;
	const struct nr_naming *naming;
	struct nr_import *how;
	struct nr_arena *arena;
	const char *path;
	bool *seen;                         /* tensors of the file */
};

static void mark(struct reading *r, const struct nr_st_tensor *t)
{
	for (int64_t i = 0; i < nr_st_count(r->file); i++)
		if (nr_st_get(r->file, i) == t) r->seen[i] = true;
}

/* How many of the store's names the file has in this naming. */
static int64_t hits(const struct reading *r, const struct nr_naming *naming)
{
	int64_t found = 0;
	for (int64_t i = 0; i < nr_store_count(r->store); i++) {
		char order;
		const char *text = nr_naming_text(naming, nr_store_at(r->store, i)->name, &order, r->arena);
		char first[256];
		found += text && nr_naming_word(&text, first, sizeof first) && nr_st_find(r->file, first) != NULL;
	}
	return found;
}

static void tell(const struct reading *r, enum nr_import_fate fate, const char *name)
{
	if (r->how->tell) r->how->tell(r->how->context, fate, name);
}

static int choose(struct reading *r, const struct nr_model *m, struct nr_error *err)
{
	const struct nr_numbers numbers = numbers_of(r->store);
	if (r->how->naming && strcmp(r->how->naming, "auto")) {
		r->naming = nr_naming_find(m, r->how->naming, err);
		if (!r->naming) return err->code;
		r->naming = nr_naming_numbered(r->naming, &numbers, r->arena);
		return r->naming ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot load", r->path, "out of memory");
	}
	int64_t best = hits(r, &nr_naming_ours);
	r->naming = &nr_naming_ours;
	for (const struct nr_naming *n = m->namings; n->name; n++) {
		const struct nr_naming *here = nr_naming_numbered(n, &numbers, r->arena);
		if (!here) return nr_fail(err, NR_EMEMORY, "cannot load", r->path, "out of memory");
		const int64_t found = hits(r, here);
		if (found > best) best = found, r->naming = here;
	}
	if (best) return NR_OK;
	nr_fail(err, NR_EFORMAT, "cannot load", r->path,
		"none of its %lld tensors belong to this model", (long long)nr_st_count(r->file));
	return nr_hint(err, "`norma inspect` shows what it has");
}

/* The shape of a tensor that holds `share` of the parts of an entry; '^': without leading sizes of 1; '!': the other way round. */
static int their_shape(const struct nr_entry *e, int64_t share, int64_t parts, char order, int64_t *shape)
{
	int skip = 0;
	while (order == '^' && skip + 1 < e->nd && e->d[skip] == 1) skip++;
	for (int i = skip; i < e->nd; i++) shape[i - skip] = i == 0 ? e->d[0] / parts * share : e->d[i];
	if (order == '!') shape[0] = e->d[1], shape[1] = e->d[0];
	return e->nd - skip;
}

static bool same_shape(const struct nr_st_tensor *t, const struct nr_entry *e, int64_t share, int64_t parts, char order)
{
	int64_t want[NR_MAXD];
	const int nd = their_shape(e, share, parts, order, want);
	return t->nd == nd && !memcmp(t->shape, want, (size_t)nd * sizeof *want);
}

static void sizes_text(int nd, const int64_t *d, char *buf, size_t size)
{
	size_t used = 0;
	buf[0] = 0;
	for (int i = 0; i < nd && used + 1 < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%lld", i ? "x" : "", (long long)d[i]);
}

static int wrong_shape(const struct reading *r, const struct nr_st_tensor *t, const struct nr_entry *e, int64_t share, int64_t parts,
	char order, struct nr_error *err)
{
	char have[96], want[96];
	int64_t d[NR_MAXD];
	const int nd = their_shape(e, share, parts, order, d);
	sizes_text(t->nd, t->shape, have, sizeof have);
	sizes_text(nd, d, want, sizeof want);
	nr_fail(err, NR_ESHAPE, "cannot load", r->path,
		"tensor '%s' is %s, but the model needs %s", t->name, *have ? have : "a scalar", want);
	if (strstr(e->name, "pos_embed") && !r->how->resample)
		return nr_hint(err, "resize a table of another grid with --resample timm, mae, dino or bigvision");
	if (!strncmp(e->name, "head.", 5)) return nr_hint(err,
		"give the number of classes with the model: vit_tiny_patch16_224:classes=10");
	return err->code;
}

/* The model wants what the file does not have. */
static int missing(const struct reading *r, const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	for (int64_t i = 0; i < nr_st_count(r->file); i++) nr_near_try(&near, nr_st_get(r->file, i)->name);
	nr_fail(err, NR_EFORMAT, "cannot load", r->path, "it has no tensor '%s'", name);
	if (near.best) return nr_hint(err,
		"the nearest is '%s'; the file was read with the names of %s", near.best, r->naming->name);
	return nr_hint(err, "the file was read with the names of %s", r->naming->name);
}

/* A position table of another grid. */
static int resample(const struct reading *r, const struct nr_st_tensor *t, const struct nr_entry *e, real *out, struct nr_error *err)
{
	static const char *const names[] = { "timm", "mae", "dino", "bilinear", "bigvision", NULL };
	int kind = 0;
	while (names[kind] && (!r->how->resample || strcmp(names[kind], r->how->resample))) kind++;
	if (!r->how->resample) return wrong_shape(r, t, e, 1, 1, 0, err);
	if (!names[kind]) {
		const char *near = nr_nearest(r->how->resample, names);
		nr_fail(err, NR_ENAME, "no way to resample positions", r->how->resample, "no such name");
		return nr_hint(err, near ? "did you mean '%s'?" : "timm, mae, dino, bilinear, bigvision", near);
	}
	const int64_t C = e->d[e->nd - 1], S = r->how->special, rows = e->count / C - S;
	const int64_t have = t->nd >= 2 && t->shape[t->nd - 1] == C ? nr_st_elements(t) / C : 0;
	int64_t to = 1, from = 1, special = S;
	while (to * to < rows) to++;
	while (from * from < have - special) from++;
	if (from * from != have - special && special == 0) {            /* the file has a class row, the model has none */
		special = 1;
		for (from = 1; from * from < have - special;) from++;
	}
	if (to * to != rows || from * from != have - special) return wrong_shape(r, t, e, 1, 1, 0, err);
	if (!out) return NR_OK;
	real *old = nr_arena_alloc(r->arena, (size_t)(have * C) * sizeof *old);
	real *tmp = nr_arena_alloc(r->arena, (size_t)(to * from * C) * sizeof *tmp);
	void *axis = nr_arena_alloc(r->arena, nr_axis_bytes(from, to));
	if (!old || !tmp || !axis) return nr_fail(err, NR_EMEMORY, "cannot load", r->path, "out of memory");
	if (nr_st_to_real(t, old, have * C, err)) return err->code;
	const struct nr_axis a = nr_axis_init((enum nr_resample)kind, from, to, axis);
	memcpy(out, old, (size_t)(S * C) * sizeof *out);
	nr_resample_forward(&a, &a, C, old + special * C, out + S * C, tmp);
	return NR_OK;
}

/* One entry's values into `out` (NULL: only a look whether they fit); *found: whether the file has it. */
static int read_entry(struct reading *r, const struct nr_entry *e, real *out, bool *found, struct nr_error *err)
{
	char order;
	const char *text = nr_naming_text(r->naming, e->name, &order, r->arena);
	if (!text) return nr_fail(err, NR_EMEMORY, "cannot load", r->path, "out of memory");
	const int64_t parts = nr_naming_parts(text);
	char name[256];
	*found = true;
	for (int64_t share, at = 0; (share = nr_naming_word(&text, name, sizeof name)); at += share) {
		const struct nr_st_tensor *t = nr_st_find(r->file, name);
		if (!t && r->how->partial) {
			*found = false;
			return NR_OK;
		}
		if (!t) return missing(r, name, err);
		mark(r, t);
		const bool same = same_shape(t, e, share, parts, order);
		if (r->how->partial && !same && !strncmp(e->name, "head.", 5)) {
			*found = false;                 /* a head for other classes starts anew */
			return NR_OK;
		}
		real *to = out ? out + at * (e->count / parts) : NULL;
		int code = NR_OK;
		if (!same)
			code = strstr(e->name, "pos_embed") ? resample(r, t, e, to, err) : wrong_shape(r, t, e, share, parts, order, err);
		else if (to) code = nr_st_to_real(t, to, e->count / parts * share, err);
		if (code) return code;
	}
	if (order && out) {
		real *copy = nr_arena_alloc(r->arena, (size_t)e->count * sizeof *copy);
		if (!copy) return nr_fail(err, NR_EMEMORY, "cannot load", r->path, "out of memory");
		memcpy(copy, out, (size_t)e->count * sizeof *copy);
		reorder(r->store, order, e, copy, out, false);
	}
	return NR_OK;
}

/* What a checkpoint of ours holds for going on with the training, beside the model. */
static bool of_training(const char *name)
{
	static const char *const own[] = { "optim.", "ema.", "teacher.", "contrast." };         /* contrast: temperature and bias of LiT */
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (!strncmp(name, own[i], strlen(own[i]))) return true;
	return false;
}

/* What is thrown away after training: the decoder of a masked autoencoder, in our names, those of MAE and Hugging Face's; the head of
 * DINO, in ours and its own; the decoder of segmentation; neck and heads of a detector. */
static bool of_decoder(const char *name)
{
	static const char *const first[] = { "decoder.", "decoder_", "segment.", "detect.", "dino.", "head.mlp.", "head.last_layer.",
		"teacher.head.", "student.module.head.", "module.head.", NULL };
	for (int i = 0; first[i]; i++)
		if (!strncmp(name, first[i], strlen(first[i]))) return true;
	return !strcmp(name, "mask_token");
}

static int left_over(const struct reading *r, struct nr_error *err)
{
	const bool own = nr_st_metadata(r->file, "norma") != NULL;
	for (int64_t i = 0; i < nr_st_count(r->file); i++) {
		const char *name = nr_st_get(r->file, i)->name;
		if (r->seen[i] || nr_naming_ignores(r->naming, name)) continue;
		r->how->ignored++;
		tell(r, NR_IGNORED, name);
		if (r->how->partial || (of_decoder(name) && !r->how->decoder) || (own && of_training(name))) continue;
		nr_fail(err, NR_EFORMAT, "cannot load", r->path, "the model has no tensor '%s'", name);
		return nr_hint(err, "the file was read with the names of %s; use --partial to ignore unused tensors", r->naming->name);
	}
	return NR_OK;
}

/* All is looked at first: a failure changes nothing, and a small file that claims to be a large model gets no memory. */
static int read_all(struct reading *r, struct nr_store *s, struct nr_error *err)
{
	const int64_t n = nr_store_count(s);
	bool *found = nr_arena_alloc(r->arena, (size_t)n + 1);
	if (!found) return nr_fail(err, NR_EMEMORY, "cannot load", r->path, "out of memory");
	for (int64_t i = 0; i < n; i++)
		if (read_entry(r, nr_store_at(s, i), NULL, &found[i], err)) return err->code;
	if (left_over(r, err) || nr_store_seal(s, err)) return err->code;
	for (int64_t i = 0; i < n; i++) {
		const struct nr_entry *e = nr_store_at(s, i);
		const struct nr_mark mark_here = nr_arena_mark(r->arena);
		if (found[i] && read_entry(r, e, nr_value(e), &found[i], err)) return err->code;
		nr_arena_reset(r->arena, mark_here);
		r->how->taken += found[i];
		r->how->kept += !found[i];
		tell(r, found[i] ? NR_TAKEN : NR_KEPT, e->name);
	}
	return NR_OK;
}

/* The names of the tensors that nothing took: "'a', 'b' and 3 more"; NULL: there is none. */
static const char *not_taken(const struct reading *r, struct nr_arena *arena)
{
	enum { SHOWN = 3 };
	const bool own = nr_st_metadata(r->file, "norma") != NULL;
	const char *text = NULL;
	int64_t count = 0;
	for (int64_t i = 0; i < nr_st_count(r->file); i++) {
		const char *name = nr_st_get(r->file, i)->name;
		if (r->seen[i] || nr_naming_ignores(r->naming, name) || of_decoder(name) || (own && of_training(name))) continue;
		if (count++ < SHOWN) text = nr_arena_printf(arena, "%s%s'%.100s'", text ? text : "", text ? ", " : "", name);
	}
	return count > SHOWN ? nr_arena_printf(arena, "%s and %lld more", text, (long long)(count - SHOWN)) : text;
}

int nr_naming_matches(const struct nr_store *s, const struct nr_st_file *f, const struct nr_naming *naming, struct nr_arena *arena,
	const char **why)
{
	struct nr_import how = { 0 };
	struct nr_error err = { 0 };
	struct reading r = { .store = s, .file = f, .naming = naming, .how = &how, .arena = arena, .path = nr_st_path(f),
		.seen = nr_arena_alloc(arena, (size_t)nr_st_count(f) + 1) };
	int64_t lacking = 0;
	bool found;
	*why = NULL;
	if (!r.seen) return 0;
	for (int64_t i = 0; i < nr_store_count(s); i++) {
		if (!read_entry(&r, nr_store_at(s, i), NULL, &found, &err)) continue;
		if (!lacking++) *why = nr_arena_strdup(arena, err.detail);
		err = (struct nr_error){ 0 };
	}
	const char *left = not_taken(&r, arena);
	if (left) *why = nr_arena_printf(arena, "tensors that were not understood: %s", left);
	return !lacking && !left;
}

int nr_model_import(struct nr_store *s, const struct nr_model *m, const char *path, struct nr_import *how, struct nr_error *err)
{
	struct nr_st_file *f;
	struct nr_error local = { 0 };
	if (!err) err = &local;
	if (nr_st_open(&f, path, err)) return err->code;
	struct reading r = { .store = s, .file = f, .how = how, .arena = nr_arena_make(), .path = path };
	how->taken = how->kept = how->ignored = 0;
	r.seen = r.arena ? nr_arena_alloc(r.arena, (size_t)nr_st_count(f) + 1) : NULL;
	int code = r.seen ? choose(&r, m, err) : nr_fail(err, NR_EMEMORY, "cannot load", path, "out of memory");
	if (!code) code = read_all(&r, s, err);
	if (!code) how->used = r.naming->name;
	nr_arena_free(r.arena);
	nr_st_close(f);
	return code;
}

/* ---- out -------------------------------------------------------------------------------------------------------------- */

struct writing {
	const struct nr_store *store;
	const struct nr_naming *naming;
	struct nr_arena *arena;
	struct nr_st_tensor *tensor;
	const char **entry;                 /* of ours, for each tensor */
	int64_t count, room;
};

/* Two of ours may share a public name (patch.out and patch.pos are both patch_embed.norm): only one can have it. */
static int clash(const struct writing *w, const char *name, const char *entry, const char *path, struct nr_error *err)
{
	for (int64_t i = 0; i < w->count; i++) {
		if (strcmp(w->tensor[i].name, name)) continue;
		nr_fail(err, NR_EVALUE, "cannot write", path,
			"'%s' and '%s' would both be called '%s' with the names of %s", w->entry[i],
			entry, name, w->naming->name);
		return nr_hint(err, "use norma's own names: --to norma");
	}
	return NR_OK;
}

/* A bias that does nothing there (softmax does not see it) and that ours does not have. */
static int add_idle_bias(struct writing *w, const struct nr_entry *e, const char *weight, const char *path, struct nr_error *err)
{
	real *zeros = nr_arena_alloc(w->arena, (size_t)e->d[0] * sizeof *zeros);
	const char *name = nr_arena_printf(w->arena, "%.*sbias", (int)(strlen(weight) - strlen("weight")), weight);
	if (!zeros || !name || w->count >= w->room) return nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
	memset(zeros, 0, (size_t)e->d[0] * sizeof *zeros);
	w->entry[w->count] = e->name;
	w->tensor[w->count++] = (struct nr_st_tensor){ .name = name, .dtype = sizeof(real) == 4 ? NR_ST_F32 : NR_ST_F64, .data = zeros,
		.bytes = (size_t)e->d[0] * sizeof *zeros, .nd = 1, .shape = { e->d[0] } };
	return NR_OK;
}
static bool has_idle_bias(const struct nr_naming *n, const char *name)
{
	const size_t have = strlen(name), want = n->idle_bias ? strlen(n->idle_bias) : 0;
	return want && have >= want && !strcmp(name + have - want, n->idle_bias);
}

static int write_entry(struct writing *w, const struct nr_entry *e, const char *path, struct nr_error *err)
{
	char order;
	const char *text = nr_naming_text(w->naming, e->name, &order, w->arena);
	const real *values = nr_value(e);
	const int64_t parts = text ? nr_naming_parts(text) : 1;
	if (text && order) {
		real *copy = nr_arena_alloc(w->arena, (size_t)e->count * sizeof *copy);
		if (copy) reorder(w->store, order, e, values, copy, true);
		values = copy;
	}
	if (!text || !values || w->count + parts > w->room) return nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
	char word[256];
	for (int64_t share, at = 0, n = e->count / parts; (share = nr_naming_word(&text, word, sizeof word)); at += share) {
		struct nr_st_tensor t = { .name = nr_arena_strdup(w->arena, word), .dtype = sizeof(real) == 4 ? NR_ST_F32 : NR_ST_F64,
			.data = values + at * n, .bytes = (size_t)(n * share) * sizeof(real) };
		t.nd = their_shape(e, share, parts, order, t.shape);
		if (!t.name) return nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
		if (clash(w, t.name, e->name, path, err)) return err->code;
		w->entry[w->count] = e->name;
		w->tensor[w->count++] = t;
		if (has_idle_bias(w->naming, t.name) && add_idle_bias(w, e, t.name, path, err)) return err->code;
	}
	return NR_OK;
}

static int write_wanted(struct writing *w, const char *path, struct nr_error *err)
{
	for (const struct nr_rename *r = w->naming->wanted; r && r->ours; r++) {
		const struct nr_entry *e = nr_store_find(w->store, r->ours);
		if (!e) continue;
		const real *zeros = nr_arena_alloc(w->arena, (size_t)e->count * sizeof *zeros);
		struct nr_st_tensor t = { .name = r->theirs, .dtype = sizeof(real) == 4 ? NR_ST_F32 : NR_ST_F64, .nd = e->nd, .data = zeros,
			.bytes = (size_t)e->count * sizeof(real) };
		if (!zeros || w->count == w->room) return nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
		for (int i = 0; i < e->nd; i++) t.shape[i] = e->d[i];
		w->entry[w->count] = r->ours;
		w->tensor[w->count++] = t;
	}
	return NR_OK;
}

int nr_model_export(const struct nr_store *s, const struct nr_model *m, const char *path, const char *name, const struct nr_st_meta *meta,
	int64_t n_meta, struct nr_error *err)
{
	struct nr_error local = { 0 };
	if (!err) err = &local;
	struct writing w = { .store = s, .naming = nr_naming_find(m, name, err), .room = 4 * nr_store_count(s) };
	if (!w.naming) return err->code;
	w.arena = nr_arena_make();
	w.tensor = w.arena ? nr_arena_alloc(w.arena, (size_t)(w.room + 1) * sizeof *w.tensor) : NULL;
	w.entry = w.arena ? nr_arena_alloc(w.arena, (size_t)(w.room + 1) * sizeof *w.entry) : NULL;
	struct nr_st_meta *all = w.arena ? nr_arena_alloc(w.arena, (size_t)(n_meta + 1) * sizeof *all) : NULL;
	const struct nr_numbers numbers = numbers_of(s);
	if (w.arena) w.naming = nr_naming_numbered(w.naming, &numbers, w.arena);
	int code = w.tensor && w.entry && all && w.naming ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
	for (int64_t i = 0; !code && i < nr_store_count(s); i++) code = write_entry(&w, nr_store_at(s, i), path, err);
	if (!code) code = write_wanted(&w, path, err);
	if (!code) {
		all[0] = (struct nr_st_meta){ "format", "pt" };         /* what public readers look for */
		if (n_meta) memcpy(all + 1, meta, (size_t)n_meta * sizeof *meta);
		code = nr_st_write(path, w.tensor, w.count, all, n_meta + 1, err);
	}
	nr_arena_free(w.arena);
	return code;
}
