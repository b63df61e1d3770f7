/* Fuzzer: any text as `key=value,...` and, cut at newlines, as command line arguments. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/args.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct conf {
	bool affine;
	int32_t depth;
	int64_t steps;
	float eps;
	double rate;
	char *out;
	int32_t init;
	struct nr_list norm;
};

static const char *const inits[] = { "zeros", "ones", "normal", NULL };
static const struct nr_option table[] = { NR_OPT_BOOL(struct conf, affine, "true", "learn scale and shift"),
					  NR_OPT_INT(struct conf, depth, 12, 1, 1000, "blocks"),
					  NR_OPT_INT(struct conf, steps, -1, -1, INFINITY, "steps"),
					  NR_OPT_FLOAT(struct conf, eps, 1e-6, 0, 1, "epsilon"),
					  NR_OPT_FLOAT(struct conf, rate, 0.001, -INFINITY, INFINITY, "rate"),
					  { .name = "out",
					    .type = NR_TSTRING,
					    .offset = offsetof(struct conf, out),
					    .size = sizeof(char *),
					    .text = "run",
					    .help = "where results go",
					    .letter = 'o' },
					  NR_OPT_ENUM(struct conf, init, "normal", inits, "start"),
					  NR_OPT_LIST(struct conf, norm, "normalization"),
					  NR_OPT_END };

/* Whatever came in, fields are in range and their text is read back as the same value. */
static void check(const struct conf *c, struct nr_arena *arena)
{
	assert(c->depth >= 1 && c->depth <= 1000 && c->steps >= -1 && c->eps >= 0 && c->eps <= 1);
	assert(c->rate == c->rate && c->init >= 0 && c->init < 3);
	struct conf again;
	nr_option_defaults(table, &again);
	for (const struct nr_option *o = table; o->name; o++) {
		char buf[64];
		if (o->type == NR_TSTRING || o->type == NR_TLIST)
			continue;
		assert(nr_option_set(table, &again, o->name, nr_option_text(o, c, buf, sizeof buf), arena,
				     NULL) == NR_OK);
	}
	assert(again.steps == c->steps && again.eps == c->eps && again.rate == c->rate &&
	       again.affine == c->affine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_arena *arena = nr_arena_make();
	char *text = nr_arena_alloc(arena, size + 1), *argv[64];
	struct nr_error err = { 0 };
	struct nr_list rest = { 0 };
	struct conf c;
	if (size)
		memcpy(text, data, size);
	nr_option_defaults(table, &c);
	assert(nr_option_parse(table, &c, text, arena, &err) == (int)err.code);
	check(&c, arena);
	int argc = 0;
	for (char *s = text; s && argc < 64;) {
		char *end = strchr(s, '\n');
		if (end)
			*end++ = 0;
		argv[argc++] = s;
		s = end;
	}
	nr_option_defaults(table, &c);
	err = (struct nr_error){ 0 };
	assert(nr_args_parse(table, &c, argc, argv, &rest, arena, &err) == (int)err.code);
	check(&c, arena);
	char line[256];
	nr_error_text(&err, line, sizeof line);
	nr_arena_free(arena);
	return 0;
}
