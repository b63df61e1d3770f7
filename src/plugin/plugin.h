/* Inside of src/plugin, and what records say of plug-ins. */
#ifndef NR_PLUGIN_INNER_H
#define NR_PLUGIN_INNER_H

#include "norma/plugin.h"

struct nr_str;

/* "plugins: [...]" as nr_plugins_read reads it back, or nothing if none is loaded. */
void nr_plugins_yaml(struct nr_str *);

#endif
