/* norma plan CASE --ranks K: a step on several ranks, on paper. */
#ifndef NR_CLI_PLAN_RANKS_H
#define NR_CLI_PLAN_RANKS_H

#include "bench/bench.h"
#include "norma/option.h"
#include "train/scaling.h"

struct cli_ranks {
	int64_t ranks, shards;
	double bandwidth, latency, gflops, step, memory, bucket, steal, jitter;
	int32_t reduce;
	bool overlap, bf16, sync;
};
#define CLI_RANKS_ROW(S, f, type_, name_, def, lo, hi, help_)                                                                           \
	{ .name = #name_, .type = type_, .offset = offsetof(S, f.name_), .size = NR_FIELD_SIZE(S, f.name_), .text = def, .min = lo,     \
	  .max = hi, .help = help_ }
#define CLI_RANKS_OPTIONS(S, f)                                                                                                         \
	CLI_RANKS_ROW(S, f, NR_TINT, ranks, "0", 0, 1000000, "predict steps on up to so many ranks of MPI"),                            \
	CLI_RANKS_ROW(S, f, NR_TFLOAT, bandwidth, "1.25", 1e-6, 1e6, "of a rank's link, each way, in GB/s; 1.25: 10 Gbit Ethernet"),    \
	CLI_RANKS_ROW(S, f, NR_TFLOAT, latency, "20", 0, 1e9, "of a message, in microseconds"),                                         \
	CLI_RANKS_ROW(S, f, NR_TFLOAT, gflops, "100", 1e-3, 1e9, "useful rate of a rank's threads, in GFLOP/s"),                        \
	CLI_RANKS_ROW(S, f, NR_TFLOAT, step, "0", 0, 1e9, "time of a step on one rank, in ms, if it was measured; 0: by --gflops"),     \
	CLI_RANKS_ROW(S, f, NR_TFLOAT, memory, "10", 1e-3, 1e6, "rate at which a rank reads and writes memory, in GB/s"),               \
	{ .name = "reduce", .type = NR_TENUM, .offset = offsetof(S, f.reduce), .size = NR_FIELD_SIZE(S, f.reduce), .text = "halving",   \
	  .choices = nr_reduce_names, .help = "how gradients are summed: halving is what norma does" },                                 \
	CLI_RANKS_ROW(S, f, NR_TBOOL, overlap, "0", 0, 0, "send buckets of gradients while backward goes on"),                          \
	CLI_RANKS_ROW(S, f, NR_TFLOAT, bucket, "4", 1e-3, 1e6, "size of one, in MiB"),                                                  \
	CLI_RANKS_ROW(S, f, NR_TFLOAT, steal, "0", 0, 1, "share of its time that backward loses while a bucket travels"),               \
	CLI_RANKS_ROW(S, f, NR_TBOOL, bf16, "0", 0, 0, "gradients travel as bf16"),                                                     \
	CLI_RANKS_ROW(S, f, NR_TBOOL, sync, "0", 0, 0, "batch statistics are of the batch of all ranks (sync=1)"),                      \
	CLI_RANKS_ROW(S, f, NR_TINT, shards, "1", 1, 4096, "logical shards of each rank"),                                              \
	CLI_RANKS_ROW(S, f, NR_TFLOAT, jitter, "0", 0, 10, "standard deviation of a rank's time, as a share of it")

int cli_ranks_print(const struct bench *, const struct cli_ranks *, bool json, struct nr_error *);

#endif
