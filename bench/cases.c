/* The named cases and how they are asked for. */
#include <string.h>

#include "base/str.h"
#include "bench.h"

#define SIZE(...) { __VA_ARGS__ }
#define CASE(name_, model_, title_, peer_, full_, tiny_)                                                               \
	{ .name = #name_, .title = title_, .peer = peer_, .model = &bench_##model_, .full = full_, .tiny = tiny_ },
const struct bench_case bench_cases[] = {
#include "cases.def"
	{ .name = NULL },
};
#undef CASE
#undef SIZE

bool bench_is_latency(const struct bench_case *c) { return c->full.batch == 1; }

static int unknown(const char *name, size_t length, const char *task, struct nr_error *err)
{
	char word[128], list[512] = "";
	snprintf(word, sizeof word, "%.*s", (int)length, name);
	struct nr_near near = { .word = word };
	size_t used = 0;
	for (const struct bench_case *c = bench_cases; c->name; c++) {
		nr_near_try(&near, c->name);
		if (used < sizeof list)
			used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", c->name);
	}
	nr_fail(err, NR_ENAME, "unknown case", name, "there are %s, each with /train or /infer", list);
	if (near.best) nr_hint(err, "did you mean '%s%s'?", near.best, task);
	return NR_ENAME;
}

int bench_target_parse(struct bench_target *t, const char *text, bool tiny, struct nr_error *err)
{
	const char *slash = strchr(text, '/'), *task = slash ? slash : "";
	const size_t n = slash ? (size_t)(slash - text) : strlen(text);
	const bool infer = !strcmp(task, "/infer"), train = !strcmp(task, "/train") || !slash;
	for (const struct bench_case *c = bench_cases; c->name; c++) {
		if (strlen(c->name) != n || memcmp(c->name, text, n)) continue;
		if (!infer && !train) {
			static const char *const tasks[] = { "train", "infer", NULL };
			const char *near = nr_nearest(task + 1, tasks);
			nr_fail(err, NR_ENAME, "unknown task", text, "a case has the tasks /train and /infer");
			if (near) nr_hint(err, "did you mean '%s/%s'?", c->name, near);
			return NR_ENAME;
		}
		*t = (struct bench_target){ .of = c, .size = tiny ? &c->tiny : &c->full, .train = train, .tiny = tiny };
		return NR_OK;
	}
	return unknown(text, n, infer || (slash && train) ? task : "", err);
}

const char *bench_target_text(const struct bench_target *t, char *buf, size_t size)
{
	snprintf(buf, size, "%s/%s", t->of->name, t->train ? "train" : "infer");
	return buf;
}
