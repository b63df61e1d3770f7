/* Which instruction set the kernels use: picked once at run time, never at build time.
 *
 * A kernel family NAME is three files: NAME.h declares `struct nr_NAME_kernels` (a table of serial functions) and the
 * public functions; NAME.c holds the plain reference in `real` and the threaded drivers that call through the active
 * table; fast/NAME.c holds the vector code, compiled once per instruction set (NR_ISA), float only. families.def lists
 * them. A fast table may leave entries NULL only if its header says so: every entry is filled.
 *
 * An instruction set NAME is a header, fast/vec_NAME.h, and a line of sets.def: enum, names, flags of the build, detection, options and
 * tests follow from that list. */
#ifndef NR_ISA_H
#define NR_ISA_H

#include "norma/err.h"

/* Those of this processor, slower ones first. A build without fast/ (NR_NO_FAST) has the plain kernels alone. */
#if defined __x86_64__ && !defined NR_NO_FAST
#define NR_SETS_x86_64(...) __VA_ARGS__
#else
#define NR_SETS_x86_64(...)
#endif
#if defined __aarch64__ && !defined NR_NO_FAST
#define NR_SETS_aarch64(...) __VA_ARGS__
#else
#define NR_SETS_aarch64(...)
#endif
enum nr_isa {
	NR_ISA_PLAIN,
#define SET(processor, name, flags, has) NR_SETS_##processor(NR_ISA_##name,)
#include "math/sets.def"
#undef SET
	NR_ISA_COUNT
};

/* The best set that this CPU and this build have; the preset `emulated` (NR_EMULATED) has them all, on any CPU. */
enum nr_isa nr_isa_best(void);
enum nr_isa nr_isa_active(void);
int nr_isa_supported(enum nr_isa);
const char *nr_isa_name(enum nr_isa);    /* "plain" or a name in sets.def */
extern const char *const nr_isa_choices[NR_ISA_COUNT + 2];   /* "auto" and the names, then NULL */
const char *nr_isa_reason(void);         /* why the active one was chosen, one sentence for `norma doctor` */
/* Switches all families. name: one of the names above or "auto". Not to be called while kernels run. */
int nr_isa_select(const char *name, struct nr_error *);

/* Whoever uses a family needs isa.c, whose constructor chooses: a linker takes from libnorma.a only what is named. */
static enum nr_isa (*const nr_isa_needed)(void) __attribute__((used)) = nr_isa_active;

/* Each family: nr_NAME_active points to the table in use (plain before nr_isa_init); set by nr_isa_select. The library
 * constructor selects NORMA_ISA or the best; an unknown NORMA_ISA is reported by nr_isa_reason and by the command. */
#define NR_FAMILY_DECLARE(name)                                                                                        \
	struct nr_##name##_kernels;                                                                                    \
	extern const struct nr_##name##_kernels nr_##name##_plain;                                                     \
	extern const struct nr_##name##_kernels *nr_##name##_active

/* The kernels of one set, in the order of families.def. */
#define FAMILY(name) struct nr_##name##_kernels;
#include "math/families.def"
#undef FAMILY
struct nr_kernel_tables {
#define FAMILY(name) const struct nr_##name##_kernels *name;
#include "math/families.def"
#undef FAMILY
};

#endif
