/* Patterns of sites: `attn.in`, `blocks[0:6].attn.in`, `blocks[-1].*`, `decoder.**`.
 *
 * A pattern without star must match the end of a site's name; one with a star must match some run of its parts, and `*`
 * then wants a default site. Ranges are those of Python: [3], [a:b], [:b], [a:], negative numbers count from the end; [:25%] is a share
 * of all, to the nearest number. */
#include "norms/plan.h"

#include <ctype.h>
#include <stdlib.h>

struct range {
	int64_t from, to;
	bool one, open;                 /* open: no upper end given */
	bool from_share, to_share;      /* of 100 */
};

static bool read_range(const char *s, struct range *r, const char **end)
{
	char *at = NULL;
	*r = (struct range){ 0 };
	if (*s++ != '[') return false;
	if (*s != ':') {
		r->from = strtoll(s, &at, 10);
		if (at == s) return false;
		s = at + (r->from_share = *at == '%');
	}
	if (*s == ']') r->one = true;
	else if (*s++ != ':') return false;
	else if (*s == ']') r->open = true;
	else {
		r->to = strtoll(s, &at, 10);
		if (at == s) return false;
		s = at + (r->to_share = *at == '%');
	}
	*end = s + 1;
	return *s == ']';
}

static int64_t bound(int64_t i, bool share, int64_t of)
{
	if (share) return (i * of + 50) / 100;
	return i < 0 ? of + i : i;
}

static bool in_range(const struct range *r, int64_t i, int64_t of)
{
	if ((r->from < 0 || r->to < 0 || r->from_share || r->to_share) && !of) return false;
	const int64_t from = bound(r->from, r->from_share, of), to = bound(r->to, r->to_share, of);
	return r->one ? i == from : i >= from && (r->open || i < to);
}

/* Matches the pattern's parts, up to a star or its end, against the name from `s` on; where the match ends, or NULL. */
static const char *match_here(const char *p, const char *s, const struct nr_site_name *name)
{
	for (;;) {
		const size_t len = strcspn(p, ".["), got = strcspn(s, ".");
		if (*p == '*') return s;
		if (len != got || strncmp(p, s, len)) return NULL;
		p += len, s += got;
		if (*p == '[') {
			struct range r;
			char *end;
			if (*s++ != '.' || !isdigit((unsigned char)*s) || !read_range(p, &r, &p)) return NULL;
			const int64_t at = s - name->full, i = strtoll(s, &end, 10);
			if (!in_range(&r, i, name->of(name->context, at))) return NULL;
			s = end;
		}
		if (!*p || !*s) return *p ? NULL : s;
		if (*p++ != '.' || *s++ != '.') return NULL;
	}
}

/* Default sites are names, or names in some blocks: "blocks[1:].mlp.carry". */
static bool is_default(const struct nr_norm_plan *plan, const struct nr_site_name *name)
{
	for (int32_t i = 0; i < plan->n_sites; i++) {
		const char *site = plan->sites[i];
		if (strchr(site, '[') ? nr_pattern_match(plan, site, name) : !strcmp(site, name->local)) return true;
	}
	return false;
}

bool nr_pattern_match(const struct nr_norm_plan *plan, const char *p, const struct nr_site_name *name)
{
	const char *star = strchr(p, '*');
	if (star && !star[1] && !is_default(plan, name)) return false;
	if (star == p) return true;
	for (const char *s = name->full; s; s = strchr(s, '.') ? strchr(s, '.') + 1 : NULL) {
		const char *end = match_here(p, s, name);
		if (end && (star || !*end)) return true;
	}
	return false;
}

char *nr_pattern_of(const char *site, struct nr_arena *arena)
{
	char *out = nr_arena_alloc(arena, 2 * strlen(site) + 1), *to = out;
	while (out && *site) {
		const size_t digits = *site == '.' ? strspn(site + 1, "0123456789") : 0;
		if (digits) {
			to += sprintf(to, "[%.*s]", (int)digits, site + 1);
			site += digits + 1;
		} else {
			*to++ = *site++;
		}
	}
	if (out) *to = 0;
	return out;
}

int nr_pattern_check(const char *p, struct nr_error *err)
{
	const char *star = strchr(p, '*');
	if (star && star[1 + (star[1] == '*')])
		return nr_fail(err, NR_EVALUE, "cannot read the pattern", p,
			"a star must be at the end of a pattern");
	if (star && star > p && star[-1] != '.')
		return nr_fail(err, NR_EVALUE, "cannot read the pattern", p, "a star must follow a '.'");
	for (const char *s = p; *s; s++) {
		struct range r;
		if (*s == '[' && (s == p || !read_range(s, &r, &s)))
			return nr_fail(err, NR_EVALUE, "cannot read the pattern", p,
				"ranges look like [3], [0:6], [6:], [:4], [-2:] or [:25%%]");
		if (*s && !isalnum((unsigned char)*s) && !strchr("._*-[]", *s))
			return nr_fail(err, NR_EVALUE, "cannot read the pattern", p, "unexpected '%c'", *s);
		if (!*s) break;
	}
	return *p ? NR_OK : nr_fail(err, NR_EVALUE, "cannot read the pattern", p, "it is empty");
}
