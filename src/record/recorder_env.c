/* env.json: see recorder_env.h. */
#include "record/recorder_env.h"

#include <limits.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/str.h"
#include "math/isa.h"
#include "norma/version.h"

json_t *nr_record_text(const char *text)
{
	struct nr_str s = { 0 };
	size_t left = text ? strlen(text) : 0;
	while (left) {
		const size_t n = nr_utf8_span(text, left);
		nr_str_add_n(&s, text, n);
		if (n < left) nr_str_add(&s, "\xEF\xBF\xBD");
		text += n < left ? n + 1 : n;
		left -= n < left ? n + 1 : n;
	}
	json_t *string = json_string(nr_str_text(&s));
	nr_str_release(&s);
	return string;
}

json_t *nr_record_number(double v)
{
	if (isfinite(v)) return json_real(v);
	return json_string(isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

json_t *nr_record_session(const struct nr_run_info *info)
{
	char host[HOST_NAME_MAX + 1] = "unknown", cpu[128];
	json_t *o = json_object();
	if (!o || gethostname(host, sizeof host)) host[0] = 0;
	host[sizeof host - 1] = 0;
	json_object_set_new(o, "command", nr_record_text(info->command));
	json_object_set_new(o, "version", json_string(NR_VERSION));
	json_object_set_new(o, "host", nr_record_text(host));
	json_object_set_new(o, "pid", json_integer(getpid()));
	json_object_set_new(o, "cpu", nr_record_text(nr_host_cpu(cpu, sizeof cpu)));
	json_object_set_new(o, "cores", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	json_object_set_new(o, "threads", json_integer(omp_get_max_threads()));
	json_object_set_new(o, "isa", json_string(nr_isa_name(nr_isa_active())));
	return o;
}

json_t *nr_record_env(const struct nr_run_info *info, time_t started)
{
	char time_text[32];
	struct nr_str libraries = { 0 };
	json_t *o = nr_record_session(info);
	nr_host_libraries(&libraries);
	json_object_set_new(o, "compiler", json_string(nr_host_compiler()));
	json_object_set_new(o, "libraries", nr_record_text(nr_str_text(&libraries)));
	json_object_set_new(o, "started", json_string(nr_time_text(started, time_text, sizeof time_text)));
	json_object_set_new(o, "kind", nr_record_text(info->kind));
	nr_str_release(&libraries);
	if (info->env) {
		json_t *more = json_deep_copy(info->env);
		json_object_update_missing(o, more);
		json_decref(more);
	}
	return o;
}
