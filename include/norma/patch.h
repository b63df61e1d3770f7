/* For building models of pictures: the order of the features of a patch, or of any window over a picture. */
#ifndef NORMA_PATCH_H
#define NORMA_PATCH_H

enum nr_patch_order {
	NR_PATCH_ROW_COL_CHANNEL,  /* MAE's targets; Dual PatchNorm */
	NR_PATCH_CHANNEL_ROW_COL,  /* a flattened convolution weight (D,C,kh,kw); torch's unfold */
	NR_PATCH_COL_ROW_CHANNEL,  /* Swin's merging */
};

#endif
