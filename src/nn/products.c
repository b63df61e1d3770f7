/* See products.h. */
#include "nn/products.h"

#include <string.h>

#include "graph/net.h"

double nr_net_macs(const struct nr_net *n)
{
	static const char *const products[] = { "linear", "linear_act", "attention", "cross_attention", "kv_attention", "window_attention",
		"performer", "block_attention", "lsh_attention", "local_attention", "matmul", "conv", "depthwise", NULL };
	double all = 0;
	for (int32_t i = 0; i < n->n_node; i++) {
		const struct nr_op *op = n->node[i]->op;
		double forward = 0, backward = 0;
		for (int k = 0; products[k]; k++)
			if (!strcmp(op->name, products[k]) && op->cost) op->cost(n->node[i], &forward, &backward);
		all += forward / 2;
	}
	return all;
}
