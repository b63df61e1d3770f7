/* SMILES text to atoms and bonds: chains, branches, brackets, dots and open ring closures.
 * D. Weininger, SMILES, a chemical language and information system, 1988; with the extensions that RDKit reads: %(nnn), dative
 * bonds -> and <-, any bond ~, [#6], and the classes @TH @AL @SP @TB @OH. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "chem/elements.h"
#include "chem/smiles.h"

struct pending { uint8_t order, dir; bool given, loose, backwards; int32_t column; };

struct reader {
	struct nr_smiles *s;
	struct nr_molecule *m;
	const char *p, *end;
	int32_t last;                   /* the atom that the next one is bound to; -1: none */
	int32_t *branch, depth;
	struct pending bond;
	struct nr_error *err;
};

int nr_molecule_fail(const struct nr_molecule *m, int32_t column, struct nr_error *err, const char *fmt, ...)
{
	char text[200], subject[84];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	snprintf(subject, sizeof subject, "%.*s%s", m->length > 77 ? 77 : m->length, m->text, m->length > 77 ? "..." : "");
	for (char *c = subject; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~') *c = '?';
	return nr_fail(err, NR_EFORMAT, "cannot read molecule", subject, "column %d: %s", column, text);
}

static int32_t column(const struct reader *r) { return (int32_t)(r->p - r->m->text) + 1; }
static char peek(const struct reader *r) { return r->p < r->end ? *r->p : 0; }
static bool digit(char c) { return c >= '0' && c <= '9'; }

/* "no ring number" and the like, at the place where the reader is. */
static int wrong(struct reader *r, const char *what)
{
	if (r->p >= r->end) return nr_molecule_fail(r->m, column(r), r->err,
		"the text ends where %s is needed", what);
	const unsigned char c = (unsigned char)*r->p;
	if (c < ' ' || c > '~') return nr_molecule_fail(r->m, column(r), r->err,
		"byte 0x%02x where %s is needed", c, what);
	return nr_molecule_fail(r->m, column(r), r->err, "'%c' where %s is needed", c, what);
}

/* No leading zero, as RDKit has it. */
static int number(struct reader *r, int32_t *value)
{
	if (!digit(peek(r))) return wrong(r, "a number");
	int32_t v = *r->p++ - '0';
	while (v && v < 100000000 && digit(peek(r))) v = v * 10 + (*r->p++ - '0');
	if (digit(peek(r))) return wrong(r, "a number of at most nine digits without a leading zero");
	*value = v;
	return NR_OK;
}

/* ---- atoms ---------------------------------------------------------------------------------------------------------------- */

/* Lower case letters of aromatic atoms; the last three only in brackets. */
static const struct { char text[3]; uint8_t number; } aromatics[] = {
	{ "b", 5 }, { "c", 6 }, { "n", 7 }, { "o", 8 }, { "p", 15 }, { "s", 16 }, { "as", 33 }, { "se", 34 }, { "te", 52 }, { "si", 14 }
};

static bool aromatic(struct reader *r, struct nr_atom *a, bool bracket)
{
	int best = -1;
	for (int i = 0; i < (bracket ? 10 : 6); i++) {
		const size_t n = strlen(aromatics[i].text);
		if ((size_t)(r->end - r->p) >= n && !memcmp(r->p, aromatics[i].text, n)) best = i;
	}
	if (best < 0) return false;
	r->p += strlen(aromatics[best].text);
	a->number = aromatics[best].number;
	a->aromatic = true;
	return true;
}

static int symbol(struct reader *r, struct nr_atom *a)
{
	const char c = peek(r);
	if (c == '*') {
		r->p++;
		return NR_OK;
	}
	if (c == '#') {
		int32_t z;
		r->p++;
		if (number(r, &z)) return r->err->code;
		if (z >= NR_ELEMENTS) return nr_molecule_fail(r->m, column(r), r->err, "there is no element %d", z);
		a->number = (uint8_t)z;
		return NR_OK;
	}
	if (aromatic(r, a, true)) return NR_OK;
	static const char provisional[] = "nubtqphso";          /* Uun, Uuu ... Uuo: names of 110 to 118 that are out of use */
	const char *third = r->end - r->p > 2 && !memcmp(r->p, "Uu", 2) ? strchr(provisional, r->p[2]) : NULL;
	if (third && *third) {
		r->p += 3;
		a->number = (uint8_t)(110 + (third - provisional));
		return NR_OK;
	}
	const bool two = r->end - r->p > 1 && r->p[1] >= 'a' && r->p[1] <= 'z';
	int z = two ? nr_element_find(r->p, 2) : -1;
	const int size = z > 0 ? 2 : 1;
	if (z < 0 && c >= 'A' && c <= 'Z') z = nr_element_find(r->p, 1);
	if (z < 0 && ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')))
		return nr_molecule_fail(r->m, column(r), r->err, "'%.*s' is not an element", two ? 2 : 1, r->p);
	if (z < 0) return wrong(r, "an element");
	r->p += size;
	a->number = (uint8_t)z;
	return NR_OK;
}

static int chirality(struct reader *r, struct nr_atom *a)
{
	static const struct { char text[3]; uint8_t kind; int most; } classes[] = {
		{ "TH", NR_CHIRAL_CCW, 2 }, { "AL", NR_CHIRAL_NONE, 2 }, { "SP", NR_CHIRAL_SQUARE, 3 },
		{ "TB", NR_CHIRAL_BIPYRAMID, 20 }, { "OH", NR_CHIRAL_OCTAHEDRON, 30 }
	};
	if (peek(r) != '@') return NR_OK;
	r->p++;
	a->chirality = NR_CHIRAL_CCW;
	if (peek(r) == '@') {
		r->p++;
		a->chirality = NR_CHIRAL_CW;
		return NR_OK;
	}
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
		if (r->end - r->p < 2 || memcmp(r->p, classes[i].text, 2)) continue;
		const int32_t at = column(r);
		int32_t which = 1;
		r->p += 2;
		if (digit(peek(r)) && number(r, &which)) return r->err->code;
		if (which < 1 || which > classes[i].most)
			return nr_molecule_fail(r->m, at, r->err,
				"@%s must be from 1 to %d", classes[i].text, classes[i].most);
		a->chirality = classes[i].kind == NR_CHIRAL_CCW && which == 2 ? NR_CHIRAL_CW : classes[i].kind;
	}
	return NR_OK;
}

static int charge(struct reader *r, struct nr_atom *a)
{
	const char sign = peek(r);
	if (sign != '+' && sign != '-') return NR_OK;
	int32_t n = 0;
	while (n < 2 && peek(r) == sign) {
		r->p++;
		n++;
	}
	if (n == 1 && digit(peek(r)) && number(r, &n)) return r->err->code;
	if (n > 127) return nr_molecule_fail(r->m, column(r), r->err, "a charge of %d", n);
	a->charge = sign == '+' ? n : -n;
	return NR_OK;
}

static int bracket(struct reader *r, struct nr_atom *a)
{
	int32_t n = 0;
	r->p++;
	if (digit(peek(r)) && number(r, &n)) return r->err->code;
	a->isotope = (uint16_t)n;                       /* beyond 16 bits as RDKit has it */
	a->fixed = true;
	const bool hydrogen = peek(r) == 'H';
	if (symbol(r, a)) return r->err->code;
	if (hydrogen && a->number == 1 && peek(r) == '@') return nr_molecule_fail(r->m, column(r), r->err,
		"hydrogen cannot be a stereo centre");
	if (chirality(r, a)) return r->err->code;
	if (peek(r) == 'H') {
		r->p++;
		a->hydrogens = 1;
		if (digit(peek(r)) && number(r, &a->hydrogens)) return r->err->code;
	}
	if (charge(r, a)) return r->err->code;
	if (peek(r) == ':') {
		r->p++;
		if (number(r, &a->map)) return r->err->code;
	}
	if (peek(r) != ']') return wrong(r, "']'");
	r->p++;
	return NR_OK;
}

static int plain(struct reader *r, struct nr_atom *a)
{
	static const struct { char text[3]; uint8_t number; } organic[] = {     /* the longer ones first */
		{ "Cl", 17 }, { "Br", 35 }, { "B", 5 }, { "C", 6 }, { "N", 7 }, { "O", 8 }, { "P", 15 }, { "S", 16 },
		{ "F", 9 }, { "I", 53 }
	};
	if (peek(r) == '*') {
		r->p++;
		return NR_OK;
	}
	if (aromatic(r, a, false)) return NR_OK;
	for (size_t i = 0; i < sizeof organic / sizeof *organic; i++) {
		const size_t n = strlen(organic[i].text);
		if ((size_t)(r->end - r->p) < n || memcmp(r->p, organic[i].text, n)) continue;
		a->number = organic[i].number;
		r->p += n;
		return NR_OK;
	}
	const char c = peek(r);
	if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) {
		nr_molecule_fail(r->m, column(r), r->err, "'%c' is not an atom outside brackets", c);
		return nr_hint(r->err, "write other elements as [Na], [Fe+2]");
	}
	return wrong(r, "an atom");
}

/* ---- bonds ---------------------------------------------------------------------------------------------------------------- */

/* Reads a bond symbol if one stands here. */
static void bond(struct reader *r)
{
	struct pending b = { .order = NR_BOND_SINGLE, .given = true, .column = column(r) };
	const char next = r->end - r->p > 1 ? r->p[1] : 0;
	int size = 1;
	switch (peek(r)) {
	case '-':
		if (next == '>') {
			b.order = NR_BOND_DATIVE;
			size = 2;
		}
		break;
	case '<':
		if (next != '-') return;
		b.order = NR_BOND_DATIVE;
		b.backwards = true;
		size = 2;
		break;
	case '=': b.order = NR_BOND_DOUBLE; break;
	case '#': b.order = NR_BOND_TRIPLE; break;
	case '$': b.order = NR_BOND_QUADRUPLE; break;
	case ':': b.order = NR_BOND_AROMATIC; break;
	case '~': b.order = NR_BOND_ANY; break;
	case '/':
		b.dir = NR_DIR_UP;
		b.loose = true;
		break;
	case '\\':
		b.dir = NR_DIR_DOWN;
		b.loose = true;
		size = next == '\\' ? 2 : 1;
		break;
	default: return;
	}
	r->p += size;
	r->bond = b;
}

static void add_bond(struct reader *r, int32_t from, int32_t to)
{
	struct nr_molecule *m = r->m;
	const struct pending *b = &r->bond;
	struct nr_bond *fresh = &m->bond[m->bonds];
	*fresh = (struct nr_bond){ .from = b->backwards ? to : from, .to = b->backwards ? from : to,
		.order = b->given ? b->order : NR_BOND_SINGLE, .dir = b->dir, .aromatic = b->given && b->order == NR_BOND_AROMATIC };
	r->s->loose[m->bonds++] = !b->given || b->loose;
	r->bond = (struct pending){ 0 };
}

/* A ring number behind a branch stands after the neighbours that @ looks along, not before them: one swap. */
static void turn_late(struct reader *r)
{
	const struct nr_molecule *m = r->m;
	struct nr_atom *a = &r->m->atom[r->last];
	int32_t degree = 0;
	if (r->last == m->atoms - 1 || (a->chirality != NR_CHIRAL_CW && a->chirality != NR_CHIRAL_CCW)) return;
	for (int32_t b = 0; b < m->bonds; b++) degree += m->bond[b].from == r->last || m->bond[b].to == r->last;
	if (degree == 1 || (degree == 2 && r->last) || (degree == 3 && !r->last))
		a->chirality = a->chirality == NR_CHIRAL_CW ? NR_CHIRAL_CCW : NR_CHIRAL_CW;
}

static int ring_number(struct reader *r)
{
	struct nr_smiles *s = r->s;
	struct nr_closure *c = &s->closure[s->closures];
	*c = (struct nr_closure){ .atom = r->last, .column = column(r), .bond = -1, .next = -1,
		.order = r->bond.given && r->bond.order != NR_BOND_ANY ? r->bond.order : NR_BOND_SINGLE,       /* '~' means '-' here */
		.dir = r->bond.dir, .loose = !r->bond.given || r->bond.loose, .backwards = r->bond.backwards };
	turn_late(r);
	if (*r->p != '%') {
		c->number = *r->p++ - '0';
	} else if (r->end - r->p > 1 && r->p[1] == '(') {
		r->p += 2;
		if (!digit(peek(r))) return wrong(r, "a number");
		for (int n = 0; n < 5 && digit(peek(r)); n++) c->number = c->number * 10 + (*r->p++ - '0');
		if (peek(r) != ')') return wrong(r, "')'");
		r->p++;
	} else {
		r->p++;
		if (r->end - r->p < 2 || !digit(r->p[0]) || r->p[0] == '0' || !digit(r->p[1]))
			return wrong(r, "a ring number of two digits after '%'");
		c->number = (r->p[0] - '0') * 10 + (r->p[1] - '0');
		r->p += 2;
	}
	int32_t *link = &s->first[r->last];
	while (*link >= 0) link = &s->closure[*link].next;
	*link = s->closures++;
	r->bond = (struct pending){ 0 };
	return NR_OK;
}

/* ---- the chain ------------------------------------------------------------------------------------------------------------ */

static int atom(struct reader *r, bool leads)
{
	struct nr_molecule *m = r->m;
	if (m->atoms >= NR_SMILES_ATOMS)
		return nr_molecule_fail(m, column(r), r->err, "more than %d atoms", NR_SMILES_ATOMS);
	const int32_t me = m->atoms;
	struct nr_atom *a = &m->atom[me];
	*a = (struct nr_atom){ .column = column(r), .map = -1, .leads = leads };
	r->s->first[me] = -1;
	if (peek(r) == '[' ? bracket(r, a) : plain(r, a)) return r->err->code;
	m->atoms++;
	if (!leads) add_bond(r, r->last, me);
	r->last = me;
	return NR_OK;
}

static int step(struct reader *r)
{
	const char c = *r->p;
	if (digit(c) || c == '%') return ring_number(r);
	if (r->bond.given) return atom(r, false);
	if (c == '(') {
		r->branch[r->depth++] = r->last;
		r->p++;
		bond(r);
		return atom(r, false);
	}
	if (c == ')') {
		if (!r->depth) return nr_molecule_fail(r->m, column(r), r->err, "')' without '('");
		r->last = r->branch[--r->depth];
		r->p++;
		return NR_OK;
	}
	if (c == '.') {
		r->p++;
		return atom(r, true);
	}
	bond(r);
	return r->bond.given ? NR_OK : atom(r, false);
}

int nr_smiles_read(struct nr_smiles *s, struct nr_error *err)
{
	struct nr_molecule *m = s->of;
	const size_t n = (size_t)m->length + 1, atoms = n < NR_SMILES_ATOMS ? n : NR_SMILES_ATOMS;
	struct reader r = { .s = s, .m = m, .p = m->text, .end = m->text + m->length, .last = -1, .err = err };
	m->atom = nr_arena_alloc(m->arena, atoms * sizeof *m->atom);
	m->bond = nr_arena_alloc(m->arena, (atoms + n) * sizeof *m->bond);
	s->loose = nr_arena_alloc(m->arena, (atoms + n) * sizeof *s->loose);
	s->closure = nr_arena_alloc(m->arena, n * sizeof *s->closure);
	s->first = nr_arena_alloc(m->arena, atoms * sizeof *s->first);
	r.branch = nr_arena_alloc(m->arena, n * sizeof *r.branch);
	if (!m->atom || !m->bond || !s->loose || !s->closure || !s->first || !r.branch)
		return nr_fail(err, NR_EMEMORY, "cannot read molecule", NULL, "out of memory");
	int e = atom(&r, true);
	while (!e && r.p < r.end) e = step(&r);
	if (e) return e;
	if (r.bond.given) return wrong(&r, "an atom");
	if (r.depth) return nr_molecule_fail(m, m->length + 1, err, "%d '(' without ')'", r.depth);
	return NR_OK;
}
