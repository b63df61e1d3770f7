/* What the linked library is. nr_threads is declared for users in norma/norma.h, the umbrella, which no file of the library includes. */
#include <omp.h>

#include "norma/version.h"

NR_API int nr_threads(void);

const char *nr_version(void) { return NR_VERSION; }

int nr_version_number(void) { return NR_VERSION_NUMBER; }

int nr_threads(void) { return omp_get_max_threads(); }
