/* Fuzzer: an index of weights and the two files that it may name, opened by their folder, by the index and by one of the files. */
#include "base/mem.h"
#include "files.h"
#include "infer/weights.h"
#include "norma/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FIRST "model-00001-of-00002.safetensors"
#define SECOND "model-00002-of-00002.safetensors"

/* What was written as JSON | data gets the length of the JSON in front. */
static void complete(const char *name)
{
	uint8_t file[8 + 4096];
	FILE *f = fopen(fuzz_path(name), "rb");
	if (!f) return;
	const size_t n = fread(file + 8, 1, sizeof file - 8, f);
	uint8_t *bar = memchr(file + 8, '|', n);
	const uint64_t header = bar ? (uint64_t)(bar - file - 8) : n;
	fclose(f);
	if (bar) memmove(bar, bar + 1, n - header - 1);
	memcpy(file, &header, 8);
	fuzz_write(name, file, 8 + n - (bar != NULL));
}

static void open_it(const char *path)
{
	struct nr_st_file *f;
	struct nr_error err = { 0 };
	if (nr_st_open(&f, path, &err)) {
		assert(!f && err.code != NR_OK && err.detail[0]);
		return;
	}
	for (int64_t i = 0; i < nr_st_count(f); i++) {
		const struct nr_st_tensor *t = nr_st_get(f, i);
		float *v = malloc((size_t)nr_st_elements(t) * sizeof *v + 1);
		assert(nr_st_find(f, t->name) == t && !nr_st_to_f32(t, v, nr_st_elements(t), NULL));
		free(v);
	}
	nr_st_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "model.safetensors.index.json", FIRST, SECOND, NULL };
	struct nr_arena *arena = nr_arena_make();
	struct nr_weights *w;
	struct nr_error err = { 0 };
	for (int i = 0; names[i]; i++) unlink(fuzz_path(names[i]));
	fuzz_split(data, size, names);
	complete(FIRST);
	complete(SECOND);
	open_it(fuzz_path(names[0]));
	open_it(nr_weights_path(fuzz_path(SECOND), arena));
	if (!nr_weights_open(&w, fuzz_folder(), NULL, &err)) nr_weights_close(w);
	else assert(err.detail[0]);
	nr_arena_free(arena);
	return 0;
}
