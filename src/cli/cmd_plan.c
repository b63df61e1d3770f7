/* norma plan CASE: what a step runs, what it costs and who holds the memory. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/table.h"
#include "bench/bench.h"
#include "cli.h"
#include "norms/choice.h"
#include "plan_ranks.h"

struct plan {
	bool instructions, rebuild, infer, narrow, fuse, sites, json, tiny;
	struct nr_norm_choice norms;
	struct cli_ranks ranks;
};

static const struct nr_option options[] = {
	NR_OPT_BOOL(struct plan, instructions, "0", "list every instruction with its shape and FLOPs"),
	NR_OPT_BOOL(struct plan, rebuild, "0", "save memory by recomputing cheap outputs in backward"),
	NR_OPT_BOOL(struct plan, infer, "0", "plan inference, as CASE/infer"),
	NR_OPT_BOOL(struct plan, narrow, "1", "compute only the leading tokens that the loss reads"),
	NR_OPT_BOOL(struct plan, fuse, "1", "fuse pairs of ops"),
	NR_OPT_NORMS(struct plan, norms),
	NR_OPT_BOOL(struct plan, sites, "0", "list the model's sites and the norm at each"),
	NR_OPT_BOOL(struct plan, tiny, "0", "the very small version of the case"),
	CLI_RANKS_OPTIONS(struct plan, ranks),
	NR_OPT_BOOL(struct plan, json, "0", "print one line of JSON"),
	NR_OPT_END
};

static void words(struct nr_str *s)
{
	for (const struct bench_case *c = bench_cases; c->name; c++)
		nr_str_printf(s, "%s/train\n%s/infer\n", c->name, c->name);
}

static int print_json(const struct bench *b, struct nr_error *err)
{
	const struct nr_plan_stats s = nr_plan_stats(b->plan);
	char name[128];
	json_t *r = json_object();
	json_object_set_new(r, "case", json_string(bench_target_text(&b->target, name, sizeof name)));
	json_object_set_new(r, "instructions", json_integer(s.instructions));
	json_object_set_new(r, "forward", json_integer(s.forward));
	json_object_set_new(r, "backward", json_integer(s.backward));
	json_object_set_new(r, "narrowed", json_integer(s.narrowed));
	json_object_set_new(r, "fused", json_integer(s.fused));
	json_object_set_new(r, "rebuilt", json_integer(s.rebuilt));
	json_object_set_new(r, "aliased", json_integer(s.aliased));
	json_object_set_new(r, "arena_bytes", json_integer(s.arena_bytes));
	json_object_set_new(r, "scratch_bytes", json_integer(s.scratch_bytes));
	json_object_set_new(r, "no_reuse_bytes", json_integer(s.no_reuse_bytes));
	json_object_set_new(r, "params", json_integer(s.param_count));
	json_object_set_new(r, "buffers", json_integer(s.buffer_count));
	json_object_set_new(r, "forward_gflop", json_real(s.forward_flops * 1e-9));
	json_object_set_new(r, "backward_gflop", json_real(s.backward_flops * 1e-9));
	json_object_set_new(r, "left_out_gflop", json_real(s.left_out_flops * 1e-9));
	return bench_json_line(stdout, r, err);
}

static int64_t norm_params(const struct bench *b, const char *site)
{
	int64_t params = 0;
	for (int64_t i = 0; i < nr_store_count(b->store); i++) {
		const struct nr_entry *e = nr_store_at(b->store, i);
		const size_t n = strlen(site);
		if (!e->buffer && !strncmp(e->name, site, n) && e->name[n] == '.') params += e->count;
	}
	return params;
}

static int print_sites(const struct bench *b, bool json, struct nr_error *err)
{
	int64_t count;
	const struct nr_site *site = nr_sites(b->net, &count);
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "site", NR_LEFT);
	nr_table_column(t, "norm", NR_LEFT);
	nr_table_column(t, "parameters", NR_RIGHT);
	nr_table_column(t, "rule", NR_LEFT);
	for (int64_t i = 0; i < count; i++) {
		const int64_t params = site[i].norm ? norm_params(b, site[i].name) : 0;
		if (json) {
			json_t *r = json_pack("{s:s, s:s?, s:I, s:s?}", "site", site[i].name, "norm", site[i].norm, "params", params,
				"rule", site[i].rule);
			if (bench_json_line(stdout, r, err)) break;
			continue;
		}
		nr_table_cell(t, "%s", site[i].name);
		nr_table_cell(t, "%s", site[i].norm ? site[i].norm : "-");
		nr_table_cell(t, "%lld", (long long)params);
		nr_table_cell(t, "%s", site[i].rule ? site[i].rule : "-");
	}
	struct nr_str text = { 0 };
	if (!json) nr_table_text(t, &text);
	fputs(nr_str_text(&text), stdout);
	nr_str_release(&text);
	nr_table_free(t);
	return err->code;
}

static unsigned flags_of(const struct plan *o)
{
	return (o->rebuild ? NR_PLAN_REBUILD : 0u) | (o->narrow ? 0u : NR_PLAN_NO_NARROW) | (o->fuse ? 0u : NR_PLAN_NO_FUSE);
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct plan *o = conf;
	if (args->count != 1) {
		cli_usage(c, "plan needs one case, not %d", (int)args->count);
		return nr_hint(c->err, "norma plan --help");
	}
	struct bench_target t;
	if (bench_target_parse(&t, args->item[0], o->tiny, c->err)) return c->err->code;
	if (o->infer) t.train = false;
	if (o->ranks.ranks && !t.train) return cli_usage(c, "--ranks is for training, not for %s", args->item[0]);
	t.norm = nr_norm_choice_text(&o->norms, c->arena);
	struct bench *b;
	if (bench_open(&b, &t, flags_of(o), c->err))
		return c->err->code;
	int code = NR_OK;
	if (o->ranks.ranks) {
		code = cli_ranks_print(b, &o->ranks, o->json, c->err);
	} else if (o->sites) {
		code = print_sites(b, o->json, c->err);
	} else if (o->json) {
		code = print_json(b, c->err);
	} else {
		char name[128];
		printf("%s%s%s: %s\n", cli_bold(), bench_target_text(&t, name, sizeof name), cli_plain(), t.of->title);
		nr_plan_print(b->plan, stdout, o->instructions);
	}
	bench_close(b);
	return code;
}

const struct cli_command cli_plan = {
	.name = "plan",
	.title = "instructions, memory and FLOPs of a case",
	.usage = "CASE",
	.about = "Records the case, plans it and prints the number of instructions, parameters, FLOPs, the planned memory, and what\n"
		 "is alive at its peak. Nothing is run. Cases are those of `norma bench step`; CASE alone means CASE/train. Other\n"
		 "norms come from --norm, --placement, --patch-norm and --residual; --sites shows where.\n"
		 "\n"
		 "--ranks K predicts time, memory and traffic of a step on 2, 4, ... and K ranks of MPI, each with the case's batch, from\n"
		 "a model of the network (--latency, --bandwidth) and of a rank (--gflops, or --step: the time that `norma bench step\n"
		 "CASE` measured). docs/scaling.md has the formulas and how well they hold.",
	.conf_size = sizeof(struct plan),
	.options = options,
	.words = words,
	.run = run,
};
