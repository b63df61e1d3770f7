/* What the ranks of one training have to agree on: that they do the same, when one fails, when to stop. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/optdoc.h"
#include "math/isa.h"
#include "norma/version.h"
#include "train/trainer.h"

/* ---- at the start ------------------------------------------------------------------------------------------------------------- */

enum { PROGRAM, ISA, SETTINGS, DATA, EVAL_DATA, WEIGHTS, STEP, SAMES };
static const struct { const char *what, *hint; } sames[SAMES] = {
	[PROGRAM] = { "runs another program", "install the same build of norma on all hosts" },
	[ISA] = { "has another instruction set", "set NORMA_ISA to one that all CPUs have" },
	[SETTINGS] = { "has other settings", "give all ranks the same recipe and flags" },
	[DATA] = { "has other training data", "copy the data of one host to the others, or share them" },
	[EVAL_DATA] = { "has other evaluation data", "copy the data of one host to the others, or share them" },
	[WEIGHTS] = { "starts from other weights", "let all hosts see the same files" },
	[STEP] = { "resumes at another step", "let all hosts see the same run directory" },
};

/* A checksum of the program itself; 0 where it cannot be read. */
static uint32_t program(void)
{
	static char block[1 << 16];
	FILE *f = fopen("/proc/self/exe", "rb");
	uint32_t crc = nr_crc32c(0, NR_VERSION, strlen(NR_VERSION));
	for (size_t n; f && (n = fread(block, 1, sizeof block, f)) > 0;) crc = nr_crc32c(crc, block, n);
	if (f) fclose(f);
	return crc;
}

/* Without what may differ from host to host. */
static uint32_t settings(const struct nr_trainer *t)
{
	struct nr_str yaml = { 0 };
	struct nr_train c = nr_trainer_asked(t);
	static char none[] = "";
	c.out = c.store = c.data_root = none;
	c.workers = 1, c.microscope = c.gradients = 0;
	nr_option_yaml(nr_train_options(c.task), &c, 0, &yaml);
	const uint32_t crc = nr_crc32c(0, nr_str_text(&yaml), yaml.len);
	nr_str_release(&yaml);
	return crc;
}

static uint32_t text_crc(const char *text) { return nr_crc32c(0, text, strlen(text)); }

static void fill(const struct nr_trainer *t, uint32_t *same)
{
	int64_t n;
	const real *values = nr_store_values(t->w.store, &n);
	same[PROGRAM] = program();
	same[ISA] = text_crc(nr_isa_name(nr_isa_active()));
	same[SETTINGS] = settings(t);
	same[DATA] = text_crc(t->origin.data);
	same[EVAL_DATA] = text_crc(t->origin.eval_data);
	same[WEIGHTS] = nr_crc32c(0, values, (size_t)n * sizeof *values);
	same[STEP] = (uint32_t)t->state.step;
}

int nr_trainer_agree(struct nr_trainer *t, struct nr_error *err)
{
	struct nr_comm *c = t->c.comm;
	uint32_t mine[SAMES], *all = c ? nr_arena_alloc(t->arena, (size_t)nr_comm_size(c) * sizeof mine) : NULL;
	if (!c) return NR_OK;
	if (!all) return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	fill(t, mine);
	if (nr_comm_meet(c, true, err) || nr_comm_gather(c, mine, sizeof mine, all, err)) return err->code;
	for (int i = 0; i < SAMES; i++)
		for (int r = 1; r < nr_comm_size(c); r++)
			if (all[r * SAMES + i] != all[i]) {
				nr_comm_agreed(c);
				nr_fail(err, NR_EVALUE, "cannot train on these ranks", NULL, "rank %d on %s %s than rank 0 on %s", r,
					nr_comm_host(c, r), sames[i].what, nr_comm_host(c, 0));
				return nr_hint(err, "%s", sames[i].hint);
			}
	return NR_OK;
}

/* ---- in a step ------------------------------------------------------------------------------------------------------------------- */

/* Which rank said it; -1: none. */
static int who_said(const struct nr_shards *s, int what)
{
	for (int64_t i = 0; i < s->count; i++)
		if (s->all[i * NR_SHARD_SAYS + what] != 0) return (int)(i / s->local);
	return -1;
}

static int take_error(struct nr_trainer *t, int rank, struct nr_error *err)
{
	struct nr_comm *c = t->c.comm;
	struct nr_error *all = malloc((size_t)nr_comm_size(c) * sizeof *all);
	if (!all) return nr_fail(err, NR_EMEMORY, "cannot go on", NULL, "out of memory");
	struct nr_error mine = *err;
	if (!nr_comm_gather(c, &mine, sizeof mine, all, err)) {
		*err = all[rank];
		const size_t end = strlen(err->detail);
		snprintf(err->detail + end, sizeof err->detail - end, " (rank %d on %s)", rank, nr_comm_host(c, rank));
		nr_comm_agreed(c);
	}
	free(all);
	return err->code;
}

/* Are the weights still the same everywhere? What the last update was like tells, for nothing. */
static int compare_steps(struct nr_trainer *t, struct nr_error *err)
{
	const struct nr_shards *s = &t->shards;
	for (int64_t i = s->local; i < s->count; i += s->local) {
		if (!memcmp(&s->all[i * NR_SHARD_SAYS + NR_SAID_CHECK], &s->all[NR_SAID_CHECK], sizeof *s->all)) continue;
		const int r = (int)(i / s->local);
		nr_comm_agreed(t->c.comm);
		nr_fail(err, NR_EVALUE, "cannot go on", t->c.out, "rank %d on %s had another gradient in step %lld than rank 0 on %s", r,
			nr_comm_host(t->c.comm, r), (long long)t->state.step, nr_comm_host(t->c.comm, 0));
		return nr_hint(err, "its memory or its libraries differ; the last checkpoint is intact");
	}
	return NR_OK;
}

int nr_trainer_share_error(struct nr_trainer *t, int code, struct nr_error *err)
{
	struct nr_shards *s = &t->shards;
	s->said[NR_SAID_BAD] = code != 0;
	s->said[NR_SAID_STOP] = t->stopping;
	s->said[NR_SAID_CHECK] = t->last_norm;
	if (code && !t->c.comm) return code;
	if (nr_shards_tell(s, err)) return err->code;
	const int bad = who_said(s, NR_SAID_BAD);
	if (bad >= 0) return take_error(t, bad, err);
	return compare_steps(t, err);
}

bool nr_trainer_stops(const struct nr_trainer *t) { return t->c.comm ? who_said(&t->shards, NR_SAID_STOP) >= 0 : t->stopping; }

/* ---- for people --------------------------------------------------------------------------------------------------------------------- */

/* "4 on a, b" */
static void add_hosts(const struct nr_comm *c, struct nr_str *s)
{
	const char *before = "";
	nr_str_printf(s, "%d on", nr_comm_size(c));
	for (int r = 0, shown = 0; r < nr_comm_size(c); before = nr_comm_host(c, r++)) {
		if (!strcmp(before, nr_comm_host(c, r))) continue;
		if (shown++ == 8) {
			nr_str_add(s, ", ...");
			break;
		}
		nr_str_printf(s, "%s %s", shown > 1 ? "," : "", nr_comm_host(c, r));
	}
}

void nr_trainer_describe_ranks(const struct nr_trainer *t, struct nr_str *s)
{
	const struct nr_shards *h = &t->shards;
	if (t->c.comm) {
		nr_str_add(s, "ranks             ");
		add_hosts(t->c.comm, s);
		nr_str_printf(s, ", %s\n", nr_comm_library(t->c.comm));
	}
	if (h->count == 1) return;
	nr_str_printf(s, "shards            %lld of %lld samples, summed by a fixed tree; ", (long long)h->count, (long long)t->c.batch);
	if (t->c.compress && t->c.comm) nr_str_add(s, "exact for this number of ranks: gradients travel as bf16\n");
	else if (t->c.shards)
		nr_str_printf(s, "exact: equal bits on 1 to %lld ranks (powers of two) and any number of threads\n",
			(long long)h->count);
	else nr_str_add(s, "exact for this number of ranks, on any number of threads;\n"
			   "                  another number rounds otherwise (--shards N fixes it)\n");
}
