/* See lists.h. */
#include "lists.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool cli_list_word(const char **rest, char word[CLI_WORD])
{
	const char *s = *rest + strspn(*rest, ", ");
	const size_t n = strcspn(s, ", ");
	snprintf(word, CLI_WORD, "%.*s", (int)(n < CLI_WORD ? n : CLI_WORD - 1), s);
	*rest = s + n;
	return n > 0;
}

int64_t cli_list_numbers(struct cli *c, const struct cli_numbers *l, const char *text, double *out)
{
	char word[CLI_WORD];
	int64_t n = 0;
	for (; cli_list_word(&text, word); n++) {
		if (n == l->most) return cli_usage(c, "--%s: more than %lld values", l->flag, (long long)l->most);
		if (!nr_parse_double(word, &out[n]) || !(out[n] >= l->low && out[n] <= l->high) || (l->whole && out[n] != floor(out[n])))
			return cli_usage(c, "--%s: '%s' is not %s", l->flag, word, l->what);
	}
	return n ? n : cli_usage(c, "--%s: no value", l->flag);
}
