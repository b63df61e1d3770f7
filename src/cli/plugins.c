/* Plug-ins of the command: those that are named, and those of the recipes, studies and runs among the arguments. All are loaded before
 * the commands are known and arguments are read, for a plug-in can bring both commands and options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/share.h"
#include "cli.h"
#include "norma/plugin.h"

static bool is_folder(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);
	return n > m && !strcmp(s + n - m, end);
}

/* The file that names the plug-ins of a recipe, a study, a run or a checkpoint in a run's folder; NULL: it is none of them. */
static const char *settings_of(const char *path, struct nr_arena *arena)
{
	static const char *const names[] = { "config.yaml", "study.yaml", NULL };
	path = nr_recipe_find(path, arena);
	if (access(path, R_OK)) return NULL;
	if (ends_with(path, ".yaml") || ends_with(path, ".yml")) return path;
	const bool folder = is_folder(path);
	const char *slash = strrchr(path, '/');
	for (int i = 0; (folder || ends_with(path, ".safetensors")) && names[i]; i++) {
		const char *file = folder ? nr_arena_printf(arena, "%s/%s", path, names[i])
			: nr_arena_printf(arena, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, names[i]);
		if (file && !access(file, R_OK)) return file;
	}
	return NULL;
}

static int load_of_argument(const char *text, bool warn, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_error why = { 0 };
	char line[2048];
	const char *file = settings_of(text, arena);
	if (!file || !nr_plugins_read(file, &why)) return NR_OK;
	if (!warn) {
		*err = why;
		return err->code;
	}
	nr_log_line(NR_LOG_WARNING, "%s", nr_error_text(&why, line, sizeof line));
	return NR_OK;
}

static int load_listed(const char *list, struct nr_arena *arena, struct nr_error *err)
{
	char *text = nr_arena_strdup(arena, list), *item;
	while ((item = strsep(&text, ":")))
		if (*item && nr_plugin_load(item, err)) return err->code;
	return NR_OK;
}

static bool given(int argc, char **argv, const char *flag)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], flag)) return true;
	return false;
}

/* The text behind `--name=` or in the argument after `--name`; NULL: it is another argument. */
static const char *value_of(int argc, char **argv, int i, const char *flag)
{
	const size_t n = strlen(flag);
	if (!strncmp(argv[i], flag, n) && argv[i][n] == '=') return argv[i] + n + 1;
	return i > 0 && i < argc && !strcmp(argv[i - 1], flag) ? argv[i] : NULL;
}

int cli_plugins_open(int argc, char **argv, struct nr_arena *arena, struct nr_error *err)
{
	const char *listed = getenv("NORMA_PLUGINS");
	const int at = cli_leading(argc, argv);
	const bool warn = at < argc && cli_reads_records(argv[at]), resume = given(argc, argv, "--resume");
	nr_plugins_allow_changed(given(argc, argv, "--allow-changed-plugins"));
	if (listed && load_listed(listed, arena, err)) return err->code;
	for (int i = 0; i < argc && strcmp(argv[i], "--"); i++) {
		const char *path = value_of(argc, argv, i, "--plugin");
		if (path && nr_plugin_load(path, err)) return err->code;
	}
	for (int i = 0; i < argc; i++) {
		const bool out = value_of(argc, argv, i, "--out");         /* what is there is not read, unless the run goes on */
		const char *equals = *argv[i] == '-' ? strchr(argv[i], '=') : NULL, *text = equals ? equals + 1 : argv[i];
		if (i == at || (out && !resume) || value_of(argc, argv, i, "--plugin") || (*argv[i] == '-' && !equals)) continue;
		if (load_of_argument(text, warn, arena, err)) return err->code;
	}
	return NR_OK;
}
