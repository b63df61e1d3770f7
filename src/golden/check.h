/* What a handler of norma-golden sees: the file, its settings, and comparisons by the file's own tolerances.
 *
 * A handler is `int golden_FORMAT_KIND(struct golden_case *)`, listed in handlers.def. It reads inputs with
 * golden_tensor and friends, computes through libnorma, and hands each result to golden_check or
 * golden_check_ints. It returns GOLDEN_RAN, or GOLDEN_SKIP when it has no code for this variant. A missing or
 * misshapen tensor or setting is recorded as a failure and ends the case (longjmp back to the runner; all
 * memory is the case's arena), so handlers need no checks. Tensors that nobody read or compared are failures
 * too: nothing passes by being overlooked. */
#ifndef GOLDEN_CHECK_H
#define GOLDEN_CHECK_H

#include <jansson.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/real.h"
#include "norma/safetensors.h"

enum { GOLDEN_RAN, GOLDEN_SKIP };

struct golden_case {
	const char *path;
	struct nr_st_file *file;
	struct nr_arena *arena;
	json_t *config;         /* the metadata's `config`; an empty object when there is none */
	bool *seen;             /* per tensor */
	int64_t checks, failures;
	bool verbose;
	FILE *out;
	const char *skipped;    /* why, after GOLDEN_SKIP; may stay NULL */
	jmp_buf leave;
};

#define HANDLER(format, kind) int golden_##format##_##kind(struct golden_case *);
#include "golden/handlers.def"
#undef HANDLER

/* A file of molecules, one line of JSON each. */
void golden_smiles(struct golden_case *);

struct golden_tensor { const char *name; real *x; int64_t n, d[NR_ST_MAXD]; int nd; };
struct golden_ints { const char *name; int32_t *x; int64_t n, d[NR_ST_MAXD]; int nd; };

/* One line of failure; the case goes on. */
void golden_fail(struct golden_case *, const char *tensor, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, and the case ends here. */
_Noreturn void golden_stop(struct golden_case *, const char *tensor, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void *golden_alloc(struct golden_case *, int64_t count, size_t size); /* zeroed, freed with the case */
real *golden_reals(struct golden_case *, int64_t count);

bool golden_has(struct golden_case *, const char *name);
/* nd < 0: any number of dimensions. */
struct golden_tensor golden_tensor(struct golden_case *, int nd, const char *name, ...)
	__attribute__((format(printf, 3, 4)));
struct golden_ints golden_ints(struct golden_case *, int nd, const char *name, ...)
	__attribute__((format(printf, 3, 4)));
/* Demands equality, e.g. of two dimensions. */
void golden_expect(struct golden_case *, bool ok, const char *what);

/* Settings. golden_number and golden_text walk a path of keys "bn.eps"; an absent one ends the case. */
double golden_number(struct golden_case *, const char *path);
double golden_number_or(struct golden_case *, const char *path, double otherwise);
const char *golden_text(struct golden_case *, const char *path);
/* Item i of the list at path. */
double golden_item(struct golden_case *, const char *path, size_t i);
/* Numbers inside a sentence: the first one after `word` ("ratio" in "50 iterations, ratio 0.001"), or before
 * it. */
double golden_after(struct golden_case *, const char *sentence, const char *word);
double golden_before(struct golden_case *, const char *sentence, const char *word);

/* Error of kind ("out", "grad", ...): max|got-want| / max(scale, max|want|) <= tolerance. A kind without
 * tolerance in the file is not compared. name need not exist in the file: optional results are compared when
 * they are there. */
void golden_check(struct golden_case *, const char *kind, const real *got, int64_t n, const char *name, ...)
	__attribute__((format(printf, 5, 6)));
void golden_check_value(struct golden_case *, const char *kind, double got, const char *name, ...)
	__attribute__((format(printf, 4, 5)));
/* Whole numbers: equal or not. */
void golden_check_ints(struct golden_case *, const int32_t *got, int64_t n, const char *name, ...)
	__attribute__((format(printf, 4, 5)));

#endif
