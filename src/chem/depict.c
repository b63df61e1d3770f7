/* Structural formulas of molecules: see depict.h. */
#include "chem/depict.h"

#include <math.h>
#include <stdlib.h>

#include "chem/elements.h"
#include "chem/layout.h"
#include "draw/structure.h"

static bool has_letters(const struct nr_molecule *m, const struct nr_atom *a)
{
	return a->number != 6 || a->charge || a->isotope || a->radicals || !a->degree || m->atoms == 1;
}

/* The ring that the second line of a double bond is drawn into: a small one, better an aromatic one. */
static const struct nr_ring *ring_of(const struct nr_molecule *m, int32_t bond)
{
	const struct nr_ring *best = NULL;
	int32_t least = INT32_MAX;
	for (int32_t i = 0; i < m->rings; i++) {
		const struct nr_ring *r = &m->ring[i];
		bool in = false;
		int32_t plain = 0;
		for (int32_t k = 0; k < r->size; k++) in |= r->bond[k] == bond, plain += !m->bond[r->bond[k]].aromatic;
		if (in && 100 * (plain > 0) + abs(r->size - 6) < least) least = 100 * (plain > 0) + abs(r->size - 6), best = r;
	}
	return best;
}

/* Left (1) or right (-1) of the bond from its first atom; 0: it ends in an atom with no other bond, and has none in a ring. */
static int side_of(const struct nr_molecule *m, const struct nr_layout *l, int32_t bond)
{
	const struct nr_bond *b = &m->bond[bond];
	const struct nr_ring *r = b->in_ring ? ring_of(m, bond) : NULL;
	const struct nr_place from = l->at[b->from], along = nr_place_from(from, l->at[b->to]);
	double sum = 0;
	if (r) {
		for (int32_t i = 0; i < r->size; i++) sum += nr_place_cross(along, nr_place_from(from, l->at[r->atom[i]]));
		return sum > 0 ? 1 : -1;
	}
	const struct nr_atom *ends[2] = { &m->atom[b->from], &m->atom[b->to] };
	if (ends[0]->degree < 2 || ends[1]->degree < 2) return 0;
	if (ends[0]->degree == 3 && ends[1]->degree == 3) return 0;
	for (int k = 0; k < 2; k++)
		for (int32_t i = 0; i < ends[k]->degree; i++) {
			const int32_t atom = k ? b->to : b->from, other = nr_bond_other(nr_bond_of(m, ends[k], i), atom);
			sum += nr_place_cross(along, nr_place_from(from, l->at[other]));
		}
	return fabs(sum) < .1 ? 1 : sum > 0 ? 1 : -1;
}

static void fill_bond(struct nr_structure_bond *to, const struct nr_molecule *m, const struct nr_layout *l, int32_t i)
{
	const struct nr_bond *b = &m->bond[i];
	*to = (struct nr_structure_bond){ .from = b->from, .to = b->to, .kind = NR_DRAW_SINGLE };
	if (b->order == NR_BOND_DATIVE) to->kind = NR_DRAW_DATIVE;
	else if (b->kekule == 2) to->kind = NR_DRAW_DOUBLE, to->side = side_of(m, l, i);
	else if (b->kekule >= 3) to->kind = NR_DRAW_TRIPLE;
	else if (l->wedge[i]) {
		to->kind = l->wedge[i] == NR_WEDGE_UP ? NR_DRAW_UP : NR_DRAW_DOWN;
		if (l->narrow[i] != b->from) to->from = b->to, to->to = b->from;
	}
}

static int draw(struct nr_str *s, const struct nr_molecule *m, const char *name, struct nr_size most, struct nr_size *drawn,
	struct nr_arena *arena, struct nr_error *err)
{
	struct nr_layout l;
	struct nr_structure_atom *atom = nr_arena_alloc(arena, (size_t)(m->atoms + 1) * sizeof *atom);
	struct nr_structure_bond *bond = nr_arena_alloc(arena, (size_t)(m->bonds + 1) * sizeof *bond);
	if (!name) name = nr_arena_printf(arena, "%.*s", m->length, m->text);
	if (!atom || !bond || !name) return nr_fail(err, NR_EMEMORY, "cannot draw molecule", NULL, "out of memory");
	if (nr_molecule_layout(&l, m, arena, err)) return err->code;
	for (int32_t i = 0; i < m->atoms; i++) {
		const struct nr_atom *a = &m->atom[i];
		atom[i] = (struct nr_structure_atom){ .x = l.at[i].x, .y = l.at[i].y, .hydrogens = nr_all_hydrogens(a), .charge = a->charge,
			.isotope = a->isotope, .radicals = a->radicals,
			.symbol = !has_letters(m, a) ? NULL : a->number ? nr_elements[a->number].symbol : "*" };
	}
	for (int32_t i = 0; i < m->bonds; i++) fill_bond(&bond[i], m, &l, i);
	*drawn = nr_svg_structure(s, &(struct nr_structure){ .name = name, .atom = atom, .bond = bond, .atoms = m->atoms, .bonds = m->bonds,
		.most_w = most.w, .most_h = most.h });
	return s->failed ? nr_fail(err, NR_EMEMORY, "cannot draw molecule", NULL, "out of memory") : NR_OK;
}

int nr_depict(struct nr_str *s, const char *smiles, size_t size, const char *name, struct nr_size most, struct nr_size *drawn,
	struct nr_arena *arena, struct nr_error *err)
{
	struct nr_molecule m;
	const struct nr_mark mark = nr_arena_mark(arena);
	int code = nr_molecule_read(&m, arena, smiles, size, err);
	if (!code) code = draw(s, &m, name, most, drawn, arena, err);
	nr_arena_reset(arena, mark);
	return code;
}

int nr_depict_on_sheet(struct nr_sheet *sheet, int64_t number, const char *smiles, size_t size, const char *title, struct nr_arena *arena,
	struct nr_error *err)
{
	enum { COLUMNS = 4 };
	const struct nr_size cell = { 230, 180 };
	struct nr_size ignored;
	if (nr_depict(&sheet->panel, smiles, size, NULL, cell, &ignored, arena, err)) {
		nr_str_release(&sheet->panel);
		return err->code;
	}
	if (number && number % COLUMNS == 0) nr_sheet_row(sheet);
	nr_sheet_put(sheet, title, cell);
	return NR_OK;
}
