/* The kernels of this build's instruction set; see ../isa.h. */
#include "math/fast/vec.h"
#include "math/isa.h"

#define FAMILY(name) extern const struct nr_##name##_kernels NR_FAST(name);
#include "math/families.def"
#undef FAMILY

extern const struct nr_kernel_tables NR_FAST(tables);
const struct nr_kernel_tables NR_FAST(tables) = {
#define FAMILY(name) .name = &NR_FAST(name),
#include "math/families.def"
#undef FAMILY
};
