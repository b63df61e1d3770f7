/* What the linked library is. Declared for users in norma/norma.h, the umbrella, which no file of the library includes. */
#include <omp.h>

#include "norma/real.h"
#include "norma_build.h"

NR_API const char *nr_version(void);
NR_API int nr_threads(void);

const char *nr_version(void)
{
	return NR_VERSION;
}

int nr_threads(void)
{
	return omp_get_max_threads();
}
