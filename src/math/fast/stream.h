/* Stores past the caches, in whole lines; see math/stream.h. After the last one a thread calls stream_end, because they are
 * not ordered with what it then tells other threads. */
#ifndef NR_FAST_STREAM_H
#define NR_FAST_STREAM_H

#include "math/fast/vec.h"

/* Whether every row of y (rows,C) is made of whole lines. */
INL int stream_fits(int64_t C, const float *y, int64_t ldy) { return !((uintptr_t)y & 63) && !(C & 15) && !(ldy & 15); }

/* n values, VL of them if they stream; an ordinary store otherwise. */
INL void st_by(int stream, float *p, vf v, int64_t n)
{
	if (stream) stream_st(p, v);
	else if (n == VL) st(p, v);
	else stn(p, v, n);
}

#endif
