/* A host process whose locale writes 0,5: one that is installed, or one that localedef makes in a folder of its own. */
#ifndef UNIT_COMMAS_H
#define UNIT_COMMAS_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "fetch/unpack.h"

/* False: there is none, and none can be made. */
static inline bool commas_begin(void)
{
	static char folder[] = "/tmp/norma-locale-XXXXXX";
	char command[200];
	if (!setlocale(LC_ALL, "de_DE.UTF-8") && mkdtemp(folder)) {
		snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
		const bool made = system(command) >= 0 && !setenv("LOCPATH", folder, 1) && setlocale(LC_ALL, "de_DE.UTF-8");
		unsetenv("LOCPATH");
		nr_remove_tree(folder, NULL);           /* what was loaded stays mapped */
		if (!made) return false;
	}
	return localeconv()->decimal_point[0] == ',';
}

static inline void commas_end(void) { setlocale(LC_ALL, "C"); }

#endif
