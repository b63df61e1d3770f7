/* Windows unfolded in vectors: runs are often shorter than what a call of memcpy pays for. See ../patch.h. */
#include "math/patch.h"

#include "math/fast/vec.h"

/* whole, the vectors of a run: a constant once inlined. */
INL void copy_run(const int whole, int64_t run, const float *from, float *to)
{
	int64_t i = 0;
	if (whole >= 0) {
#pragma GCC unroll 4
		for (; i < whole * VL; i += VL) st(to + i, ld(from + i));
	} else {
		for (; i + VL <= run; i += VL) st(to + i, ld(from + i));
	}
	if (i < run) stn(to + i, ldn(from + i, run - i), run - i);
}

INL void windows(const int whole, int64_t n, int64_t kh, int64_t run, int64_t step, const float *const *line, float *out)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t ky = 0; ky < kh; ky++, out += run) {
			if (line[ky]) copy_run(whole, run, line[ky] + i * step, out);
			else
				for (int64_t j = 0; j < run; j++) out[j] = 0;
		}
}

static void unfold(int64_t n, int64_t kh, int64_t run, int64_t step, const float *const *line, float *out)
{
	switch (run / VL) {
	case 0: windows(0, n, kh, run, step, line, out); break;
	case 1: windows(1, n, kh, run, step, line, out); break;
	case 2: windows(2, n, kh, run, step, line, out); break;
	case 3: windows(3, n, kh, run, step, line, out); break;
	default: windows(-1, n, kh, run, step, line, out); break;
	}
}

const struct nr_patch_kernels NR_FAST(patch) = { unfold };
