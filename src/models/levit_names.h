/* What LeViT's tensors are called elsewhere. */
#ifndef NR_LEVIT_NAMES_H
#define NR_LEVIT_NAMES_H

#include "norma/model.h"

extern const struct nr_naming nr_levit_namings[];       /* timm, official, huggingface, and the first two as deployed */

#endif
