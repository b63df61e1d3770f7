/* Which instruction set the kernels use: picked once at run time, never at build time.
 *
 * A kernel family NAME is three files: NAME.h declares `struct nr_NAME_kernels` (a table of serial functions) and the
 * public functions; NAME.c holds the plain reference in `real` and the threaded drivers that call through the active
 * table; fast/NAME.c holds the vector code, compiled once per instruction set (NR_ISA), float only. families.def lists
 * them. A fast table may leave entries NULL only if its header says so: every entry is filled. */
#ifndef NR_ISA_H
#define NR_ISA_H

#include "norma/err.h"

enum nr_isa { NR_ISA_PLAIN, NR_ISA_AVX2, NR_ISA_AVX512, NR_ISA_COUNT };

/* The best set that this CPU and this build have; the preset `emulated` (NR_EMULATED) has them all, on any CPU. */
enum nr_isa nr_isa_best(void);
enum nr_isa nr_isa_active(void);
int nr_isa_supported(enum nr_isa);
const char *nr_isa_name(enum nr_isa);    /* "plain" "avx2" "avx512" */
const char *nr_isa_reason(void);         /* why the active one was chosen, one sentence for `norma doctor` */
/* Switches all families. name: one of the names above or "auto". Not to be called while kernels run. */
int nr_isa_select(const char *name, struct nr_error *);

/* Whoever uses a family needs isa.c, whose constructor chooses: a linker takes from libnorma.a only what is named. */
static enum nr_isa (*const nr_isa_needed)(void) __attribute__((used)) = nr_isa_active;

/* Each family: nr_NAME_active points to the table in use (plain before nr_isa_init); set by nr_isa_select. The library
 * constructor selects NORMA_ISA or the best; an unknown NORMA_ISA is reported by nr_isa_reason and by the command. */
#define NR_FAMILY_DECLARE(name)                                                                                        \
	struct nr_##name##_kernels;                                                                                    \
	extern const struct nr_##name##_kernels nr_##name##_plain, nr_##name##_avx2, nr_##name##_avx512;               \
	extern const struct nr_##name##_kernels *nr_##name##_active

#endif
