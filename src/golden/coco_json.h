/* Reference files of COCO, all JSON: rle_cases.json, and NAME_expected.json beside the truth and the detections it speaks of. */
#ifndef GOLDEN_COCO_JSON_H
#define GOLDEN_COCO_JSON_H

#include "golden/check.h"

bool golden_is_rle(const char *path);
void golden_rle(struct golden_case *);
bool golden_is_coco_expected(const char *path);
void golden_coco_expected(struct golden_case *);

#endif
