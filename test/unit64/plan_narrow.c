/* The same in double: sums in another order differ by 1e-13 at most. */
#include "unit/plan_narrow.c"
