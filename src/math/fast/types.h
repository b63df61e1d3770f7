/* Vectors of VL floats, which the header of an instruction set defines, and of four; see vec.h. */
#ifndef NR_FAST_TYPES_H
#define NR_FAST_TYPES_H

#include <stdint.h>

#define INL static inline __attribute__((always_inline))

typedef float vf __attribute__((vector_size(VL * 4)));
typedef float vfu __attribute__((vector_size(VL * 4), aligned(4), may_alias)); /* unaligned access */
typedef double vd __attribute__((vector_size(VL * 4)));   /* VL / 2 doubles */
typedef int32_t vi __attribute__((vector_size(VL * 4)));
typedef uint32_t vu __attribute__((vector_size(VL * 4))); /* bits that may wrap */
typedef uint64_t vw __attribute__((vector_size(VL * 4))); /* VL / 2 words of 64 bits */
typedef float v4 __attribute__((vector_size(16)));
typedef float v4u __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t i4 __attribute__((vector_size(16)));
typedef int32_t i8 __attribute__((vector_size(32)));

INL vf ld(const float *p) { return *(const vfu *)p; }
INL void st(float *p, vf v) { *(vfu *)p = v; }
INL v4 ld4(const float *p) { return *(const v4u *)p; }
INL void st4(float *p, v4 v) { *(v4u *)p = v; }

#if VL == 16
#define V_COUNT { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }
#else
#define V_COUNT { 0, 1, 2, 3, 4, 5, 6, 7 }
#endif
INL vi iota(void) { return (vi)V_COUNT; }

#endif
