/* Public checkpoints: tensor names of timm and Hugging Face in and out of safetensors. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/safetensors.h"
#include "base/str.h"
#include "math/resample.h"
#include "models/names.h"
#include "norma/model.h"

static const struct nr_naming ours = { .name = "norma", .rules = (const struct nr_rename[]){ { NULL, NULL } } };

const struct nr_naming *nr_naming_find(const struct nr_model *m, const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	if (!strcmp(name, ours.name)) return &ours;
	for (const struct nr_naming *n = m->namings; n->name; n++) {
		if (!strcmp(n->name, name)) return n;
		nr_near_try(&near, n->name);
	}
	nr_near_try(&near, ours.name);
	nr_fail(err, NR_ENAME, "no naming", name, "%s has no such names", m->name);
	if (near.best) {
		nr_hint(err, "did you mean '%s'?", near.best);
		return NULL;
	}
	struct nr_str known = { 0 };
	for (const struct nr_naming *n = m->namings; n->name; n++) nr_str_printf(&known, "%s, ", n->name);
	nr_hint(err, "there are %s%s", nr_str_text(&known), ours.name);
	nr_str_release(&known);
	return NULL;
}

/* How much of s `what` stands for, which may have a number, '#'; 0: they differ. */
static size_t stands_for(const char *what, const char *s, long long *number)
{
	const char *at = s;
	for (; *what; what++) {
		char *end;
		if (*what == '#' && *at >= '0' && *at <= '9') *number = strtoll(at, &end, 10), at = end;
		else if (*what != *at++) return 0;
	}
	return (size_t)(at - s);
}

/* Where `what` stands in name at the beginning of a part, and how long it is there. */
static const char *part_at(const char *name, const char *what, size_t *length, long long *number)
{
	for (const char *s = name; s; s = strchr(s, '.') ? strchr(s, '.') + 1 : NULL)
		if ((*length = stands_for(what, s, number))) return s;
	return NULL;
}

/* A word of a right side, with the number of the left one. */
static void put_word(struct nr_str *all, const char *word, size_t length, long long number)
{
	for (size_t i = 0; i < length; i++) {
		if (word[i] != '#') {
			nr_str_printf(all, "%c", word[i]);
			continue;
		}
		const int by = word[i + 1] == '+' ? 1 : word[i + 1] == '-' ? -1 : 0;
		nr_str_printf(all, "%lld", number + by);
		i += by != 0;
	}
}

/* Every word of text with the rule applied; a right side of several words makes several. */
static const char *apply(const struct nr_rename *r, const char *text, struct nr_arena *arena)
{
	struct nr_str all = { 0 };
	const char *theirs = r->theirs + (*r->theirs == '@' || *r->theirs == '~');
	for (const char *s = text; *s; s += strcspn(s, " "), s += *s == ' ') {
		char word[256];
		size_t length;
		long long number = 0;
		snprintf(word, sizeof word, "%.*s", (int)strcspn(s, " "), s);
		const char *at = part_at(word, r->ours, &length, &number);
		if (!at) nr_str_printf(&all, "%s%s", all.len ? " " : "", word);
		for (const char *t = theirs; at && *t; t += strcspn(t, " "), t += *t == ' ') {
			nr_str_printf(&all, "%s%.*s", all.len ? " " : "", (int)(at - word), word);
			put_word(&all, t, strcspn(t, " "), number);
			nr_str_add(&all, at + length);
		}
	}
	const char *out = all.failed ? NULL : nr_arena_strdup(arena, nr_str_text(&all));
	nr_str_release(&all);
	return out;
}

const char *nr_naming_text(const struct nr_naming *naming, const char *entry, char *order, struct nr_arena *arena)
{
	const char *text = entry;
	*order = 0;
	for (const struct nr_rename *r = naming->rules; r->ours && text; r++) {
		size_t length;
		long long number;
		if (!strstr(text, r->ours) && !strchr(r->ours, '#')) continue;
		if ((*r->theirs == '@' || *r->theirs == '~') && part_at(text, r->ours, &length, &number)) *order = *r->theirs;
		text = apply(r, text, arena);
	}
	return text;
}

const struct nr_naming *nr_naming_numbered(const struct nr_naming *n, const int64_t *depth, struct nr_arena *arena)
{
	if (!n->numbered) return n;
	const struct nr_rename *first = n->numbered(depth, arena);
	int64_t a = 0, b = 0;
	while (first && first[a].ours) a++;
	while (n->rules[b].ours) b++;
	struct nr_naming *both = nr_arena_alloc(arena, sizeof *both);
	struct nr_rename *rules = nr_arena_alloc(arena, (size_t)(a + b + 1) * sizeof *rules);
	if (!first || !both || !rules) return NULL;
	memcpy(rules, first, (size_t)a * sizeof *rules);
	memcpy(rules + a, n->rules, (size_t)(b + 1) * sizeof *rules);
	*both = *n;
	both->rules = rules;
	return both;
}

/* How many blocks each stage of the store's model has. */
static void count_blocks(const struct nr_store *s, int64_t *depth)
{
	memset(depth, 0, NR_MAXLEVELS * sizeof *depth);
	for (int64_t i = 0; i < nr_store_count(s); i++) {
		long long stage, block;
		if (sscanf(nr_store_at(s, i)->name, "stages.%lld.blocks.%lld.", &stage, &block) != 2) continue;
		if (stage >= 0 && stage < NR_MAXLEVELS && block >= depth[stage]) depth[stage] = block + 1;
	}
}

/* ---- values with their order changed --------------------------------------------------------------------------------- */

int64_t nr_naming_place(char order, int64_t k, int64_t patch, int64_t channels)
{
	const int64_t pixels = patch * patch;
	if (order == '@') return k % pixels * channels + k / pixels;            /* (channels,p,p) of ours, (p,p,channels) of theirs */
	return order == '~' ? k / 3 * 3 + (k + 2) % 3 : k;                      /* DTN's positions: d^2 dx dy, dx dy d^2 */
}

/* One entry's values from their order to ours, or the other way. */
static void reorder(const struct nr_store *s, char order, int64_t n, const real *from, real *to, bool out)
{
	const struct nr_entry *w = nr_store_find(s, "patch_embed.proj.weight");
	const int64_t p = w && w->nd == 4 ? w->d[3] : 1, channels = n / (p * p);
	for (int64_t i = 0; i < n; i++) {
		const int64_t theirs = nr_naming_place(order, i, p, channels);
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
		snprintf(first, sizeof first, "%.*s", text ? (int)strcspn(text, " ") : 0, text ? text : "");
		found += nr_st_find(r->file, first) != NULL;
	}
	return found;
}

static void tell(const struct reading *r, enum nr_import_fate fate, const char *name)
{
	if (r->how->tell) r->how->tell(r->how->context, fate, name);
}

static int choose(struct reading *r, const struct nr_model *m, struct nr_error *err)
{
	int64_t depth[NR_MAXLEVELS];
	count_blocks(r->store, depth);
	if (r->how->naming && strcmp(r->how->naming, "auto")) {
		r->naming = nr_naming_find(m, r->how->naming, err);
		if (!r->naming) return err->code;
		r->naming = nr_naming_numbered(r->naming, depth, r->arena);
		return r->naming ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot load", r->path, "out of memory");
	}
	int64_t best = hits(r, &ours);
	r->naming = &ours;
	for (const struct nr_naming *n = m->namings; n->name; n++) {
		const struct nr_naming *here = nr_naming_numbered(n, depth, r->arena);
		if (!here) return nr_fail(err, NR_EMEMORY, "cannot load", r->path, "out of memory");
		const int64_t found = hits(r, here);
		if (found > best) best = found, r->naming = here;
	}
	if (best) return NR_OK;
	nr_fail(err, NR_EFORMAT, "cannot load", r->path,
		"none of its %lld tensors belong to this model", (long long)nr_st_count(r->file));
	return nr_hint(err, "`norma inspect` shows what it has");
}

static bool same_shape(const struct nr_st_tensor *t, const struct nr_entry *e, int64_t parts)
{
	if (t->nd != e->nd) return false;
	for (int i = 0; i < e->nd; i++)
		if (t->shape[i] != (i == 0 ? e->d[0] / parts : e->d[i])) return false;
	return true;
}

static void sizes_text(int nd, const int64_t *d, char *buf, size_t size)
{
	size_t used = 0;
	buf[0] = 0;
	for (int i = 0; i < nd && used + 1 < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%lld", i ? "x" : "", (long long)d[i]);
}

static int wrong_shape(const struct reading *r, const struct nr_st_tensor *t, const struct nr_entry *e, int64_t parts, struct nr_error *err)
{
	char have[96], want[96];
	int64_t d[NR_MAXD];
	memcpy(d, e->d, sizeof d);
	d[0] /= parts;
	sizes_text(t->nd, t->shape, have, sizeof have);
	sizes_text(e->nd, d, want, sizeof want);
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
	if (!r->how->resample) return wrong_shape(r, t, e, 1, err);
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
	if (to * to != rows || from * from != have - special) return wrong_shape(r, t, e, 1, err);
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
	int64_t parts = 1;
	for (const char *s = text; *s; s++) parts += *s == ' ';
	*found = true;
	for (int64_t i = 0; i < parts; i++, text += strcspn(text, " ") + 1) {
		char name[256];
		snprintf(name, sizeof name, "%.*s", (int)strcspn(text, " "), text);
		const struct nr_st_tensor *t = nr_st_find(r->file, name);
		if (!t && r->how->partial) {
			*found = false;
			return NR_OK;
		}
		if (!t) return missing(r, name, err);
		mark(r, t);
		if (r->how->partial && !same_shape(t, e, parts) && !strncmp(e->name, "head.", 5)) {
			*found = false;                 /* a head for other classes starts anew */
			return NR_OK;
		}
		real *to = out ? out + i * (e->count / parts) : NULL;
		int code = NR_OK;
		if (!same_shape(t, e, parts))
			code = strstr(e->name, "pos_embed") ? resample(r, t, e, to, err) : wrong_shape(r, t, e, parts, err);
		else if (to) code = nr_st_to_real(t, to, e->count / parts, err);
		if (code) return code;
	}
	if (order && out) {
		real *copy = nr_arena_alloc(r->arena, (size_t)e->count * sizeof *copy);
		if (!copy) return nr_fail(err, NR_EMEMORY, "cannot load", r->path, "out of memory");
		memcpy(copy, out, (size_t)e->count * sizeof *copy);
		reorder(r->store, order, e->count, copy, out, false);
	}
	return NR_OK;
}

/* What a checkpoint of ours holds for going on with the training, beside the model. */
static bool of_training(const char *name) { return !strncmp(name, "optim.", 6) || !strncmp(name, "ema.", 4); }

/* The half of a masked autoencoder that is thrown away after pre-training, in our names, those of MAE and Hugging Face's. */
static bool of_decoder(const char *name)
{
	return !strncmp(name, "decoder.", 8) || !strncmp(name, "decoder_", 8) || !strcmp(name, "mask_token");
}

bool nr_naming_ignores(const struct nr_naming *n, const char *name)
{
	for (const char *const *s = n->ignored; s && *s; s++) {
		const size_t want = strlen(*s) - 1, have = strlen(name);
		if (!strcmp(*s, name) || (**s == '*' && have >= want && !strcmp(*s + 1, name + have - want))) return true;
	}
	return false;
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

static int write_entry(struct writing *w, const struct nr_entry *e, const char *path, struct nr_error *err)
{
	char order;
	const char *text = nr_naming_text(w->naming, e->name, &order, w->arena);
	const real *values = nr_value(e);
	int64_t parts = 1;
	for (const char *p = text; p && *p; p++) parts += *p == ' ';
	if (text && order) {
		real *copy = nr_arena_alloc(w->arena, (size_t)e->count * sizeof *copy);
		if (copy) reorder(w->store, order, e->count, values, copy, true);
		values = copy;
	}
	if (!text || !values || w->count + parts > w->room) return nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
	for (int64_t k = 0; k < parts; k++, text += strcspn(text, " ") + 1) {
		struct nr_st_tensor t = { .name = nr_arena_printf(w->arena, "%.*s", (int)strcspn(text, " "), text),
			.dtype = sizeof(real) == 4 ? NR_ST_F32 : NR_ST_F64, .nd = e->nd, .data = values + k * (e->count / parts),
			.bytes = (size_t)(e->count / parts) * sizeof(real) };
		for (int d = 0; d < e->nd; d++) t.shape[d] = d ? e->d[d] : e->d[0] / parts;
		if (!t.name) return nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
		if (clash(w, t.name, e->name, path, err)) return err->code;
		w->entry[w->count] = e->name;
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
	int64_t depth[NR_MAXLEVELS];
	count_blocks(s, depth);
	if (w.arena) w.naming = nr_naming_numbered(w.naming, depth, w.arena);
	int code = w.tensor && w.entry && all && w.naming ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
	for (int64_t i = 0; !code && i < nr_store_count(s); i++) code = write_entry(&w, nr_store_at(s, i), path, err);
	if (!code) {
		all[0] = (struct nr_st_meta){ "format", "pt" };         /* what public readers look for */
		if (n_meta) memcpy(all + 1, meta, (size_t)n_meta * sizeof *meta);
		code = nr_st_write(path, w.tensor, w.count, all, n_meta + 1, err);
	}
	nr_arena_free(w.arena);
	return code;
}
