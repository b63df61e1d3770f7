/* For every caller: nr_real, the one floating-point type of the library. float; double in libnorma64, which checks gradients. */
#ifndef NORMA_REAL_H
#define NORMA_REAL_H

#include <math.h>
#include <stdint.h>

#ifdef NR_DOUBLE
typedef double nr_real;
#define nr_sqrt sqrt
#define nr_exp exp
#define nr_log log
#define nr_tanh tanh
#define nr_erf erf
#define nr_fabs fabs
#define nr_pow pow
#else
typedef float nr_real;
#define nr_sqrt sqrtf
#define nr_exp expf
#define nr_log logf
#define nr_tanh tanhf
#define nr_erf erff
#define nr_fabs fabsf
#define nr_pow powf
#endif

/* A kernel's result: written, or added to what is there. */
static inline void nr_put(nr_real *y, nr_real v, int add) { *y = add ? *y + v : v; }

#define NR_DATA __attribute__((visibility("default")))    /* extern NR_DATA const ...: tables */
#ifdef __cplusplus
#define NR_API extern "C" __attribute__((visibility("default")))
#else
#define NR_API __attribute__((visibility("default")))
#endif

#endif
