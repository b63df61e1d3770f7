/* Instruction sets: what the CPU and the operating system allow, and the switch over all kernel families. */
#include "math/isa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAMILY(name) NR_FAMILY_DECLARE(name);
#include "math/families.def"
#undef FAMILY
#define SET(processor, name, flags, has) NR_SETS_##processor(extern const struct nr_kernel_tables nr_tables_##name;)
#include "math/sets.def"
#undef SET

static const struct nr_kernel_tables plain = {
#define FAMILY(name) .name = &nr_##name##_plain,
#include "math/families.def"
#undef FAMILY
};
static const struct nr_kernel_tables *const tables[NR_ISA_COUNT] = {
	&plain,
#define SET(processor, name, flags, has) NR_SETS_##processor(&nr_tables_##name,)
#include "math/sets.def"
#undef SET
};
const char *const nr_isa_choices[NR_ISA_COUNT + 2] = {
	"auto", "plain",
#define SET(processor, name, flags, has) NR_SETS_##processor(#name,)
#include "math/sets.def"
#undef SET
};
static const char *const *const names = nr_isa_choices + 1;
static enum nr_isa active = NR_ISA_PLAIN;
static char reason[240] = "plain: nothing was chosen yet";

#ifdef NR_EMULATED
#define CPU(extension) 1
static const char best_of[] = "emulated, as this build does with every set";
#else
#define CPU(extension) __builtin_cpu_supports(#extension)
static const char best_of[] = "the best of this CPU and build";
#endif

/* What the CPU has and the operating system saves. */
int nr_isa_supported(enum nr_isa isa)
{
#if !defined NR_EMULATED && defined __x86_64__
	__builtin_cpu_init();
#endif
	switch (isa) {
	case NR_ISA_PLAIN: return 1;
#define SET(processor, name, flags, has) NR_SETS_##processor(case NR_ISA_##name: return (has);)
#include "math/sets.def"
#undef SET
	default: return 0;
	}
}

enum nr_isa nr_isa_best(void)
{
	static int best = -1; /* racing threads would store the same value */
	for (int i = NR_ISA_COUNT - 1; best < 0; i--)
		if (nr_isa_supported((enum nr_isa)i)) best = i;
	return (enum nr_isa)best;
}

enum nr_isa nr_isa_active(void) { return active; }
const char *nr_isa_name(enum nr_isa isa) { return (unsigned)isa < NR_ISA_COUNT ? names[isa] : "?"; }
const char *nr_isa_reason(void) { return reason; }

static void apply(enum nr_isa isa)
{
#define FAMILY(name) nr_##name##_active = tables[isa]->name;
#include "math/families.def"
#undef FAMILY
	active = isa;
}

/* "auto, plain, ...": every name. */
static const char *list(char *to, size_t size)
{
	for (size_t i = 0, n = 0; nr_isa_choices[i] && n < size; i++)
		n += (size_t)snprintf(to + n, size - n, "%s%s", i ? ", " : "", nr_isa_choices[i]);
	return to;
}

/* NR_ISA_COUNT: no such name. */
static enum nr_isa find(const char *name)
{
	if (!strcmp(name, "auto")) return nr_isa_best();
	int i = 0;
	while (i < NR_ISA_COUNT && strcmp(name, names[i])) i++;
	return (enum nr_isa)i;
}

int nr_isa_select(const char *name, struct nr_error *err)
{
	const char *what = "cannot use instruction set";
	const enum nr_isa isa = find(name), best = nr_isa_best();
	if (isa == NR_ISA_COUNT) {
		nr_fail(err, NR_ENAME, what, name, "no such name");
		char all[80];
		return nr_hint(err, "one of %s", list(all, sizeof all));
	}
	if (!nr_isa_supported(isa)) {
		nr_fail(err, NR_EVALUE, what, name, "this CPU or build lacks it");
		return nr_hint(err, "the best here is %s", names[best]);
	}
	apply(isa);
	if (!strcmp(name, "auto")) snprintf(reason, sizeof reason, "%s: %s", names[isa], best_of);
	else snprintf(reason, sizeof reason, "%s: asked for (the best here is %s)", names[isa], names[best]);
	return NR_OK;
}

__attribute__((constructor)) static void start(void)
{
	const char *asked = getenv("NORMA_ISA");
	nr_isa_select("auto", NULL);
	if (!asked || !*asked || !strcmp(asked, "auto")) return;
	const enum nr_isa isa = find(asked);
	const char *best = names[nr_isa_best()];
	if (isa == NR_ISA_COUNT) {
		char all[80];
		snprintf(reason, sizeof reason, "%s: %s; NORMA_ISA='%.20s' is not known (%s)", best, best_of, asked,
			list(all, sizeof all));
	} else if (!nr_isa_supported(isa)) {
		snprintf(reason, sizeof reason, "%s: %s; NORMA_ISA=%s is not available", best, best_of, names[isa]);
	} else {
		apply(isa);
		snprintf(reason, sizeof reason, "%s: asked for by NORMA_ISA (the best here is %s)", names[isa], best);
	}
}
