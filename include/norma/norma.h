/* All of libnorma, which trains and studies transformers with different normalizations on CPUs. Who reads what:
 *
 *   using a model     infer.h: weights, then pictures to classes, texts to embeddings, molecules to properties
 *   training          trainer.h: whole runs, as the command makes them
 *   building a model  graph.h: record, plan, replay; nn.h: layers; norm.h: norms and where they sit; optim.h: optimizers
 *
 * Example:
 *   printf("norma %s, %d threads\n", nr_version(), nr_threads());
 */
#ifndef NORMA_H
#define NORMA_H

#include "norma/arena.h"
#include "norma/data.h"
#include "norma/err.h"
#include "norma/graph.h"
#include "norma/infer.h"
#include "norma/model.h"
#include "norma/nn.h"
#include "norma/norm.h"
#include "norma/optim.h"
#include "norma/option.h"
#include "norma/patch.h"
#include "norma/picture.h"
#include "norma/real.h"
#include "norma/safetensors.h"
#include "norma/task.h"
#include "norma/tensor.h"
#include "norma/tokenizer.h"
#include "norma/trainer.h"
#include "norma/version.h"

/* The largest number of threads that a kernel will use: OMP_NUM_THREADS, or the CPUs of this process. */
NR_API int nr_threads(void);
/* For the first line of main: the program starts once more with GOMP_SPINCOUNT=2000 in its environment, as the command norma does,
 * unless that or OMP_WAIT_POLICY is set. libgomp reads it before main and lets idle threads spin for milliseconds otherwise; on a busy
 * machine small steps then take many times as long. Returns if it was set already, or cannot be. */
NR_API void nr_bound_spin(char *const argv[]);

#endif
