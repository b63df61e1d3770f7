/* The registry of ops. */
#include "base/registry.h"
#include "norma/nn.h"

#define OP(name) extern const struct nr_op nr_op_##name;
#include "nn/ops.def"
#undef OP

#define OP(name) &nr_op_##name,
static const struct nr_op *const built_in[] = {
#include "nn/ops.def"
	NULL
};
#undef OP

const struct nr_op *const *nr_ops(void) { return NR_REGISTRY(NR_OF_OPS, nr_op, built_in); }
