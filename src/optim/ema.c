/* Moving averages of parameters and buffers: DINO's teacher, weights averaged for evaluation. */
#include "norma/optim.h"

#include "math/update.h"

void nr_ema_step(int64_t count, real *average, const real *value, double keep)
{
	nr_update_ema(count, average, value, keep);
}
