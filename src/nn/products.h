/* How much a recorded net computes, as papers and torch's counters have it. */
#ifndef NR_PRODUCTS_H
#define NR_PRODUCTS_H

struct nr_net;
/* Multiply-adds of products alone in one forward pass: linear layers, convolutions, scores and values of attention. */
double nr_net_macs(const struct nr_net *);

#endif
