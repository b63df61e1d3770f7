/* What messages between two ranks of MPI cost, for docs/scaling.md: latency and bandwidth, both ways at once as in a sum, and sums.
 *
 *   mpicc -O3 bench/peers/link.c -o link && mpirun -n 2 ./link
 *
 * Prints for each size the median time of an exchange, in which either rank sends that many bytes to the other, and the line latency +
 * bytes / bandwidth: the latency from the smallest messages, the bandwidth from those of 4 MiB. Then the median time of a sum of so many
 * bytes by halving, as norma does it, and by MPI_Allreduce. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 32 << 20, REPS = 201 };

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double exchange(char *out, char *in, int bytes, int peer, int reps)
{
	static double took[REPS];
	for (int i = -3; i < reps; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		const double start = MPI_Wtime();
		MPI_Request r[2];
		MPI_Irecv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[0]);
		MPI_Isend(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[1]);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		if (i >= 0) took[i] = MPI_Wtime() - start;
	}
	qsort(took, (size_t)reps, sizeof *took, by_value);
	return took[reps / 2];
}

/* Either rank adds up one half and gets the other. */
static void halving(float *x, float *room, size_t n, int rank)
{
	const size_t half = n / 2, mine = rank ? n - half : half;
	float *keep = rank ? x + half : x, *give = rank ? x : x + half;
	MPI_Request r[2];
	MPI_Irecv(room, (int)(mine * sizeof *x), MPI_BYTE, !rank, 2, MPI_COMM_WORLD, &r[0]);
	MPI_Isend(give, (int)((n - mine) * sizeof *x), MPI_BYTE, !rank, 2, MPI_COMM_WORLD, &r[1]);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	for (size_t i = 0; i < mine; i++) keep[i] += room[i];
	MPI_Irecv(give, (int)((n - mine) * sizeof *x), MPI_BYTE, !rank, 3, MPI_COMM_WORLD, &r[0]);
	MPI_Isend(keep, (int)(mine * sizeof *x), MPI_BYTE, !rank, 3, MPI_COMM_WORLD, &r[1]);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

static double sum(float *x, float *room, size_t n, int rank, int theirs)
{
	enum { SUMS = 31 };
	static double took[SUMS];
	for (int i = -3; i < SUMS; i++) {
		for (size_t j = 0; j < n; j++) x[j] = 1;
		MPI_Barrier(MPI_COMM_WORLD);
		const double start = MPI_Wtime();
		if (theirs) MPI_Allreduce(MPI_IN_PLACE, x, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		else halving(x, room, n, rank);
		if (i >= 0) took[i] = MPI_Wtime() - start;
		if (x[0] != 2 || x[n - 1] != 2) MPI_Abort(MPI_COMM_WORLD, 2);
	}
	qsort(took, SUMS, sizeof *took, by_value);
	return took[SUMS / 2];
}

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	char *out = malloc(MOST), *in = malloc(MOST);
	if (size != 2 || !out || !in) {
		fprintf(stderr, "it takes two ranks\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
		return 1;
	}
	memset(out, 1, MOST);
	memset(in, 2, MOST);
	double latency = 0;
	for (int bytes = 8; bytes <= MOST; bytes *= 8) {
		const double t = exchange(out, in, bytes, !rank, bytes > 1 << 18 ? 41 : REPS);
		if (bytes == 8) latency = t;
		if (!rank) printf("%9d bytes  %10.1f us  %8.2f GB/s\n", bytes, 1e6 * t, 1e-9 * bytes / t);
	}
	const double bucket = exchange(out, in, 4 << 20, !rank, 41);
	if (!rank) printf("latency %.1f us, bandwidth %.2f GB/s\n", 1e6 * latency, 1e-9 * (4 << 20) / (bucket - latency));
	static const int sizes[] = { 1 << 20, 5281216, 22869664 };     /* gradients of mae32_bs128 and vit_tiny_bs8 */
	for (int i = 0; i < 3; i++) {
		const size_t n = (size_t)sizes[i] / sizeof(float);
		const double ours = sum((float *)(void *)out, (float *)(void *)in, n, rank, 0);
		const double theirs = sum((float *)(void *)out, (float *)(void *)in, n, rank, 1);
		if (!rank) printf("sum of %9d bytes  halving %8.2f ms  MPI_Allreduce %8.2f ms\n", sizes[i], 1e3 * ours, 1e3 * theirs);
	}
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}
