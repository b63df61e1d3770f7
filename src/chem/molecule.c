/* SMILES to a molecule: the stages in the order of RDKit's MolFromSmiles. */
#include <string.h>

#include "chem/smiles.h"

int nr_molecule_connect(struct nr_molecule *m, struct nr_error *err)
{
	m->incident = nr_arena_alloc(m->arena, (2 * (size_t)m->bonds + 1) * sizeof *m->incident);
	if (!m->incident) return nr_fail(err, NR_EMEMORY, "cannot read molecule", NULL, "out of memory");
	for (int32_t i = 0; i < m->atoms; i++) m->atom[i].degree = 0;
	for (int32_t i = 0; i < m->bonds; i++) {
		m->atom[m->bond[i].from].degree++;
		m->atom[m->bond[i].to].degree++;
	}
	int32_t at = 0;
	for (int32_t i = 0; i < m->atoms; i++) {
		m->atom[i].first = at;
		at += m->atom[i].degree;
		m->atom[i].degree = 0;
	}
	for (int32_t i = 0; i < m->bonds; i++) {
		struct nr_atom *ends[2] = { &m->atom[m->bond[i].from], &m->atom[m->bond[i].to] };
		for (int j = 0; j < 2; j++) m->incident[ends[j]->first + ends[j]->degree++] = i;
	}
	return NR_OK;
}

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* Marks on atoms that are no tetrahedra. */
static void drop_flat_marks(struct nr_molecule *m)
{
	for (int32_t i = 0; i < m->atoms; i++) {
		struct nr_atom *a = &m->atom[i];
		if ((a->chirality == NR_CHIRAL_CW || a->chirality == NR_CHIRAL_CCW) && a->hybrid != NR_HYBRID_SP3)
			a->chirality = NR_CHIRAL_NONE;
	}
}

static int perceive(struct nr_molecule *m, struct nr_error *err)
{
	if (nr_hydrogens_absorb(m, err)) return err->code;
	nr_molecule_repair(m);
	if (nr_valences(m, true, err) || nr_rings(m, err) || nr_kekulise(m, err)) return err->code;
	for (int32_t i = 0; i < m->bonds; i++) m->bond[i].kekule = m->bond[i].order;
	nr_radicals(m);
	if (nr_aromaticity(m, err)) return err->code;
	nr_conjugation(m);
	nr_hybridisation(m);
	drop_flat_marks(m);
	nr_hydrogens_settle(m);
	if (nr_valences(m, true, err)) return err->code;
	return nr_stereo(m, err);
}

struct nr_smiles_span nr_smiles_span(const char *text, size_t size)
{
	struct nr_smiles_span s = { text, 0 };
	while (size && text && blank(*s.text)) s.text++, size--;
	while (text && s.size < size && !blank(s.text[s.size])) s.size++;
	return s;
}

struct nr_smiles_span nr_smiles_name(const char *text, size_t size)
{
	const struct nr_smiles_span s = nr_smiles_span(text, size);
	struct nr_smiles_span name = { s.text + s.size, (size_t)(text + size - s.text) - s.size };
	while (name.size && blank(*name.text)) name.text++, name.size--;
	while (name.size && blank(name.text[name.size - 1])) name.size--;
	return name;
}

int nr_molecule_read(struct nr_molecule *m, struct nr_arena *arena, const char *text, size_t size, struct nr_error *err)
{
	const struct nr_smiles_span span = nr_smiles_span(text, size);
	const size_t length = span.size;
	*m = (struct nr_molecule){ .arena = arena, .text = span.text,
		.length = (int32_t)(length < NR_SMILES_LENGTH ? length : NR_SMILES_LENGTH) };
	if (!length) return nr_fail(err, NR_EFORMAT, "cannot read molecule", NULL, "column 1: no atoms");
	if (length > NR_SMILES_LENGTH)
		return nr_molecule_fail(m, NR_SMILES_LENGTH + 1, err, "%zu characters, more than %d", length, NR_SMILES_LENGTH);
	struct nr_smiles s = { .of = m };
	if (nr_smiles_read(&s, err) || nr_smiles_close(&s, err)) return err->code;
	return perceive(m, err);
}
