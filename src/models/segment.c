/* Segmentation with a linear decoder. Kumar et al. 2023, arXiv:2302.01327, section 5.3: one dense layer; Caron et al. 2021 and Oquab et al.
 * 2023, arXiv:2304.07193, section 7.4: batch norm before it. Enlarging the logits is a matter of the loss (nn/pixel_loss.c) and of whoever
 * reads them (infer/segmenter.c). See segment.h. */
#include "models/segment.h"

#include <string.h>

#include "base/mem.h"
#include "models/stages.h"
#include "norma/nn.h"
#include "norma/norm.h"
#include "norma/safetensors.h"

#define SCOPE "segment"
const char *const nr_segment_decoders[] = { "dense", "bn", NULL };
const struct nr_option nr_segment_options[] = { NR_SEGMENT_OPTIONS(struct nr_segmentation, ), NR_OPT_END };

int nr_segment_settle(struct nr_model_spec *m, const struct nr_segmentation *o, struct nr_arena *arena, struct nr_error *err)
{
	const char *own = m->norms.rules ? m->norms.rules : "";
	m->norms.rules = nr_arena_printf(arena, "%s " SCOPE ".bn=%s", own, o->batch ? o->batch : "batch");
	if (!m->norms.rules) return nr_fail(err, NR_EMEMORY, "cannot record the model", m->text, "out of memory");
	return nr_option_find(m->of->options, "fc_norm") ? nr_model_set(m, "fc_norm", "0", arena, err) : NR_OK;
}

static nr_t *features(struct nr_net *n, const struct nr_model_spec *m, const struct nr_segmentation *o, const struct nr_inputs *in)
{
	nr_t *level[NR_MAXLEVELS];
	if (!m->of->levels) {
		nr_t *x = nr_model_tokens(n, m, in);
		if (x && (!x->tok || x->tok->h < 1)) return nr_net_fail(n, NR_ESHAPE, SCOPE, "the model's tokens have no grid");
		return x ? nr_span(n, x, x->tok->special, NR_END) : NULL;
	}
	const int count = m->of->levels(n, in, m->conf, level);
	if (count < 1) return NULL;
	if (o->level > count) return nr_net_fail(n, NR_EVALUE, SCOPE, "level %lld of a model that has %d", (long long)o->level, count);
	return level[o->level ? o->level - 1 : count - 1];
}

nr_t *nr_segment_logits(struct nr_net *n, const struct nr_model_spec *m, const struct nr_segmentation *o, const struct nr_inputs *in)
{
	nr_t *x = features(n, m, o, in);
	nr_push(n, SCOPE);
	if (o->decoder == NR_SEGMENT_BN) x = nr_norm(n, "bn", x);
	return nr_pop(n, nr_as_grid(n, nr_linear(n, "head", x, o->classes)));
}

/* Patches, or what the last stage of a pyramid sees as one place. */
int64_t nr_segment_unit(const struct nr_model_spec *m)
{
	const int64_t patch = nr_model_int(m, "patch");
	return m->of->levels ? 32 : patch > 0 ? patch : 16;
}

bool nr_segment_entry(const char *name) { return !strncmp(name, SCOPE ".", sizeof SCOPE); }

bool nr_segment_guess(struct nr_segmentation *o, const struct nr_st_file *f)
{
	const struct nr_st_tensor *head = nr_st_find(f, SCOPE ".head.weight");
	if (!head) return false;
	*o = (struct nr_segmentation){ .classes = head->shape[0],
		.decoder = nr_st_find(f, SCOPE ".bn.weight") ? NR_SEGMENT_BN : NR_SEGMENT_DENSE };
	return true;
}
