/* Instruction sets: what the CPU and the operating system allow, and the switch over all kernel families. */
#include "math/isa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined NR_NO_FAST && !defined NR_EMULATED
#include <cpuid.h>
#endif

#define FAMILY(name) NR_FAMILY_DECLARE(name);
#include "math/families.def"
#undef FAMILY

static const char *const names[NR_ISA_COUNT] = { "plain", "avx2", "avx512" };
static enum nr_isa active = NR_ISA_PLAIN;
static char reason[160] = "plain: nothing was chosen yet";

#ifdef NR_EMULATED
static const char best_of[] = "emulated, as this build does with every set";
static enum nr_isa detect(void) { return NR_ISA_AVX512; }
#else
static const char best_of[] = "the best of this CPU and build";
#endif

#if !defined NR_NO_FAST && !defined NR_EMULATED
#define BIT(word, n) ((word) >> (n) & 1u)

/* Which register states the system saves on a switch: bits 1, 2 are SSE and AVX, 5..7 the AVX-512 ones. */
static unsigned saved_states(void)
{
	unsigned lo, hi;
	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return lo;
}

/* The extensions that fast/ is compiled with (cmake/NormaLibrary.cmake). */
static enum nr_isa detect(void)
{
	unsigned a, b, c, d, a7, b7, c7, d7;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !__get_cpuid_count(7, 0, &a7, &b7, &c7, &d7)) return NR_ISA_PLAIN;
	const unsigned osxsave = BIT(c, 27), fma = BIT(c, 12), avx = BIT(c, 28), f16c = BIT(c, 29);
	const unsigned bmi = BIT(b7, 3), avx2 = BIT(b7, 5), bmi2 = BIT(b7, 8);
	if (!(osxsave && fma && avx && f16c && bmi && avx2 && bmi2)) return NR_ISA_PLAIN;
	const unsigned states = saved_states();
	if ((states & 0x06) != 0x06) return NR_ISA_PLAIN;
	const unsigned f = BIT(b7, 16), dq = BIT(b7, 17), bw = BIT(b7, 30), vl = BIT(b7, 31);
	return f && dq && bw && vl && (states & 0xe6) == 0xe6 ? NR_ISA_AVX512 : NR_ISA_AVX2;
}
#endif

enum nr_isa nr_isa_best(void)
{
#ifdef NR_NO_FAST
	return NR_ISA_PLAIN;
#else
	static int best = -1; /* racing threads would store the same value */
	if (best < 0) best = (int)detect();
	return (enum nr_isa)best;
#endif
}

enum nr_isa nr_isa_active(void) { return active; }
int nr_isa_supported(enum nr_isa isa) { return (unsigned)isa <= (unsigned)nr_isa_best(); }
const char *nr_isa_name(enum nr_isa isa) { return (unsigned)isa < NR_ISA_COUNT ? names[isa] : "?"; }
const char *nr_isa_reason(void) { return reason; }

static void apply(enum nr_isa isa)
{
#ifdef NR_NO_FAST
	isa = NR_ISA_PLAIN;
#define FAMILY(name) nr_##name##_active = &nr_##name##_plain;
#else
#define FAMILY(name)                                                                                                   \
	nr_##name##_active = isa == NR_ISA_AVX512 ? &nr_##name##_avx512                                                \
		: isa == NR_ISA_AVX2 ? &nr_##name##_avx2 : &nr_##name##_plain;
#endif
#include "math/families.def"
#undef FAMILY
	active = isa;
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
		return nr_hint(err, "one of auto, plain, avx2, avx512");
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
		snprintf(reason, sizeof reason,
			"%s: %s; NORMA_ISA='%.20s' is not known (auto, plain, avx2, avx512)", best, best_of, asked);
	} else if (!nr_isa_supported(isa)) {
		snprintf(reason, sizeof reason, "%s: %s; NORMA_ISA=%s is not available", best, best_of, names[isa]);
	} else {
		apply(isa);
		snprintf(reason, sizeof reason, "%s: asked for by NORMA_ISA (the best here is %s)", names[isa], best);
	}
}
