/* src/data/layout*.c, src/draw/structure.c, src/chem/depict.c: molecules in the plane, and their formulas. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/depict.h"
#include "chem/layout.h"
#include "unit/arena.h"

struct drawn { struct nr_molecule m; struct nr_layout l; struct nr_layout_faults f; };

static struct drawn lay_out(const char *smiles)
{
	struct drawn d;
	struct nr_error err = { 0 };
	char line[1536];
	if (nr_molecule_read(&d.m, arena, smiles, strlen(smiles), &err) || nr_molecule_layout(&d.l, &d.m, arena, &err))
		fail_msg("%s", nr_error_text(&err, line, sizeof line));
	for (int32_t i = 0; i < d.m.atoms; i++) assert_true(isfinite(d.l.at[i].x) && isfinite(d.l.at[i].y));
	d.f = nr_layout_faults(&d.l, &d.m, .4);
	return d;
}

static double apart(const struct drawn *d, int a, int b) { return nr_place_length(nr_place_from(d->l.at[a], d->l.at[b])); }

/* Degrees at b between a and c. */
static double angle(const struct drawn *d, int a, int b, int c)
{
	const struct nr_place u = nr_place_unit(nr_place_from(d->l.at[b], d->l.at[a])),
		v = nr_place_unit(nr_place_from(d->l.at[b], d->l.at[c]));
	return acos(fmax(-1, fmin(1, u.x * v.x + u.y * v.y))) * 180 / M_PI;
}

static void chains_zigzag_and_triple_bonds_are_straight(void **state)
{
	(void)state;
	const struct drawn d = lay_out("CCCCCC");
	for (int i = 1; i < 5; i++) assert_float_equal(angle(&d, i - 1, i, i + 1), 120, 1e-6);
	assert_true(apart(&d, 0, 5) > 4);                       /* stretched, not curled up */
	assert_float_equal(d.f.shortest, 1, 1e-9);
	assert_float_equal(d.f.longest, 1, 1e-9);
	const struct drawn t = lay_out("CC#CC=C=C");
	assert_float_equal(angle(&t, 0, 1, 2), 180, 1e-6);
	assert_float_equal(angle(&t, 3, 4, 5), 180, 1e-6);
	assert_float_equal(angle(&t, 2, 3, 4), 120, 1e-6);
}

static void rings_are_regular_also_fused_and_spiro(void **state)
{
	(void)state;
	static const char *const all[] = { "C1CC1", "C1CCC1", "c1ccccc1", "C1CCCCCC1", "c1ccc2ccccc2c1", "C1CCC2(C1)CCCCC2",
		"c1cc2ccc3cccc4ccc(c1)c2c34",
		"C1CCCCCCCCCCC1", "c1ccc2c(c1)[nH]c1ccccc12" };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		const struct drawn d = lay_out(all[i]);
		assert_float_equal(d.f.shortest, 1, 1e-6);
		assert_float_equal(d.f.longest, 1, 1e-6);
		assert_int_equal(d.f.close + d.f.crossed, 0);
		assert_true(d.f.nearest > .99);
	}
	const struct drawn d = lay_out("c1ccccc1");
	for (int i = 0; i < 6; i++) assert_float_equal(angle(&d, i, (i + 1) % 6, (i + 2) % 6), 120, 1e-6);
}

static void substituents_point_away_from_their_ring(void **state)
{
	(void)state;
	const struct drawn d = lay_out("Cc1ccccc1");
	assert_float_equal(angle(&d, 0, 1, 2), 120, 1e-6);
	assert_float_equal(angle(&d, 0, 1, 6), 120, 1e-6);
	assert_float_equal(apart(&d, 0, 4), 3, 1e-6);
}

static void ordinary_molecules_have_room(void **state)
{
	(void)state;
	static const char *const all[] = { "CC(=O)Oc1ccccc1C(=O)O", "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
		"C[C@]12CC[C@H]3[C@H]([C@@H]1CC[C@@H]2O)CCC4=CC(=O)CC[C@]34C", "CCN(Cc1ccc(OC)c(OC)c1)C(=O)c1ccsc1",
		"CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O", "Cc1ccc(/C=C2\\SC(N3CC[NH2+]CC3)=NC2=O)cc1",
		"O=C(O)c1ccccc1C(=O)Nc1ccccc1C(F)(F)F", "CC(C)(C)C(C)(C)C(C)(C)C", "c1ccc(cc1)C(c1ccccc1)(c1ccccc1)c1ccccc1" };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		const struct drawn d = lay_out(all[i]);
		if (d.f.close || d.f.crossed || d.f.nearest < .5) fail_msg("%s: %d near, %d crossed", all[i], d.f.close, d.f.crossed);
		assert_true(d.f.shortest > .7 && d.f.longest < 1.3);
	}
}

static void bridges_cages_and_odd_things_have_places(void **state)
{
	(void)state;
	static const char *const all[] = { "C1CC2CCC1C2", "C1CC2CCC1CC2", "C1C2CC3CC1CC(C2)C3", "C12C3C4C1C5C2C3C45",
		"CN1CC[C@]23c4c5ccc(O)c4O[C@H]2[C@@H](O)C=C[C@H]3[C@H]1C5" };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		const struct drawn d = lay_out(all[i]);
		if (d.f.close) fail_msg("%s: %d near", all[i], d.f.close);
		assert_true(d.f.shortest > .4 && d.f.longest < 1.8);
	}
	lay_out("C");
	lay_out("[Na+].[Cl-].O");
	lay_out("F[U](F)(F)(F)(F)F");
	lay_out("*1CC1");
	lay_out("F[U](F)(F)(F)(F)(F)(F)(F)(F)(F)(F)(F)(F)(F)(F)(F)(F)(F)(F)C1CC1");     /* more than a drawing has directions for */
	char chain[4097];
	memset(chain, 'C', 4096);
	chain[4096] = 0;
	lay_out(chain);
}

/* The shortest of the bonds of an atom to the atoms from `first` up to `end`. */
static double shortest_to(const struct drawn *d, int atom, int first, int end)
{
	double least = INFINITY;
	for (int i = first; i < end; i++) least = fmin(least, apart(d, atom, i));
	return least;
}

/* Dative bonds close no ring, so a metal may have several neighbours in one system. It is placed once: what is moved as often as it was
 * placed would not stay a bond away from the metal. */
static void metals_may_hold_a_system_by_several_atoms(void **state)
{
	(void)state;
	const struct drawn ru = lay_out("c1cc2ccc3cccn4->[Ru]5(<-n6cccc7ccc8cccn->5c8c76)<-n(c1)c2c34");
	assert_float_equal(shortest_to(&ru, 10, 0, 10), 1, .01);        /* it is crowded: pushed apart in the end */
	assert_float_equal(shortest_to(&ru, 10, 11, 25), 1, .01);
	assert_true(ru.f.nearest > .25);
	assert_true(lay_out("Cl[Pt]12<-n3ccccc3-c3cccc(-c4ccccn->14)n->23").f.nearest > .25);
	/* a ring that is held by half of its atoms, and a larger one to begin with */
	enum { HELD = 14, LARGER = 40 };
	char text[1024] = "C1";
	size_t n = 2;
	for (int i = 0; i < LARGER - 2; i++) text[n++] = 'C';
	n += (size_t)snprintf(text + n, sizeof text - n, "C1[Pt]");
	for (int i = 0; i < HELD; i++) n += (size_t)snprintf(text + n, sizeof text - n, "<-%%%d", 20 + i);
	n += (size_t)snprintf(text + n, sizeof text - n, ".C3");
	for (int i = 0; i < HELD; i++) n += (size_t)snprintf(text + n, sizeof text - n, "[NH]->%%%dC", 20 + i);
	snprintf(text + n, sizeof text - n, "3");
	const struct drawn pt = lay_out(text);
	assert_int_equal(pt.m.atoms, LARGER + 1 + 2 * HELD + 1);
	assert_true(pt.f.nearest > .25);
}

static void what_is_not_to_be_relaxed_stays(void **state)
{
	(void)state;
	struct drawn d = lay_out("C1CC1CC1CC1");
	const int32_t first[] = { 0, 1, 2 };
	for (int32_t i = 0; i < d.m.atoms; i++) d.l.at[i] = nr_place_times(d.l.at[i], 4);
	const struct nr_place before[] = { d.l.at[4], d.l.at[5], d.l.at[6] };
	nr_layout_relax(&d.m, d.l.at, first, 3, 50);
	assert_float_equal(apart(&d, 0, 1), 1, .01);
	assert_memory_equal(before, d.l.at + 4, sizeof before);
}

/* Parts of a salt stand beside each other. */
static void components_do_not_meet(void **state)
{
	(void)state;
	const struct drawn d = lay_out("c1ccccc1C(=O)[O-].CC[N+](C)(C)C");
	assert_true(d.f.nearest > .7);
}

static bool same_side(const struct drawn *d, int a, int b, int c, int e)
{
	const struct nr_place along = nr_place_from(d->l.at[b], d->l.at[c]);
	return nr_place_cross(along, nr_place_from(d->l.at[b], d->l.at[a])) * nr_place_cross(along, nr_place_from(d->l.at[b],
		d->l.at[e])) > 0;
}

static void double_bonds_keep_their_sides(void **state)
{
	(void)state;
	const struct drawn trans = lay_out("F/C=C/F"), cis = lay_out("F/C=C\\F"), ring = lay_out("Cc1ccc(/C=C2\\SCNC2=O)cc1"),
			   other = lay_out("Cc1ccc(/C=C2/SCNC2=O)cc1");
	assert_false(same_side(&trans, 0, 1, 2, 3));
	assert_true(same_side(&cis, 0, 1, 2, 3));
	assert_true(same_side(&ring, 4, 5, 6, 7));
	assert_false(same_side(&other, 4, 5, 6, 7));
}

/* Which bond is the wedge does not matter, which way it goes does: mirror images differ in it. */
static void mirror_images_have_opposite_wedges(void **state)
{
	(void)state;
	const struct drawn a = lay_out("N[C@@H](C)C(=O)O"), b = lay_out("N[C@H](C)C(=O)O");
	int wedges = 0;
	for (int32_t i = 0; i < a.m.bonds; i++) {
		wedges += a.l.wedge[i] != NR_WEDGE_NONE;
		if (a.l.wedge[i]) assert_int_equal(a.l.wedge[i] + b.l.wedge[i], NR_WEDGE_UP + NR_WEDGE_DOWN);
		if (a.l.wedge[i]) assert_int_equal(a.l.narrow[i], 1);
	}
	assert_int_equal(wedges, 1);
	/* seen from N: H, CH3, COOH clockwise. With the wedge up, N, CH3 and COOH go round the centre against the clock */
	const struct nr_place o = a.l.at[1], n = nr_place_from(o, a.l.at[0]), methyl = nr_place_from(o, a.l.at[2]),
		acid = nr_place_from(o, a.l.at[3]);
	const bool against = nr_place_cross(n, methyl) > 0 && nr_place_cross(methyl, acid) > 0 && nr_place_cross(acid, n) > 0;
	const bool up = a.l.wedge[0] == NR_WEDGE_UP || a.l.wedge[1] == NR_WEDGE_UP || a.l.wedge[2] == NR_WEDGE_UP;
	assert_int_equal(against, !up);
}

static void the_same_text_has_the_same_bits(void **state)
{
	(void)state;
	const char *smiles = "CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O";
	const struct drawn a = lay_out(smiles), b = lay_out(smiles);
	assert_memory_equal(a.l.at, b.l.at, (size_t)a.m.atoms * sizeof *a.l.at);
}

/* ---- formulas ----------------------------------------------------------------------------------------------------------- */

static struct nr_str formula(const char *smiles, struct nr_size most, struct nr_size *size)
{
	struct nr_str s = { 0 };
	struct nr_error err = { 0 };
	assert_int_equal(nr_depict(&s, smiles, strlen(smiles), NULL, most, size, arena, &err), 0);
	assert_null(strstr(nr_str_text(&s), "nan"));
	return s;
}

static void formulas_have_letters_with_hydrogens_charges_and_isotopes(void **state)
{
	(void)state;
	struct nr_size size;
	struct nr_str s = formula("[2H]C([O-])CN", (struct nr_size){ 0, 0 }, &size);
	assert_non_null(strstr(s.text, "aria-label=\"[2H]C([O-])CN\""));
	assert_non_null(strstr(s.text, "<title>[2H]C([O-])CN</title>"));
	assert_non_null(strstr(s.text, ">2</tspan><tspan dy=\"4.7\">H</tspan>"));
	assert_non_null(strstr(s.text, ">O</tspan><tspan dy=\"-4.7\" font-size=\"9.4\">\xe2\x88\x92</tspan>"));
	assert_true(strstr(s.text, "<tspan>N</tspan><tspan>H</tspan>") || strstr(s.text, ">2</tspan><tspan dy=\"-2.9\">N</tspan>"));
	assert_null(strstr(s.text, ">C<"));
	nr_str_release(&s);
	s = formula("C", (struct nr_size){ 0, 0 }, &size);
	assert_non_null(strstr(s.text, "<tspan>C</tspan><tspan>H</tspan>"));
	nr_str_release(&s);
}

static void formulas_stay_in_their_frame(void **state)
{
	(void)state;
	struct nr_size size;
	struct nr_str s = formula("CCCCCCCCCCCCCCCCCCCCCCCCCC(=O)O", (struct nr_size){ 200, 100 }, &size);
	assert_true(size.w <= 201 && size.h <= 101);
	nr_str_release(&s);
}

static void what_is_no_molecule_is_not_drawn(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	struct nr_size size;
	struct nr_error err = { 0 };
	assert_int_not_equal(nr_depict(&s, "C1CC", 4, NULL, (struct nr_size){ 0, 0 }, &size, arena, &err), 0);
	assert_int_equal(s.len, 0);
	nr_str_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chains_zigzag_and_triple_bonds_are_straight),
		cmocka_unit_test(rings_are_regular_also_fused_and_spiro),
		cmocka_unit_test(substituents_point_away_from_their_ring),
		cmocka_unit_test(ordinary_molecules_have_room),
		cmocka_unit_test(bridges_cages_and_odd_things_have_places),
		cmocka_unit_test(metals_may_hold_a_system_by_several_atoms),
		cmocka_unit_test(what_is_not_to_be_relaxed_stays),
		cmocka_unit_test(components_do_not_meet),
		cmocka_unit_test(double_bonds_keep_their_sides),
		cmocka_unit_test(mirror_images_have_opposite_wedges),
		cmocka_unit_test(the_same_text_has_the_same_bits),
		cmocka_unit_test(formulas_have_letters_with_hydrogens_charges_and_isotopes),
		cmocka_unit_test(formulas_stay_in_their_frame),
		cmocka_unit_test(what_is_no_molecule_is_not_drawn),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
