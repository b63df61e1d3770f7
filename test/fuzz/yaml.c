/* Fuzzer: any bytes as a configuration. Must not crash or hang; an error must say where. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct conf {
	char *name;
	struct nr_list norm;
	int64_t steps;
	float rate;
	bool amp;
	int32_t schedule;
	char *data;
};

static const char *const schedules[] = { "constant", "cosine", NULL };
static const struct nr_option top[] = {
	NR_OPT_STRING(struct conf, name, "run", "name"),
	NR_OPT_LIST(struct conf, norm, "normalizations"),
	NR_OPT_END
};
static const struct nr_option train[] = { NR_OPT_INT(struct conf, steps, 100, 1, 1e9, "steps"),
					  NR_OPT_FLOAT(struct conf, rate, 0.1, 0, 10, "rate"),
					  NR_OPT_BOOL(struct conf, amp, "false", "half precision"),
					  NR_OPT_ENUM(struct conf, schedule, "cosine", schedules, "schedule"),
					  { .name = "data",
					    .type = NR_TSTRING,
					    .offset = offsetof(struct conf, data),
					    .size = sizeof(char *),
					    .help = "data" },
					  NR_OPT_END };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_arena *arena = nr_arena_make();
	struct conf c = { 0 };
	nr_option_defaults(top, &c);
	nr_option_defaults(train, &c);
	const struct nr_yaml_section sections[] = { { NULL, top, &c }, { "train", train, &c }, { 0 } };
	struct nr_yaml_errors errors;
	struct nr_error err = { 0 };
	struct nr_str text = { 0 };
	int code = nr_yaml_parse((const char *)data, size, "fuzz.yaml", sections, arena, &errors, &err);
	nr_yaml_errors_text(&errors, &text);
	assert((code == NR_OK) == (errors.count == 0) && code == (int)err.code);
	for (int i = 0; i < errors.count; i++)
		assert(errors.item[i].line >= 1 && errors.item[i].column >= 1 && errors.item[i].text[0]);
	assert(code != NR_OK ||
	       (c.steps >= 1 && c.rate >= 0 && c.rate <= 10 && c.schedule >= 0 && c.schedule < 2));
	nr_yaml_peek((const char *)data, size, "train", "data", arena);
	nr_str_release(&text);
	nr_arena_free(arena);
	return 0;
}
