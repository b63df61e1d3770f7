/* A first program with libnorma: the class of a picture, as `norma predict` names it.
 *
 *   cc first.c -o first $(pkg-config --cflags --libs norma) && ./first run/best.safetensors cat.jpg
 */
#include <norma/norma.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct nr_error err = { 0 };
	struct nr_weights *weights = NULL;
	struct nr_runner runner = { 0 };
	struct nr_answer best;
	char text[1024];
	if (argc != 3) return fprintf(stderr, "usage: %s WEIGHTS PICTURE\n", argv[0]), 2;
	if (nr_weights_open(&weights, argv[1], NULL, &err) || nr_runner_open(&runner, weights, 1, &err) ||
		nr_runner_classify(&runner, argv[2], &best, 1, &err))
		fprintf(stderr, "%s\n", nr_error_text(&err, text, sizeof text));
	else printf("class %d %s, probability %.4f\n", (int)best.number, best.name ? best.name : "", best.probability);
	nr_runner_close(&runner);
	nr_weights_close(weights);
	return err.code ? 1 : 0;
}
