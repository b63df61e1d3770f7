/* See detector.h. */
#include "golden/detector.h"

#include <string.h>

static const json_t *find(struct golden_case *c, const char *path)
{
	const json_t *v = c->config;
	char key[64];
	for (size_t n; v && *path; path += n, path += *path == '.') {
		n = strcspn(path, ".");
		snprintf(key, sizeof key, "%.*s", (int)n, path);
		v = json_object_get(v, key);
	}
	return v;
}

double golden_number_in(struct golden_case *c, const char *key, const char *otherwise)
{
	return golden_number(c, find(c, key) ? key : otherwise);
}

void golden_detector_open(struct golden_case *c, struct golden_detector *d, const char *norms)
{
	static const char *const known[] = { "torchvision", "mmdet", NULL };
	const char *naming = nr_st_metadata(c->file, "naming");
	const struct golden_tensor box = golden_tensor(c, 2, "in.boxes");
	int of = 0;
	while (known[of] && (!naming || strcmp(known[of], naming) != 0)) of++;
	if (!known[of]) golden_stop(c, NULL, "names of %s", naming ? naming : "nobody");
	d->mmdet = of == NR_MMDETECTION;
	d->h = (int64_t)golden_item(c, "image", 0);
	d->w = (int64_t)golden_item(c, "image", 1);
	d->image = golden_ints(c, 1, "in.box_image");
	golden_expect(c, box.d[1] == 4 && d->image.n == box.d[0] && d->h > 0 && d->w > 0, "in.boxes");
	golden_model_open(c, &d->m, "vit_micro", "timm", norms, 1e-5);  /* the model is not recorded, only named */
	struct nr_net *n = d->m.net;
	for (const char *name; d->levels < NR_MAXLEVELS; d->levels++) {
		if (!golden_has(c, name = nr_arena_printf(c->arena, "in.feat%d", d->levels))) break;
		const struct golden_tensor x = golden_tensor(c, 4, "%s", name);
		nr_t *map = nr_input(n, name, NR_REAL, NR_SHAPE(x.d[0], x.d[2] * x.d[3], x.d[1]));
		map->flags |= NR_GRAD;
		d->map[d->levels] = nr_with_tokens(n, map, (struct nr_tokens){ .h = (int32_t)x.d[2], .w = (int32_t)x.d[3] });
		d->B = x.d[0];
	}
	golden_expect(c, d->levels > 0, "in.feat0");
	d->m.naming = nr_detector_naming(of, d->levels, c->arena);
	if (!d->m.naming) golden_stop(c, NULL, "out of memory");
	for (int64_t i = 0; i < d->image.n; i++) {
		const int64_t place = golden_place_of(&d->image, i);
		golden_expect(c, d->image.x[i] >= 0 && d->image.x[i] < d->B, "in.box_image");
		if (place >= d->G) d->G = place + 1;
	}
	if (d->G < 1) d->G = 1;
	d->truth = nr_input(n, "truth", NR_REAL, NR_SHAPE(d->B, d->G, 4));
	d->classes = nr_input(n, "classes", NR_I32, NR_SHAPE(d->B, d->G));
	d->size = nr_input(n, "size", NR_REAL, NR_SHAPE(d->B, 2));
}

int64_t golden_place_of(const struct golden_ints *image, int64_t i)
{
	int64_t place = 0;
	for (int64_t j = 0; j < i; j++) place += image->x[j] == image->x[i];
	return place;
}

void golden_by_picture(const struct golden_ints *image, const real *x, int64_t each, int64_t most, real *out)
{
	for (int64_t i = 0; i < image->n; i++)
		memcpy(out + (image->x[i] * most + golden_place_of(image, i)) * each, x + i * each, (size_t)each * sizeof *x);
}

/* (B,C,T) of the file and (B,T,C) of ours. */
static void flip(int64_t B, int64_t T, int64_t C, const real *x, real *y, bool to_file)
{
	for (int64_t i = 0; i < B * T * C; i++) {
		const int64_t b = i / (T * C), t = i / C % T, theirs = (b * C + i % C) * T + t;
		y[to_file ? theirs : i] = x[to_file ? i : theirs];
	}
}

void golden_detector_bind(struct golden_case *c, struct golden_detector *d)
{
	const struct golden_tensor box = golden_tensor(c, 2, "in.boxes");
	const struct golden_ints label = golden_ints(c, 1, "in.labels");
	int32_t *classes = nr_plan_data(d->m.plan, d->classes);
	real *truth = nr_plan_data(d->m.plan, d->truth), *size = nr_plan_data(d->m.plan, d->size);
	golden_expect(c, label.n == d->image.n, "in.labels");
	for (int l = 0; l < d->levels; l++) {
		const struct golden_tensor x = golden_tensor(c, 4, "in.feat%d", l);
		const nr_t *map = d->map[l];
		golden_expect(c, x.n == nr_len(map), "in.feat");
		flip(d->B, map->d[1], map->d[2], x.x, nr_plan_data(d->m.plan, map), false);
	}
	for (int64_t i = 0; i < d->B * d->G; i++) classes[i] = -1;
	for (int64_t i = 0; i < label.n; i++) classes[d->image.x[i] * d->G + golden_place_of(&d->image, i)] = label.x[i];
	memset(truth, 0, (size_t)nr_len(d->truth) * sizeof *truth);
	golden_by_picture(&d->image, box.x, 4, d->G, truth);
	for (int64_t b = 0; b < d->B; b++) size[2 * b] = (real)d->h, size[2 * b + 1] = (real)d->w;
}

void golden_anchor_plan(struct golden_case *c, const struct golden_detector *d, struct nr_anchor_plan *p)
{
	const json_t *ratios = find(c, "anchor_ratios"), *sizes = find(c, "anchor_sizes"), *strides = find(c, "strides");
	const json_t *scales = find(c, "anchor_scales"), *scale = find(c, "anchor_scale");
	*p = (struct nr_anchor_plan){ .rounded = json_is_true(find(c, "anchor_round")), .ratios = (int)json_array_size(ratios) };
	golden_expect(c, p->ratios > 0 && p->ratios <= NR_ANCHOR_RATIOS, "anchor_ratios");
	for (int i = 0; i < p->ratios; i++) p->ratio[i] = json_number_value(json_array_get(ratios, (size_t)i));
	for (size_t l = 0; l < NR_ANCHOR_LEVELS && l < (json_array_size(sizes) ? json_array_size(sizes) : json_array_size(strides)); l++) {
		const double stride = json_number_value(json_array_get(strides, l));
		const json_t *own = sizes ? json_array_get(sizes, l) : scales ? scales : scale;
		p->stride[l] = d->mmdet ? stride : 0;
		p->sizes = json_is_array(own) ? (int)json_array_size(own) : 1;
		golden_expect(c, p->sizes > 0 && p->sizes <= NR_ANCHOR_SIZES, "sizes of anchors");
		for (int s = 0; s < p->sizes; s++)
			p->size[l][s] = (sizes ? 1 : stride) * json_number_value(json_is_array(own) ? json_array_get(own, (size_t)s) : own);
	}
	golden_expect(c, p->sizes > 0, "anchors");
}

struct nr_fpn golden_neck(struct golden_case *c)
{
	const char *p6 = golden_text(c, "p6"), *p7 = golden_config_text(c, "p7", NULL, "");
	struct nr_fpn neck = { .dim = (int64_t)golden_number(c, "out_channels"), .extras = *p7 ? 2 : 1 };
	neck.extra = strstr(p6, "pool") ? NR_FPN_POOL : strstr(p6, "on C5") ? NR_FPN_CONV_INPUT : NR_FPN_CONV_OUTPUT;
	neck.relu_between = strstr(p7, "relu(P6)") != NULL;
	return neck;
}

struct nr_box_code golden_box_code(struct golden_case *c, const char *stds, const char *weights)
{
	struct nr_box_code code = { .both_sides = find(c, "clip_log_both_sides") != NULL };
	const json_t *limit = find(c, code.both_sides ? "clip_log_both_sides" : "clip_log");
	code.limit = limit ? json_number_value(limit) : log(1000. / 16);
	for (int j = 0; j < 4; j++) {
		const json_t *std = find(c, stds), *weight = find(c, weights);
		code.std[j] = std ? json_number_value(json_array_get(std, (size_t)j))
			: weight ? 1 / json_number_value(json_array_get(weight, (size_t)j)) : 1;
	}
	return code;
}

void golden_check_maps(struct golden_case *c, struct golden_detector *d, nr_t *const *map, int count, int first)
{
	for (int l = 0; l < count; l++) {
		real *out = golden_reals(c, nr_len(map[l]));
		flip(d->B, map[l]->d[1], map[l]->d[2], nr_plan_data(d->m.plan, map[l]), out, true);
		golden_check(c, "out", out, nr_len(map[l]), "out.p%d", first + l);
	}
}

void golden_check_anchors(struct golden_case *c, const struct nr_anchor_grid *g)
{
	const int64_t n = nr_anchor_count(g);
	double *box = golden_alloc(c, 4 * n, sizeof *box);
	real *out = golden_reals(c, 4 * n);
	nr_anchor_boxes(g, box);
	for (int64_t i = 0; i < 4 * n; i++) out[i] = (real)box[i];
	golden_check(c, "out", out, 4 * n, "out.anchors");
}

void golden_check_map_grads(struct golden_case *c, struct golden_detector *d)
{
	for (int l = 0; l < d->levels; l++) {
		real *out = golden_reals(c, nr_len(d->map[l]));
		flip(d->B, d->map[l]->d[1], d->map[l]->d[2], nr_plan_grad(d->m.plan, d->map[l]), out, true);
		golden_check(c, "grad", out, nr_len(d->map[l]), "grad.in.feat%d", l);
	}
}

void golden_check_detections(struct golden_case *c, struct golden_detector *d, const nr_t *box, const nr_t *score, const nr_t *label,
	int from)
{
	const int64_t all = nr_len(label), rows = all / d->B;
	const int32_t *label_of = nr_plan_data(d->m.plan, label);
	const real *box_of = nr_plan_data(d->m.plan, box), *score_of = nr_plan_data(d->m.plan, score);
	real *boxes = golden_reals(c, 4 * all), *scores = golden_reals(c, all);
	int32_t *labels = golden_alloc(c, all, sizeof *labels), *images = golden_alloc(c, all, sizeof *images);
	int64_t n = 0;
	for (int64_t i = 0; i < all; i++) {
		if (label_of[i] < 0) continue;
		memcpy(boxes + 4 * n, box_of + 4 * i, 4 * sizeof *boxes);
		scores[n] = score_of[i], labels[n] = label_of[i] + from, images[n++] = (int32_t)(i / rows);
	}
	golden_check_ints(c, images, n, "out.det_image");
	golden_check_ints(c, labels, n, "out.det_labels");
	golden_check(c, "out", scores, n, "out.det_scores");
	golden_check(c, "out", boxes, 4 * n, "out.det_boxes");
}
