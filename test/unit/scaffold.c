/* chem/scaffold.c and data/molecules_split.c: what molecules have in common, and sets divided by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "chem/scaffold.h"
#include "data/molecules_split.h"

static uint64_t key_of(const char *smiles)
{
	struct nr_arena *arena = nr_arena_make();
	struct nr_molecule m;
	struct nr_error err = { 0 };
	uint64_t key = 1;
	if (nr_molecule_read(&m, arena, smiles, strlen(smiles), &err) || nr_scaffold(&m, arena, &key, &err))
		fail_msg("%s: %s", smiles, err.detail);
	nr_arena_free(arena);
	return key;
}

static void side_chains_and_the_way_of_writing_do_not_matter(void **state)
{
	(void)state;
	static const char *const benzenes[] = { "c1ccccc1", "Cc1ccccc1", "CCOc1ccc(N)cc1", "C1=CC=CC=C1Cl", "c1ccccc1C(=O)O" };
	for (int i = 1; i < 5; i++) assert_true(key_of(benzenes[i]) == key_of(benzenes[0]));
	assert_true(key_of("c1ccccc1CC1CCCC1") == key_of("CC1CCC(C1)C(O)c1ccc(Cl)cc1"));
	assert_true(key_of("CCCCCC") == 0 && key_of("CC(=O)O") == 0);
}

static void other_rings_links_and_double_bonds_are_other_scaffolds(void **state)
{
	(void)state;
	static const char *const all[] = { "c1ccccc1", "C1CCCCC1", "c1ccncc1", "c1ccc2ccccc2c1", "C1CCCCC1=O", "c1ccccc1Cc1ccccc1",
		"c1ccccc1CCc1ccccc1", "c1ccccc1C=Cc1ccccc1", "c1ccccc1C(=O)c1ccccc1", "c1ccccc1-c1ccccc1", "C1CC1", "C1CCC1",
		"c1cnccn1", "c1ccnnc1" };
	enum { N = sizeof all / sizeof *all };
	for (int i = 0; i < N; i++)
		for (int j = 0; j < i; j++)
			if (key_of(all[i]) == key_of(all[j])) fail_msg("%s and %s", all[i], all[j]);
}

static struct nr_molecules *set_of(const char *const *smiles, int n)
{
	struct nr_smiles_span line[64];
	struct nr_molecules *m;
	struct nr_error err = { 0 };
	for (int i = 0; i < n; i++) line[i] = (struct nr_smiles_span){ smiles[i], strlen(smiles[i]) };
	if (nr_molecules_make(&m, &(struct nr_molecules_config){ 0 }, line, n, &err)) fail_msg("%s", err.detail);
	return m;
}

static void frequent_scaffolds_train_and_none_is_in_two_splits(void **state)
{
	(void)state;
	static const char *const smiles[] = { "C1CC1", "Cc1ccccc1", "CC1CC1", "Oc1ccccc1", "C1CCCCC1", "Nc1ccccc1", "Clc1ccccc1",
		"Fc1ccccc1", "Brc1ccccc1", "c1ccccc1" };
	struct nr_molecules *m = set_of(smiles, 10);
	assert_int_equal(nr_molecules_split_scaffold(m, 0.2, 0.1, NULL), 0);
	assert_true(m->count[NR_MOL_TRAIN] == 7 && m->count[NR_MOL_VALID] == 2 && m->count[NR_MOL_TEST] == 1);
	for (int i = 0; i < 10; i++)
		assert_int_equal(m->split[i], strstr(smiles[i], "c1ccccc1") ? NR_MOL_TRAIN : strlen(smiles[i]) < 7
			? NR_MOL_VALID : NR_MOL_TEST);
	nr_molecules_close(m);
}

static void at_random_a_molecule_stays_and_little_sets_have_both_splits(void **state)
{
	(void)state;
	static const char *const smiles[] = { "C", "CC", "CCC", "CCCC", "CCCCC", "CCO", "CCN", "CO", "CN", "OCCO", "C", "CC" };
	struct nr_molecules *few = set_of(smiles, 3), *more = set_of(smiles, 12);
	assert_int_equal(nr_molecules_split_random(few, 0.1, 0, NULL), 0);
	assert_true(few->count[NR_MOL_VALID] == 1 && few->count[NR_MOL_TRAIN] == 2);
	assert_int_equal(nr_molecules_split_random(more, 0.5, 0, NULL), 0);
	assert_true(more->count[NR_MOL_VALID] > 0 && more->count[NR_MOL_TRAIN] > 0);
	assert_int_equal(more->split[0], more->split[10]);      /* the same molecule twice */
	assert_int_equal(more->split[1], more->split[11]);
	nr_molecules_close(few);
	nr_molecules_close(more);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(side_chains_and_the_way_of_writing_do_not_matter),
		cmocka_unit_test(other_rings_links_and_double_bonds_are_other_scaffolds),
		cmocka_unit_test(frequent_scaffolds_train_and_none_is_in_two_splits),
		cmocka_unit_test(at_random_a_molecule_stays_and_little_sets_have_both_splits) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
