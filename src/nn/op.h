/* What files of nn share: the public builders as plain functions, and their op declarations. */
#ifndef NR_NN_OP_H
#define NR_NN_OP_H

#define NR_INSIDE_NN
#include "norma/nn.h"

#define OP(name) extern const struct nr_op nr_op_##name;
#include "nn/ops.def"
#undef OP

#endif
