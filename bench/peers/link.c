/* What messages between two ranks of MPI cost: latency and bandwidth, both ways at once as in a sum, for docs/scaling.md.
 *
 *   mpicc -O2 bench/peers/link.c -o link && mpirun -n 2 ./link
 *
 * Prints for each size the median time of an exchange, in which either rank sends that many bytes to the other, and a line that fits
 * latency + bytes / bandwidth: the latency from the smallest messages, the bandwidth from those of a bucket (4 MiB). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 << 20, REPS = 201 };

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
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}
