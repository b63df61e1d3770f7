/* SMILES: molecules whose features are known, what is refused and where, and graphs with their shortest paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/molgraph.h"
#include "unit/arena.h"

static struct nr_molecule molecule(const char *text)
{
	struct nr_molecule m;
	struct nr_error err = { 0 };
	char line[1536];
	if (nr_molecule_read(&m, arena, text, strlen(text), &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return m;
}

/* hydrogens, aromatic, in_ring, hybrid of atom i */
static void atom_is(const struct nr_molecule *m, int i, int hydrogens, bool aromatic, bool in_ring, int hybrid)
{
	const struct nr_atom *a = &m->atom[i];
	assert_int_equal(nr_all_hydrogens(a), hydrogens);
	assert_int_equal(a->aromatic, aromatic);
	assert_int_equal(a->in_ring, in_ring);
	assert_int_equal(a->hybrid, hybrid);
}

static void hydrogens_fill_the_valence(void **state)
{
	(void)state;
	const struct nr_molecule m = molecule("CC(=O)N");
	atom_is(&m, 0, 3, false, false, NR_HYBRID_SP3);
	atom_is(&m, 1, 0, false, false, NR_HYBRID_SP2);
	atom_is(&m, 3, 2, false, false, NR_HYBRID_SP2);         /* an amide */
	assert_true(m.bond[1].conjugated && m.bond[2].conjugated && !m.bond[0].conjugated);
	const struct nr_molecule s = molecule("S(C)(C)=O");
	assert_int_equal(nr_all_hydrogens(&s.atom[0]), 0);
}

static void kekule_forms_become_aromatic(void **state)
{
	(void)state;
	const struct nr_molecule a = molecule("C1=CC=CC=C1"), b = molecule("c1ccccc1");
	for (int i = 0; i < 6; i++) {
		atom_is(&a, i, 1, true, true, NR_HYBRID_SP2);
		assert_int_equal(a.bond[i].order, NR_BOND_AROMATIC);
		assert_int_equal(b.bond[i].order, NR_BOND_AROMATIC);
	}
	const struct nr_molecule caffeine = molecule("CN1C=NC2=C1C(=O)N(C(=O)N2C)C");
	assert_true(caffeine.atom[1].aromatic && caffeine.atom[6].aromatic && !caffeine.atom[7].aromatic);
	const struct nr_molecule quinone = molecule("O=C1C=CC(=O)C=C1");
	assert_false(quinone.atom[1].aromatic);
}

static void fused_rings_count_their_rim(void **state)
{
	(void)state;
	const struct nr_molecule azulene = molecule("C1=CC2=CC=CC=CC2=C1");
	for (int i = 0; i < 10; i++) assert_true(azulene.atom[i].aromatic);
	int inner = 0;
	for (int i = 0; i < azulene.bonds; i++) inner += azulene.bond[i].order != NR_BOND_AROMATIC;
	assert_int_equal(inner, 1);                             /* only ten electrons around make it so */
	assert_int_equal(molecule("C1=CC=C1").atom[0].aromatic, 0);
	assert_int_equal(molecule("C12C3C4C1C5C2C3C45").rings, 6);
}

/* Where two forms are possible and the ring does not become aromatic, RDKit's is taken. */
static void kekule_forms_are_those_of_rdkit(void **state)
{
	(void)state;
	const struct nr_molecule four = molecule("c1cccc2ccc12");
	assert_int_equal(four.bond[4].order, NR_BOND_SINGLE);
	assert_int_equal(four.bond[5].order, NR_BOND_DOUBLE);
	const struct nr_molecule dummies = molecule("C[*]2ccc[*]c2");   /* the second one finds nothing and stays without */
	assert_int_equal(dummies.bond[1].order, NR_BOND_DOUBLE);
	assert_int_equal(dummies.bond[3].order, NR_BOND_DOUBLE);
	assert_int_equal(dummies.bond[4].order, NR_BOND_SINGLE);
	assert_int_equal(molecule("*1cccc1").atom[0].aromatic, 1);      /* 4 + 2 electrons */
	assert_int_equal(molecule("*1cccccc1").atom[0].aromatic, 0);    /* 6 + 1 or 2 */
	assert_int_equal(molecule("C1=C**O1").atom[0].aromatic, 0);     /* two unknown */
	assert_int_equal(molecule("[nH]1cccccccc1").atom[0].aromatic, 1);
	assert_int_equal(molecule("o1cccccccc1").atom[0].aromatic, 0);  /* not around a large ring */
}

static void ring_closures_come_last_by_number(void **state)
{
	(void)state;
	const struct nr_molecule m = molecule("C2CC1CC2C1");
	assert_int_equal(m.bond[m.bonds - 2].from, 5);
	assert_int_equal(m.bond[m.bonds - 2].to, 2);
	assert_int_equal(m.bond[m.bonds - 1].from, 4);
	assert_int_equal(m.bond[m.bonds - 1].to, 0);
	const struct nr_molecule wide = molecule("C%12CC%(12)");
	assert_int_equal(wide.bonds, 3);
	assert_int_equal(molecule("C1CC%(001)").bonds, 3);
	const struct nr_molecule given = molecule("N2CC[Fe]<-2"), any = molecule("C~2CCO2");
	assert_int_equal(given.bond[3].order, NR_BOND_DATIVE);
	assert_int_equal(given.bond[3].from, 0);
	assert_int_equal(any.bond[3].order, NR_BOND_SINGLE);
}

static void only_real_centres_keep_their_mark(void **state)
{
	(void)state;
	assert_int_equal(molecule("N[C@@H](C)C(=O)O").atom[1].chirality, NR_CHIRAL_CW);
	assert_int_equal(molecule("C[C@H](C)O").atom[1].chirality, NR_CHIRAL_NONE);
	assert_int_equal(molecule("C[C@](F)([H])Cl").atom[1].chirality, NR_CHIRAL_CW);  /* the hydrogen goes, the hand turns */
	const struct nr_molecule ring = molecule("C1C[C@H](F)CC[C@H]1C");               /* cis and trans */
	assert_int_equal(ring.atom[2].chirality, NR_CHIRAL_CCW);
	assert_int_equal(ring.atom[6].chirality, NR_CHIRAL_CW);
	assert_int_equal(molecule("C[C@](F)(Cl)1.Br1").atom[1].chirality, NR_CHIRAL_CCW);       /* the number behind branches */
	assert_int_equal(molecule("C[C@](F)1Cl.Br1").atom[1].chirality, NR_CHIRAL_CW);
	assert_int_equal(molecule("OC(Cl)=[C@AL1]=C(C)F").atom[3].chirality, NR_CHIRAL_NONE);
	const struct nr_molecule meso = molecule("C[C@H](O)C(O)[C@@H](O)C");
	assert_int_not_equal(meso.atom[1].chirality, NR_CHIRAL_NONE);
}

static void double_bonds_have_sides(void **state)
{
	(void)state;
	assert_int_equal(molecule("F/C=C/F").bond[1].stereo, NR_STEREO_E);
	assert_int_equal(molecule("F\\C=C/F").bond[1].stereo, NR_STEREO_Z);
	assert_int_equal(molecule("F/C=C/1CCCCO1").bond[1].stereo, NR_STEREO_E);
	assert_int_equal(molecule("C/C(C)=C/F").bond[2].stereo, NR_STEREO_NONE);
	assert_int_equal(molecule("C1/C=C/CCC1").bond[1].stereo, NR_STEREO_NONE);       /* small rings have no choice */
	assert_int_equal(molecule("[H]/N=C/F").atoms, 4);                               /* that hydrogen says which side */
}

static void hydrogens_are_atoms_only_when_needed(void **state)
{
	(void)state;
	assert_int_equal(molecule("[H]O[H]").atoms, 1);
	assert_int_equal(molecule("[2H]O[2H]").atoms, 3);
	assert_int_equal(molecule("[H][H]").atoms, 2);
	assert_int_equal(molecule("[H]*").atoms, 2);
	assert_int_equal(molecule("C[H-]").atoms, 2);
	assert_int_equal(nr_all_hydrogens(&molecule("[H][N+]([H])([H])[H]").atom[0]), 4);
}

static void charges_radicals_and_metals(void **state)
{
	(void)state;
	const struct nr_molecule nitro = molecule("CN(=O)=O");
	assert_int_equal(nitro.atom[1].charge, 1);
	assert_int_equal(nitro.atom[2].charge, -1);
	assert_int_equal(molecule("[CH3]").atom[0].radicals, 1);
	assert_int_equal(molecule("[O][O]").atom[0].radicals, 1);
	const struct nr_molecule m = molecule("CN(C)(C)[Pt]");
	assert_int_equal(m.bond[3].order, NR_BOND_DATIVE);
	const struct nr_molecule bridged = molecule("Cl[Pd]1[Cl][Pd](Cl)[Cl]1");
	assert_int_equal(bridged.bond[1].order, NR_BOND_SINGLE);
	assert_int_equal(bridged.bond[2].order, NR_BOND_DATIVE);        /* to the last of two equal metals, then to the other */
	assert_int_equal(bridged.bond[5].order, NR_BOND_DATIVE);
	assert_int_equal(molecule("[He+4]").atom[0].charge, 4);
	assert_int_equal(molecule("[Uuo]").atom[0].number, 118);
	assert_int_equal(molecule("*C").atom[0].number, 0);
}

static void errors_name_the_column(void **state)
{
	(void)state;
	static const struct { const char *text, *says; } bad[] = {
		{ "CC(C", "column 5: 1 '(' without ')'" }, { "C1CC", "column 2: ring 1 is opened but not closed" },
		{ "CC)C", "column 3: ')' without '('" }, { "C[Xx]C", "column 3: 'Xx' is not an element" },
		{ "CZ", "column 2: 'Z' is not an atom outside brackets" }, { "C(C)(C)(C)(C)C", "column 1: C has 5 bonds" },
		{ "c1cccc1", "no place for the double bond" }, { "cC", "column 1: aromatic C is in no ring" },
		{ "C1C1", "joins two atoms that are already bonded" }, { "C11", "joins an atom to itself" }, { "C=", "the text ends" },
		{ "[CH4", "']'" }, { "C..C", "column 3" }, { "C\x80", "byte 0x80" }, { "", "no atoms" },
		{ "[Fe+++]", "column 6" }, { "C[H@+]C", "hydrogen cannot be a stereo centre" },
		{ "C[C@TH0](F)(Cl)Br", "@TH must be from 1 to 2" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct nr_molecule m;
		struct nr_error err = { 0 };
		assert_int_not_equal(nr_molecule_read(&m, arena, bad[i].text, strlen(bad[i].text), &err), 0);
		if (!strstr(err.detail, bad[i].says)) fail_msg("'%s': %s", bad[i].text, err.detail);
	}
}

static void huge_texts_are_refused(void **state)
{
	(void)state;
	const size_t n = 1 << 20;
	char *text = malloc(n);
	struct nr_molecule m;
	struct nr_error err = { 0 };
	memset(text, 'C', n);
	assert_int_equal(nr_molecule_read(&m, arena, text, n, &err), NR_EFORMAT);
	assert_non_null(strstr(err.detail, "1048576 characters"));
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_molecule_read(&m, arena, text, 20000, &err), NR_EFORMAT);
	assert_non_null(strstr(err.detail, "more than 4096 atoms"));
	free(text);
}

static void zinc_types_of_atoms(void **state)
{
	(void)state;
	const struct nr_molecule m = molecule("C[C@H](O)C[NH2+]Cc1c[nH]cn1");
	struct nr_molgraph g;
	struct nr_error err = { 0 };
	assert_int_equal(nr_molgraph_zinc(&g, &m, arena, &err), 0);
	static const int32_t want[] = { 0, 4, 1, 0, 11, 0, 0, 0, 2, 0, 2 };
	assert_memory_equal(g.node, want, sizeof want);
	int32_t sum = 0;
	for (int i = 0; i < g.edges; i += 2) sum += g.edge[i];
	assert_int_equal(sum, 11 + 2);
	const struct nr_molecule silicon = molecule("C[SiH3]");
	assert_int_equal(nr_molgraph_zinc(&g, &silicon, arena, &err), NR_EFORMAT);
}

static void paths_follow_the_lowest_middle(void **state)
{
	(void)state;
	const struct nr_molecule m = molecule("C1CCC1.O");
	const struct nr_molgraph_offsets offsets = { 512, 512, 20 };
	struct nr_molgraph g;
	struct nr_molgraph_input in;
	struct nr_error err = { 0 };
	assert_int_equal(nr_molgraph_ogb(&g, &m, arena, &err), 0);
	g.edge[0] = g.edge[3] = 1;                              /* the bond 0-1 is told from the others */
	assert_int_equal(nr_molgraph_preprocess(&in, &g, &offsets, arena, &err), 0);
	assert_int_equal(in.longest, NR_PATH_EDGES);            /* a part cannot be reached */
	assert_int_equal(in.degree[0], 3);
	assert_int_equal(in.degree[4], 1);
	assert_int_equal(in.spatial[0 * 5 + 2], 3);
	assert_int_equal(in.spatial[0 * 5 + 4], 511);
	assert_int_equal(in.node[1], 0 + 2 + 512);
	const int32_t *opposite = in.path + (0 * 5 + 2) * 20 * 3;       /* 0 - 1 - 2, not 0 - 3 - 2 */
	assert_int_equal(opposite[0], 1 + 3);
	assert_int_equal(opposite[3], 0 + 3);
	assert_int_equal(opposite[6], 0);
	const int32_t *across = in.path + (1 * 5 + 3) * 20 * 3;         /* 1 - 0 - 3 */
	assert_int_equal(across[0], 1 + 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hydrogens_fill_the_valence), cmocka_unit_test(kekule_forms_become_aromatic),
		cmocka_unit_test(fused_rings_count_their_rim),
		cmocka_unit_test(kekule_forms_are_those_of_rdkit), cmocka_unit_test(ring_closures_come_last_by_number),
		cmocka_unit_test(only_real_centres_keep_their_mark), cmocka_unit_test(double_bonds_have_sides),
		cmocka_unit_test(hydrogens_are_atoms_only_when_needed), cmocka_unit_test(charges_radicals_and_metals),
		cmocka_unit_test(errors_name_the_column), cmocka_unit_test(huge_texts_are_refused), cmocka_unit_test(zinc_types_of_atoms),
		cmocka_unit_test(paths_follow_the_lowest_middle),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
