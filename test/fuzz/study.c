/* Fuzzer: any bytes as a study file. Must not crash or hang; an error must say where; what is accepted has a text form that is the
 * same study. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/str.h"
#include "study/study.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct conf { char *data, *norm, *out; double lr; int64_t seed; struct nr_list tag; bool json; };
static const struct nr_option train[] = {
	NR_OPT_STRING(struct conf, data, "", "data"),
	NR_OPT_STRING(struct conf, norm, "", "norm"),
	NR_OPT_STRING(struct conf, out, "", "out"),
	NR_OPT_FLOAT(struct conf, lr, 1e-3, 0, 1, "rate"),
	NR_OPT_INT(struct conf, seed, 0, 0, 9e15, "seed"),
	NR_OPT_LIST(struct conf, tag, "tags"),
	NR_OPT_END
};
static const struct nr_option probe[] = { NR_OPT_FLOAT(struct conf, lr, 1e-3, 0, 1, "rate"), NR_OPT_BOOL(struct conf, json, "0", "JSON"),
	NR_OPT_END };
static const struct nr_study_command commands[] = {
	{ "train", train, sizeof(struct conf), false, true },
	{ "probe", probe, sizeof(struct conf), true, false },
	{ NULL, NULL, 0, false, false },
};

static int read(struct nr_study *s, const char *text, size_t size, struct nr_arena *arena)
{
	struct nr_yaml_errors errors = { 0 };
	struct nr_error err = { 0 };
	const int code = nr_study_parse(s, text, size, "fuzz.yaml", commands, arena, &errors, &err);
	assert((code == NR_OK) == (err.code == NR_OK));
	for (int i = 0; i < errors.count; i++) assert(errors.item[i].line >= 1 && errors.item[i].column >= 1 && errors.item[i].text[0]);
	return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_arena *arena = nr_arena_make();
	struct nr_study s, again;
	struct nr_str text = { 0 };
	if (arena && !read(&s, (const char *)data, size, arena) && s.arms <= 100) {
		assert(s.arms > 0 && s.seeds > 0 && s.stages > 0 && s.first < s.arms);
		nr_study_text(&s, &text);
		const int code = read(&again, nr_str_text(&text), text.len, arena);
		assert(!code && again.arms == s.arms && again.seeds == s.seeds && again.first == s.first);
	}
	nr_str_release(&text);
	nr_arena_free(arena);
	return 0;
}
