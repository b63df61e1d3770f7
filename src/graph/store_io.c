/* Parameters and buffers as safetensors. A file must hold exactly the store's tensors: what is missing, left over or of
 * another shape is named, and nothing is changed then. */
#include "base/safetensors.h"
#include "base/str.h"
#include "graph/store.h"

int nr_store_save(const struct nr_store *s, const char *path, struct nr_error *err)
{
	struct nr_arena *a = nr_arena_make();
	struct nr_st_tensor *t = a ? nr_arena_alloc(a, (size_t)(s->n_entry + 1) * sizeof *t) : NULL;
	if (!t || !s->value) {
		nr_arena_free(a);
		return t ? nr_fail(err, NR_EUSAGE, "cannot write", path, "the store has no values yet")
			 : nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
	}
	for (int64_t i = 0; i < s->n_entry; i++) {
		const struct nr_entry *e = s->entry[i];
		t[i] = (struct nr_st_tensor){ .name = e->name, .dtype = sizeof(real) == 4 ? NR_ST_F32 : NR_ST_F64, .nd = e->nd,
					      .data = nr_value(e), .bytes = (size_t)e->count * sizeof(real) };
		memcpy(t[i].shape, e->d, (size_t)e->nd * sizeof *e->d);
	}
	const struct nr_st_meta meta = { "format", "pt" }; /* what public readers look for */
	const int rc = nr_st_write(path, t, s->n_entry, &meta, 1, err);
	nr_arena_free(a);
	return rc;
}

static int check(const struct nr_store *s, const struct nr_st_file *f, const char *path, struct nr_error *err)
{
	for (int64_t i = 0; i < s->n_entry; i++) {
		const struct nr_entry *e = s->entry[i];
		const struct nr_st_tensor *t = nr_st_need(f, e->name, err);
		if (!t) return err ? (int)err->code : NR_ENAME;
		if (t->nd != e->nd || memcmp(t->shape, e->d, (size_t)e->nd * sizeof *e->d))
			return nr_fail(err, NR_ESHAPE, "cannot load", path,
				       "tensor '%s' has %d dimensions and %lld values; the model wants %d and %lld",
				       e->name, t->nd, (long long)nr_st_elements(t), e->nd, (long long)e->count);
	}
	for (int64_t i = 0; i < nr_st_count(f); i++) {
		const char *name = nr_st_get(f, i)->name;
		if (nr_store_find(s, name)) continue;
		struct nr_near near = { .word = name };
		for (int64_t j = 0; j < s->n_entry; j++) nr_near_try(&near, s->entry[j]->name);
		nr_fail(err, NR_ENAME, "cannot load", path, "the model has no tensor '%s'", name);
		if (near.best) nr_hint(err, "nearest: '%s'", near.best);
		return NR_ENAME;
	}
	return 0;
}

int nr_store_load(struct nr_store *s, const char *path, struct nr_error *err)
{
	struct nr_st_file *f;
	struct nr_error local = { 0 };
	if (!err) err = &local;
	int rc = nr_store_seal(s, err);
	if (rc || (rc = nr_st_open(&f, path, err))) return rc;
	rc = check(s, f, path, err);
	for (int64_t i = 0; !rc && i < s->n_entry; i++) {
		const struct nr_entry *e = s->entry[i];
		rc = nr_st_to_real(nr_st_find(f, e->name), nr_value(e), e->count, err);
	}
	nr_st_close(f);
	return rc;
}
