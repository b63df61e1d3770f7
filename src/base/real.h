/* The library's own word for its floating-point type; the installed headers say nr_real. */
#ifndef NR_REAL_H
#define NR_REAL_H

#include "norma/real.h"

typedef nr_real real;

#endif
