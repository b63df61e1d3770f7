/* The elements as RDKit's valence model sees them. */
#ifndef NR_ELEMENTS_H
#define NR_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NR_ELEMENTS = 119 };             /* 0 is the dummy atom '*' */

struct nr_element {
	char symbol[3];
	uint8_t outer;                  /* electrons of the outer shell */
	uint16_t isotope;               /* the commonest */
	int8_t valence[5];              /* rising; -1 at the end: anything above is fine, too */
	uint8_t valences;
};

extern const struct nr_element nr_elements[NR_ELEMENTS];

int nr_element_find(const char *symbol, size_t size);   /* atomic number, -1 if there is none */
bool nr_element_early(int z);
bool nr_element_metal(int z);
bool nr_element_pulls(int a, int b);                    /* a is the more electronegative */

static inline int nr_element_top(int z) { return nr_elements[z].valence[nr_elements[z].valences - 1]; }

#endif
