/* Fuzzer: any text as a norm plan. What is accepted can be matched against any site, also one of the text's own making. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "norms/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t of(const void *context, int64_t at)
{
	(void)context;
	return at % 3 ? 12 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_norm_plan *plan = calloc(1, sizeof *plan);
	struct nr_error err = { 0 };
	char *text = strndup((const char *)data, size < 8192 ? size : 8192);
	plan->arena = nr_arena_make();
	plan->defaults.norm = "layer";
	plan->defaults.placement = "pre";
	plan->sites[plan->n_sites++] = "attn.in";
	plan->sites[plan->n_sites++] = "mlp.in";
	const int e = nr_norm_plan_parse(plan, text, &err);
	assert(e == (int)err.code && (!e || err.what[0] || err.detail[0]));
	for (int i = 0; !e && i < plan->rules; i++) {
		const char *names[] = { "blocks[3].attn.in", "final", plan->rule[i].text };
		for (int k = 0; k < 3; k++) {
			const char *dot = strchr(names[k], '.');
			const struct nr_site_name site = { names[k], dot ? dot + 1 : names[k], of, NULL };
			nr_pattern_match(plan, plan->rule[i].pattern, &site);
		}
	}
	nr_pattern_check(text, NULL);
	nr_arena_free(plan->arena);
	free(plan);
	free(text);
	return 0;
}
