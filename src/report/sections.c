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

/* One for each arm: that of its first run which has one. */
void nr_section_pictures(struct nr_str *s, const struct nr_arms *a, bool said, struct nr_arena *arena)
{
	const size_t before = s->len;
	int count = 0;
	nr_str_add(s, "<section id=\"pictures\"><h2>Reconstructions</h2>\n<p>Held-out pictures: original, what was seen of it, and what "
		"the decoder made of that. Sharp edges and right textures were understood, a blur is an average.</p>\n"
		"<div class=\"pictures\">\n");
	for (int m = 0; m < a->count; m++) {
		const struct nr_runfolder *r = NULL;
		for (int i = 0; i < a->arm[m].runs && !r; i++)
			if (a->run[a->arm[m].run[i]].reconstruction.size) r = &a->run[a->arm[m].run[i]];
		if (!r) continue;
		double loss = nr_runfolder_last(r, "eval_loss_mae");
		if (isnan(loss)) loss = nr_runfolder_last(r, "eval_loss");
		const char *note = isnan(loss) ? nr_arena_printf(arena, "seed %lld", (long long)r->seed)
					       : nr_arena_printf(arena, "seed %lld; held-out loss %.4g", (long long)r->seed, loss);
		const char *alt = nr_arena_printf(arena, "Held-out pictures: original, masked, and reconstructed with %s", a->arm[m].name);
		if (!note || !alt) s->failed = true;
		nr_html_figure_open(s, "picture", a->arm[m].name, note);
		nr_html_png(s, r->reconstruction.bytes, r->reconstruction.size, r->reconstruction.width, r->reconstruction.height, alt);
		nr_html_figure_close(s);
		count++;
	}
	nr_str_add(s, "</div>\n");
	if (!count) nr_str_add(s, "<p class=\"notes\">No run has a reconstruction.png.</p>\n");
	nr_str_add(s, "</section>\n");
	if (!count && !said && !s->failed) s->len = before;
}
