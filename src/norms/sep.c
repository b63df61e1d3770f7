/* sep: SepNorm, one norm for the special tokens ([CLS], [VNode], registers) and another for the rest. SepNorm, Eq. 5.
 *
 *   y = [ special(x[:S]) ; rest(x[S:]) ]
 *
 * Each part has its own parameters and statistics. Cutting and joining are views: nothing is copied. */
#include "norms/norms.h"

struct sep { char *special, *rest; };

static const struct nr_option options[] = {
	{ .name = "special", .type = NR_TSTRING, .offset = offsetof(struct sep, special), .size = sizeof(char *),
	  .metavar = "NORM", .help = "norm of the special tokens" },
	{ .name = "rest", .type = NR_TSTRING, .offset = offsetof(struct sep, rest), .size = sizeof(char *),
	  .metavar = "NORM", .help = "norm of all other tokens" },
	NR_OPT_END
};

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct sep *c = conf;
	const struct nr_tokens *tok = x->tok;
	if (!tok || !tok->special)
		return nr_net_fail(n, NR_ESHAPE, "sep", "the tokens have no special ones to separate");
	nr_t *special = nr_norm_make(n, "special", c->special, nr_span(n, x, 0, tok->special));
	if (tok->special == x->d[1]) return special;
	nr_t *rest = nr_norm_make(n, "rest", c->rest, nr_span(n, x, tok->special, NR_END));
	nr_t *y = nr_join(n, special, rest);
	return y ? nr_with_tokens(n, y, *tok) : NULL;
}

static const char *const laws[] = { "sep(layer,layer) = layer", "sep(rms,rms) = rms", NULL };

const struct nr_norm nr_norm_sep = {
	.name = "sep", .title = "separate normalization of special tokens and the rest", .cite = "arXiv:2309.12931",
	.equation = "y[:S] = special(x[:S]); y[S:] = rest(x[S:]), S special tokens",
	.about = "A shared norm forces the class token and the patch or word tokens through one gain, one bias and (for batch "
		 "norm) one set of statistics, though their distributions differ. sep gives each side its own norm: "
		 "sep(bn,ln) normalises [CLS] over the batch, which spreads it over the sphere, and every other token over its "
		 "channels. The first norm is for the special tokens. Any two norms can be combined, e.g. sep(batch,dtn).",
	.laws = laws, .conf_size = sizeof(struct sep), .options = options, .build = build,
};
