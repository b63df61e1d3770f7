/* Small graphs for the tests that come for free: see norms.h. */
#include "norms/norms.h"

#include <stdlib.h>

#include "base/mem.h"

nr_t *nr_norm_try_tokens(struct nr_net *n, nr_t **x, const char **options)
{
	struct nr_tokens tok = { 0 };
	const char *text = *options, *bar = strchr(text, '|');
	nr_t *y = x[0];
	int next = 1;
	for (const char *w = text; bar && w < bar; w += strcspn(w, " |") + 1) {
		if (!strncmp(w, "special=", 8)) tok.special = atoi(w + 8);
		else if (!strncmp(w, "heads=", 6)) tok.heads = atoi(w + 6);
		else if (!strncmp(w, "grid=", 5)) tok.h = atoi(w + 5), tok.w = atoi(strchr(w, 'x') + 1);
		else if (!strncmp(w, "valid", 5)) tok.valid = x[next++];
		else if (!strncmp(w, "pos", 3)) tok.pos = x[next++];
		else if (!strncmp(w, "sum", 3)) y = nr_add(n, y, x[next++]);
	}
	if (bar) nr_with_tokens(n, y, tok);
	if (bar) *options = bar + 1 + strspn(bar + 1, " ");
	return y;
}

nr_t *nr_norm_try(struct nr_net *n, const struct nr_norm *norm, nr_t **x, const char *text)
{
	nr_t *y = nr_norm_try_tokens(n, x, &text);
	return nr_norm_make(n, "", nr_arena_printf(nr_net_arena(n), "%s:%s", norm->name, text), y);
}
