/* All of libnorma.
 *
 * norma trains and studies transformers with different normalizations on CPUs. To use a trained model, start with trainer.h: weights,
 * pictures to logits, texts to embeddings, whole training runs. To build one, with graph.h: record a graph, plan it once, replay
 * it. nn.h has the layers, norm.h the normalizations, train.h the optimizers. */
#ifndef NORMA_H
#define NORMA_H

#include "norma/data.h"
#include "norma/err.h"
#include "norma/graph.h"
#include "norma/model.h"
#include "norma/nn.h"
#include "norma/norm.h"
#include "norma/option.h"
#include "norma/real.h"
#include "norma/safetensors.h"
#include "norma/tensor.h"
#include "norma/tokenizer.h"
#include "norma/train.h"
#include "norma/trainer.h"

#define NR_VERSION "0.1.0"

/* The version of the library that is linked; NR_VERSION is that of this header. */
NR_API const char *nr_version(void);
/* The largest number of threads that a kernel will use: OMP_NUM_THREADS, or the CPUs of this process. */
NR_API int nr_threads(void);
/* For the first line of main: the program starts once more with GOMP_SPINCOUNT=2000 in its environment, as the command norma does,
 * unless that or OMP_WAIT_POLICY is set. libgomp reads it before main and lets idle threads spin for milliseconds otherwise; on a busy
 * machine small steps then take many times as long. Returns if it was set already, or cannot be. */
NR_API void nr_bound_spin(char *const argv[]);

#endif
