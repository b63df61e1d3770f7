/* TensorBoard event files: TFRecord frames of Event messages (tensorflow/core/util/event.proto), written by hand.
 *
 *   frame    u64 length, u32 masked CRC-32C of it, the bytes, u32 masked CRC-32C of them; little endian
 *   Event    1: double wall_time   2: int64 step   3: string file_version   5: Summary summary
 *   Summary  1: repeated Value { 1: string tag   2: float simple_value }
 * The first record holds file_version "brain.Event:2". */
#ifndef NR_TENSORBOARD_H
#define NR_TENSORBOARD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "norma/err.h"

struct nr_str;
struct nr_metric;

/* wall: seconds since 1970. */
void nr_tb_begin(struct nr_str *, double wall);
void nr_tb_scalars(struct nr_str *, double wall, int64_t step, const struct nr_metric *, int count);

/* *size: bytes of the records before the first whose step is above `last`. *damaged: the rest is not a record that was
 * merely cut short. Fails only if the file cannot be read. */
int nr_tb_scan(FILE *, const char *path, int64_t last, int64_t *size, bool *damaged, struct nr_error *);

#endif
