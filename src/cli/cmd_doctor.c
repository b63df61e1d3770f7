/* norma doctor: what norma runs on, what it chose and why, and what costs speed here. */
#include <stdio.h>
#include <string.h>

#include "base/host.h"
#include "cli.h"
#include "doctor_checks.h"
#include "math/isa.h"
#include "norma/norma.h"

struct doctor { bool json, measure; };

static const struct nr_option options[] = {
	NR_OPT_BOOL(struct doctor, json, "0", "print one line of JSON"),
	NR_OPT_BOOL(struct doctor, measure, "1", "measure the speed of products and copies (0.2 s)"),
	NR_OPT_END
};

static json_t *sets(bool here)
{
	json_t *a = json_array();
	for (int i = 0; i < NR_ISA_COUNT; i++)
		if (!here || nr_isa_supported((enum nr_isa)i))
			json_array_append_new(a, json_string(nr_isa_name((enum nr_isa)i)));
	return a;
}

static int print_json(const struct nr_machine *m, const struct doctor_speed *s, const struct doctor_warnings *w, struct nr_error *err)
{
	json_t *r = json_object(), *list = json_array();
	for (int i = 0; i < w->count; i++) json_array_append_new(list, json_string(w->text[i]));
	json_object_set_new(r, "version", json_string(nr_version()));
	json_object_set_new(r, "compiler", json_string(nr_host_compiler()));
	json_object_set_new(r, "cpu", json_string(m->cpu));
	json_object_set_new(r, "cpus", json_integer(m->cpus));
	json_object_set_new(r, "cpus_allowed", json_integer(m->allowed));
	json_object_set_new(r, "cpu_quota", json_real(m->quota));
	json_object_set_new(r, "l1d_bytes", json_integer(m->l1));
	json_object_set_new(r, "l2_bytes", json_integer(m->l2));
	json_object_set_new(r, "l3_bytes", json_integer(m->l3));
	json_object_set_new(r, "memory_bytes", json_integer(m->memory));
	json_object_set_new(r, "memory_available_bytes", json_integer(m->available));
	json_object_set_new(r, "huge_pages", json_string(m->huge_pages));
	json_object_set_new(r, "isa_compiled", sets(false));
	json_object_set_new(r, "isa_available", sets(true));
	json_object_set_new(r, "isa", json_string(nr_isa_name(nr_isa_active())));
	json_object_set_new(r, "isa_reason", json_string(nr_isa_reason()));
	json_object_set_new(r, "threads", json_integer(m->threads));
	json_object_set_new(r, "sgemm_gflops", s->sgemm > 0 ? json_real(s->sgemm) : json_null());
	json_object_set_new(r, "peak_gflops", s->sgemm > 0 ? json_real(s->limits.gflops) : json_null());
	json_object_set_new(r, "share_of_peak", s->sgemm > 0 ? json_real(s->sgemm / s->limits.gflops) : json_null());
	json_object_set_new(r, "copy_gbs", s->sgemm > 0 ? json_real(s->limits.gbs) : json_null());
	json_object_set_new(r, "foreign_cpu", json_real(s->foreign));
	json_object_set_new(r, "libraries", json_string(m->libraries));
	json_object_set_new(r, "warnings", list);
	return bench_json_line(stdout, r, err);
}

static void row(const char *label, const char *text) { printf("%s%-12s%s%s\n", cli_bold(), label, cli_plain(), text); }

static const char *join(json_t *list, char *buf, size_t size)
{
	size_t i, used = 0;
	json_t *item;
	buf[0] = 0;
	json_array_foreach(list, i, item) {
		if (used < size)
			used += (size_t)snprintf(
				buf + used, size - used, "%s%s", i ? " " : "", json_string_value(item));
	}
	json_decref(list);
	return buf;
}

static void print_facts(const struct nr_machine *m, const struct doctor_speed *s)
{
	char text[768], a[64], b[64];
	snprintf(text, sizeof text, "%s, %s", nr_version(), nr_host_compiler());
	row("norma", text);
	snprintf(text, sizeof text, "%s, %ld CPU%s", m->cpu, m->cpus, m->cpus == 1 ? "" : "s");
	row("cpu", text);
	snprintf(text, sizeof text, "L1 %ld KiB, L2 %.4g MiB, L3 %.4g MiB", m->l1 >> 10, (double)m->l2 / 0x1p20,
		(double)m->l3 / 0x1p20);
	row("caches", text);
	snprintf(text, sizeof text, "%.1f GiB, %.1f GiB free; huge pages: %s", (double)m->memory / 0x1p30,
		(double)m->available / 0x1p30, *m->huge_pages ? m->huge_pages : "unknown");
	row("memory", text);
	snprintf(text, sizeof text, "compiled: %s; this CPU has: %s", join(sets(false), a, sizeof a),
		join(sets(true), b, sizeof b));
	row("sets", text);
	row("kernels", nr_isa_reason());
	snprintf(text, sizeof text, "%d", m->threads);
	row("threads", text);
	if (s->sgemm > 0) {
		snprintf(text, sizeof text, "%.1f GFLOP/s for multiply-adds from registers", s->limits.gflops);
		row("peak", text);
		snprintf(text, sizeof text, "%.1f GFLOP/s at 1576x768x768, %.0f %% of the peak", s->sgemm,
			100 * s->sgemm / s->limits.gflops);
		row("sgemm", text);
		snprintf(text, sizeof text, "%.1f GB/s read and written, larger than the caches", s->limits.gbs);
		row("copy", text);
	}
	row("libraries", m->libraries);
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct doctor *o = conf;
	if (args->count) return cli_usage(c, "doctor takes no arguments");
	struct nr_machine m;
	struct doctor_speed speed = { 0 };
	struct doctor_warnings w;
	if (o->measure) cli_bound_spin(c);
	nr_machine_read(&m);
	if (o->measure) doctor_measure(&speed);
	doctor_check(&m, &speed, &w);
	if (o->json) return print_json(&m, &speed, &w, c->err);
	print_facts(&m, &speed);
	for (int i = 0; i < w.count; i++) printf("%swarning%s     %s\n", cli_red(), cli_plain(), w.text[i]);
	if (!w.count) printf("%sno problems found%s\n", cli_green(), cli_plain());
	return NR_OK;
}

const struct cli_command cli_doctor = {
	.name = "doctor",
	.title = "check this machine: instruction set, threads, speed, libraries, problems",
	.usage = "",
	.about = "Prints what norma runs on, which kernels it chose and why, the peak of multiply-adds and the speed of a\n"
		 "matrix product and of a copy. Warns of settings that cost speed or are misspelt. Warnings do not change\n"
		 "the exit code 0.",
	.conf_size = sizeof(struct doctor),
	.options = options,
	.run = run,
};
