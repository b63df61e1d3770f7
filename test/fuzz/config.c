/* Fuzzer: config.json, modules.json and the pooling's config.json beside a file of weights, as a download has them. */
#include "base/mem.h"
#include "files.h"
#include "models/guess.h"
#include "models/sentence_modules.h"
#include "norma/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Enough of BERT and ViT to be looked at. */
static void write_weights(void)
{
	static const float zeros[8 * 8 * 16];
	static const struct nr_st_tensor t[] = {
		{ "embeddings.word_embeddings.weight", NR_ST_F32, 2, { 8, 8 }, zeros, 256 },
		{ "embeddings.position_embeddings.weight", NR_ST_F32, 2, { 4, 8 }, zeros, 128 },
		{ "embeddings.LayerNorm.weight", NR_ST_F32, 1, { 8 }, zeros, 32 },
		{ "encoder.layer.0.attention.self.query.weight", NR_ST_F32, 2, { 8, 8 }, zeros, 256 },
		{ "encoder.layer.0.intermediate.dense.weight", NR_ST_F32, 2, { 16, 8 }, zeros, 512 },
		{ "patch_embed.proj.weight", NR_ST_F32, 4, { 8, 3, 2, 2 }, zeros, 384 },
		{ "blocks.0.attn.qkv.weight", NR_ST_F32, 2, { 24, 8 }, zeros, 768 },
	};
	assert(!nr_st_write(fuzz_path("model.safetensors"), t, sizeof t / sizeof *t, NULL, 0, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "config.json", "modules.json", "1_Pooling/config.json", NULL };
	struct nr_arena *arena = nr_arena_make();
	struct nr_st_file *f;
	struct nr_guess guess = { 0 };
	const char *pooler = NULL;
	struct nr_error err = { 0 };
	if (access(fuzz_path("model.safetensors"), F_OK)) write_weights();
	for (int i = 0; names[i]; i++) unlink(fuzz_path(names[i]));
	fuzz_split(data, size, names);
	assert(!nr_st_open(&f, fuzz_path("model.safetensors"), NULL));
	if (nr_model_guess(&guess, f, arena)) assert(guess.model && *guess.model);
	assert(nr_sentence_pooler(&pooler, fuzz_path("model.safetensors"), arena, &err) == (int)err.code);
	nr_st_close(f);
	nr_arena_free(arena);
	return 0;
}
