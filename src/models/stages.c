/* See stages.h. */
#include "models/stages.h"

#include <string.h>

#include "base/str.h"
#include "models/block.h"
#include "models/hf_config.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

const char *nr_stages_next(const char *text, double *number)
{
	char one[32];
	const size_t n = strcspn(text, "-");
	if (n >= sizeof one) return NULL;
	memcpy(one, text, n);
	one[n] = 0;
	return nr_parse_double(one, number) ? text + n : NULL;
}

static int64_t read_list(const char *text, double *to)
{
	for (int64_t n = 0; n < NR_MAXLEVELS;) {
		text = nr_stages_next(text, &to[n]);
		if (!text || !(to[n] > 0) || to[n] > 1e6) return 0;
		n++;
		if (!*text++) return n;
	}
	return 0;
}

bool nr_stages_read(struct nr_net *n, const struct nr_stage_list *l, int64_t *count)
{
	*count = 0;
	for (; l->option; l++) {
		const int64_t got = read_list(l->text, l->to);
		if (!got) {
			nr_net_fail(n, NR_EVALUE, l->text,
				"%s is a positive number for each stage, at most %d, as in 64-128-320-512", l->option,
				NR_MAXLEVELS);
			return false;
		}
		if (!*count) *count = got;
		for (int64_t i = 1; got == 1 && i < *count; i++) l->to[i] = l->to[0];
		if (got == 1 || got == *count) continue;
		nr_net_fail(n, NR_EVALUE, l->text, "%s has %lld numbers for %lld stages", l->option, (long long)got, (long long)*count);
		return false;
	}
	return true;
}

const char *nr_stages_part(const char *text, int part, struct nr_arena *arena)
{
	const char *out = "";
	for (bool more = true, first = true; out && more; first = false) {
		const size_t n = strcspn(text, "-"), cut = strcspn(text, "x-"), from = part && cut < n ? cut + 1 : 0, end = part ? n : cut;
		out = nr_arena_printf(arena, "%s%s%.*s", out, first ? "" : "-", (int)(end - from), text + from);
		more = text[n] == '-';
		text += n + more;
	}
	return out ? out : "";
}

int64_t nr_stages_count(const char *text)
{
	double value[NR_MAXLEVELS];
	return read_list(text, value);
}

int64_t nr_stages_last(const char *text)
{
	double value[NR_MAXLEVELS];
	const int64_t n = read_list(text, value);
	return n ? (int64_t)value[n - 1] : 0;
}

const char *nr_stages_text(const double *value, int64_t count, struct nr_arena *arena)
{
	const char *text = "";
	for (int64_t i = 0; i < count && text; i++) text = nr_arena_printf(arena, "%s%s%.9g", text, i ? "-" : "", value[i]);
	return text;
}

int64_t nr_look_stages(const struct nr_look *l, double *dim, double *depth, double *mlp, double *sr)
{
	int64_t i = 0;
	for (; i < NR_MAXLEVELS; i++) {
		const char *blocks = nr_arena_printf(l->arena, "stages.%d.blocks", (int)i);
		const struct nr_st_tensor *p = nr_look_find(l, nr_arena_printf(l->arena, "stages.%d.patch.proj.weight", (int)i));
		const struct nr_st_tensor *r = nr_look_find(l, nr_arena_printf(l->arena, "%s.0.attn.sr.weight", blocks));
		if (!p) break;
		const int64_t hidden = nr_look_rows(l, nr_arena_printf(l->arena, "%s.0.mlp.fc1.weight", blocks), p->shape[0]);
		dim[i] = (double)p->shape[0];
		depth[i] = (double)nr_look_depth_at(l, blocks, "mlp.fc1.weight");
		mlp[i] = (double)hidden / dim[i];
		sr[i] = r && r->nd == 4 ? (double)r->shape[3] : 1;
		if (hidden < 1 || depth[i] < 1) return -1;
	}
	return i ? i : -1;
}

void nr_look_saw_eps(const struct nr_look *l, struct nr_sighting *s, const double *sr, int64_t count)
{
	const double eps = nr_hf_number(l->config, "layer_norm_eps");
	bool reduced = false;
	for (int64_t i = 0; i < count; i++) reduced |= sr[i] > 1;
	if (eps > 0)
		nr_saw_norms(s, nr_arena_printf(l->arena, "layer eps=%.9g patch.out=layer:eps=%.9g%s", eps, eps,
			reduced ? nr_arena_printf(l->arena, " attn.reduced=layer:eps=%.9g", eps) : ""));
}

nr_t *nr_as_grid(struct nr_net *n, nr_t *x)
{
	if (!x) return NULL;
	if (!x->tok || x->tok->special || x->d[1] != (int64_t)x->tok->h * x->tok->w)
		return nr_net_fail(n, NR_ESHAPE, "grid", "these tokens are not all on a grid");
	return nr_reshape(n, x, NR_SHAPE(x->d[0], x->tok->h, x->tok->w, x->d[2]));
}

nr_t *nr_as_tokens(struct nr_net *n, nr_t *g)
{
	if (!g) return NULL;
	nr_t *x = nr_reshape(n, g, NR_SHAPE(g->d[0], g->d[1] * g->d[2], g->d[3]));
	return x ? nr_with_tokens(n, x, (struct nr_tokens){ .h = (int32_t)g->d[1], .w = (int32_t)g->d[2] }) : NULL;
}

nr_t *nr_picture_grid(struct nr_net *n, nr_t *image)
{
	if (!image) return NULL;
	const int64_t *d = image->d;
	nr_t *x = nr_transpose(n, nr_reshape(n, image, NR_SHAPE(d[0], d[1], d[2] * d[3])));
	return x ? nr_reshape(n, x, NR_SHAPE(d[0], d[2], d[3], d[1])) : NULL;
}

nr_t *nr_with_heads(struct nr_net *n, nr_t *x, int64_t heads)
{
	if (!x) return NULL;
	struct nr_tokens tok = x->tok ? *x->tok : (struct nr_tokens){ 0 };
	tok.heads = (int32_t)heads;
	return nr_with_tokens(n, x, tok);
}

double nr_drop_path_at(double most, int64_t number, int64_t count) { return count > 1 ? most * (double)number / (double)(count - 1) : 0; }

nr_t *nr_linear_or(struct nr_net *n, const char *name, nr_t *x, int64_t out, bool bias)
{
	return bias ? nr_linear(n, name, x, out) : nr_linear_no_bias(n, name, x, out);
}

/* Keys, the first half of kv, and values: normed each as a site says. */
static nr_t *norm_kv(struct nr_net *n, const char *of_k, const char *of_v, nr_t *kv, int64_t heads)
{
	const int64_t B = kv->d[0], T = kv->d[1], C = kv->d[2];
	nr_t *r = nr_reshape(n, kv, NR_SHAPE(B * T, 2 * heads, C / (2 * heads)));
	nr_t *k = nr_span(n, r, 0, heads), *v = nr_span(n, r, heads, NR_END);
	if (of_k) k = nr_norm_scoped(n, "attn.qk.k", of_k, k);
	if (of_v) v = nr_norm_scoped(n, "attn.v", of_v, v);
	nr_t *y = nr_reshape(n, nr_join(n, k, v), NR_SHAPE(B, T, C));
	return y && kv->tok ? nr_with_tokens(n, y, *kv->tok) : y;
}

nr_t *nr_kv_branch(struct nr_net *n, nr_t *q, nr_t *kv, const struct nr_stage_attention *a)
{
	if (!q || !kv) return NULL;
	const int64_t C = nr_cols(q);
	const char *norm = nr_norm_at(n, "attn.qk"), *of_v = nr_norm_at(n, "attn.v");
	if ((norm || of_v) && C % a->heads == 0) {
		q = nr_norm_heads(n, "attn.qk.q", norm, q, a->heads);
		kv = norm_kv(n, norm, of_v, kv, a->heads);
	}
	nr_t *x = nr_kv_attention(n, q, kv, (struct nr_attention_options){ .heads = a->heads, .dropout = (float)a->attention_dropout,
		.bias = a->bias });
	x = nr_norm(n, "attn.inner", nr_norm(n, "attn.heads", x));
	return nr_dropout(n, nr_linear(n, "attn.proj", x, C), a->dropout);
}
