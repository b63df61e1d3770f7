/* Fuzzer: config.json, modules.json, the pooling's config.json and preprocessor_config.json beside a file of weights, as a download has
 * them. */
#include "base/mem.h"
#include "files.h"
#include "models/guess.h"
#include "models/sentence_modules.h"
#include "norma/graph.h"
#include "norma/infer.h"
#include "norma/model.h"
#include "norma/nn.h"
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

/* Small models of every family that reads pictures or texts, under each of its names, written once: 0/model.safetensors, 1/... */
static const char *const models[] = {
	"vit:image=8,patch=4,dim=8,depth=1,heads=2,classes=3", "beit:image=8,patch=4,dim=8,depth=1,heads=2",
	"eva:image=8,patch=4,dim=8,depth=1,heads=2", "vit_relpos:image=8,patch=4,dim=8,depth=1,heads=2",
	"cait:image=8,patch=4,dim=8,depth=1,heads=2", "clip_text:vocab=20,dim=8,depth=1,heads=2,hidden=16,positions=6,length=6",
	"roberta:vocab=19,dim=8,depth=1,heads=2,hidden=8,positions=9,length=7",
	"pvt:image=32,patch=4,dims=8-8-8-8,depths=1-1-1-1,heads=1-1-1-1,mlp=2-2-2-2,sr=2-1-1-1",
	"pvt_v2:image=32,dims=8-8-8-8,depths=1-1-1-1,heads=1-1-1-1,mlp=2,sr=2-2-1-1",
	"swin:image=32,patch=2,dim=4,depths=2-1,heads=1-2,windows=4,mlp=2",
	"levit:image=32,dims=16-24,depths=1-2,heads=2-3,key=4,stride=8", "t2t:image=32,width=8,dim=8,depth=1,heads=2,mlp=2",
};

static bool write_model(const char *text, const struct nr_naming *naming, const char *path, struct nr_arena *arena)
{
	struct nr_model_spec m;
	struct nr_store *store = NULL;
	assert(!nr_model_parse(&m, text, arena, NULL) && !nr_store_make(&store, 0, NULL));
	struct nr_net *n = nr_net_make(store);
	assert(n && !nr_norms_use(n, "", &m.norms, NULL));
	const struct nr_inputs in = nr_model_inputs(n, &m, 1);
	nr_model_logits(n, &m, &in);
	assert(!nr_norms_done(n, NULL) && !nr_store_seal(store, NULL));
	const int e = nr_model_export(store, m.of, path, naming->name, NULL, 0, NULL);
	nr_net_free(n);
	nr_store_free(store);
	return !e;
}

static int write_models(void)
{
	struct nr_arena *arena = nr_arena_make();
	int count = 0;
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct nr_model_spec m;
		assert(!nr_model_parse(&m, models[i], arena, NULL));
		for (const struct nr_naming *of = m.of->namings; of->name; of++) {
			char name[64];
			snprintf(name, sizeof name, "%d/model.safetensors", count);
			fuzz_write(name, "", 0);
			count += write_model(models[i], of, fuzz_path(name), arena);
		}
	}
	nr_arena_free(arena);
	return count;
}

/* The first byte says which weights: '{' those of two models at once. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int count;
	char folder[32] = ".", name[4][64], file[64];
	const char *names[] = { name[0], name[1], name[2], name[3], NULL };
	struct nr_arena *arena = nr_arena_make();
	struct nr_weights *w;
	struct nr_st_file *f;
	struct nr_guess guess = { 0 };
	const char *pooler = NULL;
	struct nr_error err = { 0 };
	if (!count) {
		write_weights();
		count = write_models();
	}
	if (size && *data != '{') snprintf(folder, sizeof folder, "%d", *data % count), data++, size--;
	snprintf(name[0], sizeof name[0], "%s/config.json", folder);
	snprintf(name[1], sizeof name[1], "%s/modules.json", folder);
	snprintf(name[2], sizeof name[2], "%s/1_Pooling/config.json", folder);
	snprintf(name[3], sizeof name[3], "%s/preprocessor_config.json", folder);
	snprintf(file, sizeof file, "%s/model.safetensors", folder);
	for (int i = 0; names[i]; i++) unlink(fuzz_path(names[i]));
	fuzz_split(data, size, names);
	assert(!nr_st_open(&f, fuzz_path(file), NULL));
	if (nr_model_guess(&guess, f, arena)) assert(guess.model && *guess.model);
	assert(nr_sentence_pooler(&pooler, fuzz_path(file), arena, &err) == (int)err.code);
	nr_st_close(f);
	if (!nr_weights_open(&w, fuzz_path(file), NULL, &err)) {
		assert(guess.sure && nr_store_count(w->store) > 0);
		nr_weights_close(w);
	} else assert(err.code && err.detail[0]);
	nr_arena_free(arena);
	return 0;
}
