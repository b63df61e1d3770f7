/* `norma norms sphere` and `norma norms flow`: what norms do to a cloud of points, and to the gradient of a model at its start. */
#ifndef NR_NORMS_VIEWS_H
#define NR_NORMS_VIEWS_H

#include "cli.h"

struct norms_views { char *norm, *placement, *model, *out; int64_t batch; bool json; };
int cli_norms_sphere(struct cli *, const struct norms_views *);
int cli_norms_flow(struct cli *, const struct norms_views *);

#endif
