/* What a task at work needs beside norma/task.h. One file in src/tasks, one line in tasks.def. */
#ifndef NR_TASK_H
#define NR_TASK_H

#include "base/str.h"
#include "infer/evaluate.h"
#include "norma/safetensors.h"
#include "norma/trainer.h"

#endif
