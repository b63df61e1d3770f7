/* Curves, spectra and pictures: see sections.h. */
#include "report/sections.h"

#include <math.h>

#include "draw/html.h"
#include "report/curves.h"
#include "report/lambda.h"
#include "report/layer_gradients.h"
#include "report/microscope.h"

void nr_section_curves(struct nr_str *s, const struct nr_arms *a, const char *id, const char *title, struct nr_arena *arena)
{
	nr_str_printf(s, "<section id=\"%s\">", id);
	nr_html_element(s, "h2", NULL, title);
	nr_str_add(s, "<p>Where an arm has several seeds, the line is their mean and the band goes from the least to the largest. "
		"Where a curve is called smoothed, a thin line is what was recorded. <span class=\"scripted\">Drag to zoom, double-click "
		"to go back; a click on an arm hides it.</span></p>\n");
	nr_legend(s, a);
	nr_str_add(s, "<div class=\"charts\">\n");
	const int curves = nr_curves(s, a, arena) + nr_layer_gradients(s, a, arena);
	nr_str_add(s, "</div>\n");
	if (!curves) nr_str_add(s, "<p class=\"notes\">No run has records in metrics.csv.</p>\n");
	nr_str_add(s, "</section>\n");
	nr_microscope_section(s, a, arena);
	nr_lambda_section(s, a, arena);
}

static void section_probes(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	const size_t before = s->len;
	nr_str_add(s, "<section id=\"probes\"><h2>Probes by depth</h2>\n");
	nr_legend(s, a);
	nr_str_add(s, "<div class=\"charts\">\n");
	const int figures = nr_probes_by_depth(s, a, arena);
	nr_str_add(s, "</div>\n</section>\n");
	if (!figures && !s->failed) s->len = before;
}

void nr_section_spectra(struct nr_str *s, const struct nr_arms *a, bool said, struct nr_arena *arena)
{
	section_probes(s, a, arena);
	const size_t before = s->len;
	nr_str_add(s, "<section id=\"spectra\"><h2>Spectra of the features</h2>\n");
	nr_legend(s, a);
	nr_str_add(s, "<div class=\"charts\">\n");
	const int spectra = nr_spectra(s, a, arena);
	nr_str_add(s, "</div>\n");
	if (!spectra) nr_str_add(s, "<p class=\"notes\">No run has a spectrum.csv; norma probe writes it.</p>\n");
	nr_str_add(s, "</section>\n");
	if (!spectra && !said && !s->failed) s->len = before;
}

struct pictures {
	const char *id, *title, *about, *alt, *none;    /* none: what is said if there is none; NULL: nothing then */
	const struct nr_picture_bytes *(*of)(const struct nr_runfolder *);
	const char *(*note)(const struct nr_runfolder *, struct nr_arena *);
};

static const struct nr_picture_bytes *reconstruction(const struct nr_runfolder *r) { return &r->reconstruction; }
static const struct nr_picture_bytes *attention(const struct nr_runfolder *r) { return &r->attention; }
static const struct nr_picture_bytes *drawn(const struct nr_runfolder *r) { return &r->drawn; }

static const char *held_out(const struct nr_runfolder *r, struct nr_arena *arena)
{
	double loss = nr_runfolder_last(r, "eval_loss_mae");
	if (isnan(loss)) loss = nr_runfolder_last(r, "eval_loss");
	return isnan(loss) ? nr_arena_printf(arena, "seed %lld", (long long)r->seed)
			   : nr_arena_printf(arena, "seed %lld; held-out loss %.4g", (long long)r->seed, loss);
}
static const char *neighbours(const struct nr_runfolder *r, struct nr_arena *arena)
{
	const double knn = nr_runfolder_last(r, "eval_knn");
	return isnan(knn) ? nr_arena_printf(arena, "seed %lld", (long long)r->seed)
			  : nr_arena_printf(arena, "seed %lld; k-NN %.1f %%", (long long)r->seed, 100 * knn);
}

static const char *average_precision(const struct nr_runfolder *r, struct nr_arena *arena)
{
	const double ap = nr_runfolder_last(r, "eval_ap");
	return isnan(ap) ? nr_arena_printf(arena, "seed %lld", (long long)r->seed)
			 : nr_arena_printf(arena, "seed %lld; average precision %.1f %%", (long long)r->seed, 100 * ap);
}

static const struct pictures kinds[] = {
	{ "pictures", "Reconstructions", "Held-out pictures: original, what was seen of it, and what "
		"the decoder made of that. Sharp edges and right textures were understood, a blur is an average.",
	  "Held-out pictures: original, masked, and reconstructed with", "No run has a reconstruction.png.", reconstruction, held_out },
	{ "attention", "What [CLS] looks at", "Held-out pictures, and for each head of the teacher's last block the share of its attention "
		"that [CLS] gives to every patch; yellow is the most. Maps that follow a shape look at the object, maps that are the same "
		"for every picture look at places.",
	  "Attention of [CLS] in each head, with", NULL, attention, neighbours },
	{ "found", "What was found", "Held-out pictures: what is in them, and below what the detector found with a score of .5 or more.",
	  "Detections drawn onto pictures, with", NULL, drawn, average_precision },
};

/* One for each arm: that of its first run which has one. */
static int pictures(struct nr_str *s, const struct pictures *k, const struct nr_arms *a, bool said, struct nr_arena *arena)
{
	const size_t before = s->len;
	int count = 0;
	nr_str_printf(s, "<section id=\"%s\"><h2>%s</h2>\n<p>%s</p>\n<div class=\"pictures\">\n", k->id, k->title, k->about);
	for (int m = 0; m < a->count; m++) {
		const struct nr_runfolder *r = NULL;
		for (int i = 0; i < a->arm[m].runs && !r; i++)
			if (k->of(&a->run[a->arm[m].run[i]])->size) r = &a->run[a->arm[m].run[i]];
		if (!r) continue;
		const struct nr_picture_bytes *p = k->of(r);
		const char *note = k->note(r, arena), *alt = nr_arena_printf(arena, "%s %s", k->alt, a->arm[m].name);
		if (!note || !alt) s->failed = true;
		nr_html_figure_open(s, "picture", a->arm[m].name, note);
		nr_html_png(s, p->bytes, p->size, p->width, p->height, alt);
		nr_html_figure_close(s);
		count++;
	}
	nr_str_add(s, "</div>\n");
	if (!count && k->none) nr_str_printf(s, "<p class=\"notes\">%s</p>\n", k->none);
	nr_str_add(s, "</section>\n");
	if (!count && (!said || !k->none) && !s->failed) s->len = before;
	return count;
}

/* What is missing is told only where no other kind is there. */
void nr_section_pictures(struct nr_str *s, const struct nr_arms *a, bool said, struct nr_arena *arena)
{
	const int others = pictures(s, &kinds[1], a, false, arena) + pictures(s, &kinds[2], a, false, arena);
	pictures(s, &kinds[0], a, said && !others, arena);
}
