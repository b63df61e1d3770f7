/* Streams of random numbers (base/rng.h): one per kind of draw; ops add their node's number below. */
#ifndef NR_STREAMS_H
#define NR_STREAMS_H

enum nr_stream { NR_STREAM_INIT = 1 << 24, NR_STREAM_DROPOUT = 2 << 24, NR_STREAM_DROP_PATH = 3 << 24, NR_STREAM_MASK = 4 << 24,
	NR_STREAM_SUBSET = 5 << 24, NR_STREAM_ROTATIONS = 7 << 24, NR_STREAM_BLOCKS = 8 << 24,
	NR_STREAM_ROIS = 11 << 24, NR_STREAM_ANCHORS = 12 << 24 };

#endif
