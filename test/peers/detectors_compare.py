"""RetinaNet and Mask R-CNN beside torchvision's own, with random settings: odd and tall pictures, levels, classes, anchors, pictures
without boxes, group norms, sizes and samples of RoIAlign. torchvision computes in double; what it says is written as a golden file, which
norma-golden replays: neck, anchors, matches, losses, gradients, proposals, detections, masks.

In float a relu next to 0 may fall on the other side, and group norm of a map of one place divides by almost nothing: where float disagrees,
norma-golden64 (`cmake --build build --target norma-golden64`) decides."""
import json
import math
import os
import subprocess
import sys
from collections import OrderedDict
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import torch
import torchvision.models.detection.retinanet as retina
from safetensors.torch import save_file
from torch import nn
from torchvision.models.detection import roi_heads as roi
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.models.detection.image_list import ImageList
from torchvision.models.detection.mask_rcnn import MaskRCNNHeads, MaskRCNNPredictor
from torchvision.models.detection.rpn import RegionProposalNetwork, RPNHead, concat_box_prediction_layers
from torchvision.ops import MultiScaleRoIAlign, box_iou, sigmoid_focal_loss
from torchvision.ops.feature_pyramid_network import FeaturePyramidNetwork, LastLevelMaxPool, LastLevelP6P7

from common import NORMA, scratch

GOLDEN = os.environ.get("NORMA_GOLDEN", str(Path(NORMA).parent / "norma-golden"))
CASES = 120
LIMIT = math.log(1000 / 16)


class Pyramid(nn.Module):
    def __init__(self, fpn, width):
        super().__init__()
        self.fpn = fpn
        self.out_channels = width


class Whole(nn.Module):
    pass


class Every:
    """All positives, and every n-th negative: torchvision would draw."""

    def __init__(self, n):
        self.n = n

    def __call__(self, labels):
        positive = [one >= 1 for one in labels]
        negative = [torch.zeros_like(one, dtype=torch.bool) for one in labels]
        for one, to in zip(labels, negative):
            to[torch.where(one == 0)[0][:: self.n]] = True
        return positive, negative


def image_of(parts):
    return torch.cat([torch.full((len(p),), i) for i, p in enumerate(parts)]).int()


def fill(model, r):
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.from_numpy(r.standard_normal(p.shape).astype(np.float32)).double()
            p.copy_(noise / p[0].numel() ** 0.5 if p.ndim > 1 else 1 + 0.2 * noise if name.endswith("weight") else 0.1 * noise)
    return model.train()


def retinanet(c, r):
    extra = LastLevelP6P7(c["out_channels"], c["out_channels"])
    if "C5" in c["p6"]:
        extra = LastLevelP6P7(c["channels_in"][-1], c["out_channels"])
        extra.use_P5 = False
    anchors = AnchorGenerator(tuple(map(tuple, c["anchor_sizes"])), (tuple(c["anchor_ratios"]),) * len(c["anchor_sizes"]))
    norm = partial(nn.GroupNorm, c["groups"]) if c["groups"] else None
    head = retina.RetinaNetHead(c["out_channels"], anchors.num_anchors_per_location()[0], c["num_classes"], norm_layer=norm)
    head.regression_head._loss_type = c["loss_type"]
    neck = Pyramid(FeaturePyramidNetwork(c["channels_in"], c["out_channels"], extra), c["out_channels"])
    return fill(retina.RetinaNet(neck, c["num_classes"], anchor_generator=anchors, head=head, score_thresh=c["score_thresh"],
                                 nms_thresh=c["nms_thresh"], detections_per_img=c["detections_per_img"],
                                 fg_iou_thresh=c["matcher"]["high"], bg_iou_thresh=c["matcher"]["low"],
                                 topk_candidates=c["topk_candidates"]).double(), r)


def run_retinanet(m, c, maps, boxes, labels, masks, proposals):
    h, w = c["image"]
    images = ImageList(torch.zeros(len(boxes), 3, h, w), [(h, w)] * len(boxes))
    levels = list(m.backbone.fpn(OrderedDict((str(i), x) for i, x in enumerate(maps))).values())
    said, anchors = m.head(levels), m.anchor_generator(images, levels)
    match = [m.proposal_matcher(box_iou(b, a)) if len(b) else torch.full((len(a),), -1) for b, a in zip(boxes, anchors)]
    focal = partial(sigmoid_focal_loss, alpha=c["focal"]["alpha"], gamma=c["focal"]["gamma"])
    with mock.patch.object(retina, "sigmoid_focal_loss", focal):
        loss = m.compute_loss([{"boxes": b, "labels": k} for b, k in zip(boxes, labels)], said, anchors)
    sizes = [x[0, 0].numel() * m.anchor_generator.num_anchors_per_location()[0] for x in levels]
    with torch.no_grad():
        found = m.postprocess_detections({k: list(v.split(sizes, 1)) for k, v in said.items()}, [list(a.split(sizes)) for a in anchors],
                                         images.image_sizes)
    out = {"anchors": anchors[0], "cls_logits": said["cls_logits"], "bbox_regression": said["bbox_regression"],
           "matched": torch.stack(match).int(), "loss.classification": loss["classification"],
           "loss.bbox_regression": loss["bbox_regression"], "loss": loss["classification"] + loss["bbox_regression"]}
    out |= {f"p{i + int(math.log2(c['strides_backbone'][0]))}": x for i, x in enumerate(levels)}
    return out | {"det_boxes": torch.cat([f["boxes"] for f in found]), "det_scores": torch.cat([f["scores"] for f in found]),
                  "det_labels": torch.cat([f["labels"] for f in found]).int(), "det_image": image_of([f["boxes"] for f in found])}


def maskrcnn(c, r):
    width, pool, mask, post, ways = c["out_channels"], c["roi"], c["mask"], c["post"], c["num_classes"] + 1
    anchors = AnchorGenerator(tuple((s,) for s in c["anchor_sizes"]), (tuple(c["anchor_ratios"]),) * len(c["anchor_sizes"]))
    names = [str(i) for i in range(len(c["channels_in"]))]
    m = Whole()
    m.backbone = Pyramid(FeaturePyramidNetwork(c["channels_in"], width, LastLevelMaxPool()), width)
    before, after = ({k: c["rpn"][n] for k in ("training", "testing")} for n in ("pre_nms", "post_nms"))
    m.rpn = RegionProposalNetwork(anchors, RPNHead(width, len(c["anchor_ratios"])), c["rpn"]["high"], c["rpn"]["low"], 256, 0.5, before,
                                  after, c["rpn"]["nms"])
    m.roi_heads = roi.RoIHeads(MultiScaleRoIAlign(names, pool["pool"], pool["sampling_ratio"]),
                               TwoMLPHead(width * pool["pool"] ** 2, pool["fc"]), FastRCNNPredictor(pool["fc"], ways), pool["iou"],
                               pool["iou"], 512, 0.25, tuple(pool["coder_weights"]),
                               post["score_thresh"], post["nms"], post["detections"],
                               MultiScaleRoIAlign(names, mask["pool"], pool["sampling_ratio"]), MaskRCNNHeads(width, (width,) * 4, 1),
                               MaskRCNNPredictor(width, width, ways))
    m.rpn.fg_bg_sampler, m.roi_heads.fg_bg_sampler = Every(c["every"]), Every(1)
    return fill(m.double(), r)


def run_maskrcnn(m, c, maps, boxes, labels, masks, proposals):
    h, w = c["image"]
    heads, sizes = m.roi_heads, [(h, w)] * len(boxes)
    images = ImageList(torch.zeros(len(boxes), 3, h, w), sizes)
    levels = m.backbone.fpn(OrderedDict((str(i), x) for i, x in enumerate(maps)))
    truth = [{"boxes": b, "labels": k + 1, "masks": o} for b, k, o in zip(boxes, labels, masks)]
    proposed, loss = m.rpn(images, levels, truth)
    logit, delta = m.rpn.head(list(levels.values()))
    anchors = m.rpn.anchor_generator(images, list(levels.values()))
    rpn_labels, _ = m.rpn.assign_targets_to_anchors(anchors, truth)
    objectness, deltas = concat_box_prediction_layers(list(logit), list(delta))
    rows, matched, row_labels, targets = heads.select_training_samples(proposals, truth)
    scores, offsets = heads.box_predictor(heads.box_head(heads.box_roi_pool(levels, rows, sizes)))
    loss["classifier"], loss["box"] = roi.fastrcnn_loss(scores, offsets, row_labels, targets)
    positive = [torch.where(k > 0)[0] for k in row_labels]
    some = [b[p] for b, p in zip(rows, positive)]

    def mask_logits(at):
        return heads.mask_predictor(heads.mask_head(heads.mask_roi_pool(levels, at, sizes)))

    drawn = mask_logits(some)
    loss["mask"] = roi.maskrcnn_loss(drawn, some, masks, [t["labels"] for t in truth], [i[p] for i, p in zip(matched, positive)])
    with torch.no_grad():
        said = heads.box_predictor(heads.box_head(heads.box_roi_pool(levels, proposals, sizes)))
        found = heads.postprocess_detections(*said, proposals, sizes)
        shares = roi.maskrcnn_inference(mask_logits(found[0]), found[2])
        pasted = torch.cat([roi.paste_masks_in_image(s, b, (h, w)) for s, b in zip(shares, found[0])])
    return {"anchors": anchors[0], "rpn_objectness": objectness.reshape(len(boxes), -1), "rpn_deltas": deltas.reshape(len(boxes), -1, 4),
            "rpn_labels": torch.stack(rpn_labels).int(), "rpn_boxes": torch.cat(proposed), "rpn_box_image": image_of(proposed),
            "roi_boxes": torch.cat(rows), "roi_labels": torch.cat(row_labels).int(), "roi_targets": torch.cat(targets),
            "class_logits": scores, "box_regression": offsets, "mask_logits": drawn, "loss.objectness": loss["loss_objectness"],
            "loss.rpn_box_reg": loss["loss_rpn_box_reg"], "loss.classifier": loss["classifier"], "loss.box_reg": loss["box"],
            "loss.mask": loss["mask"], "loss": sum(loss.values()), "det_boxes": torch.cat(found[0]), "det_scores": torch.cat(found[1]),
            "det_labels": torch.cat(found[2]).int(), "det_image": image_of(found[0]), "det_mask_prob": torch.cat(shares)[:, 0],
            "det_masks": (pasted[:, 0] > 0.5).to(torch.uint8)}


def settings(r, masks):
    """The keys that norma-golden reads, as in test/golden/dense."""
    levels, first = int(r.integers(2, 5)), int(r.choice([4, 8]))
    strides = [first * 2 ** i for i in range(levels + (1 if masks else 2))]
    c = {"image": r.integers(40, 150, 2).tolist(), "channels_in": r.integers(3, 9, levels).tolist(), "strides_backbone": strides[:levels],
         "out_channels": int(r.choice([4, 8, 12])), "num_classes": int(r.integers(1, 6)), "anchor_round": True,
         "anchor_ratios": np.round(r.uniform(0.3, 3, r.integers(1, 4)), 2).tolist(), "clip_log": LIMIT}
    if masks:
        pool, every = int(r.integers(3, 8)), int(r.integers(1, 5))
        return c | {"arch": "maskrcnn", "p6": "max pool", "anchor_sizes": [3 * s for s in strides], "every": every,
                    "rpn": {"high": 0.6, "low": 0.3, "coder_weights": [1, 1, 1, 1], "sample": f"numbers 0, {every}", "nms": 0.7,
                            "pre_nms": 40, "post_nms": 30, "min_size": 1e-3},
                    "roi": {"iou": 0.5, "coder_weights": [10, 10, 5, 5], "pool": int(r.integers(3, 8)), "fc": 10,
                            "sampling_ratio": int(r.integers(0, 4)), "level": "floor(4 + log2(sqrt(area)/224) + 1e-6)"},
                    "mask": {"pool": pool, "size": 2 * pool}, "post": {"score_thresh": 0.1, "nms": 0.5, "min_size": 0.01, "detections": 7}}
    sizes = int(r.integers(1, 4))
    return c | {"arch": "retinanet", "p6": str(r.choice(["conv on P5", "conv on C5"])), "p7": "conv on relu(P6)", "head": "4 convs",
                "groups": c["out_channels"] // 4 * int(r.integers(0, 3)), "loss_type": str(r.choice(["l1", "smooth_l1", "giou"])),
                "anchor_sizes": [[int(2 * s * 2 ** (k / sizes)) for k in range(sizes)] for s in strides], "coder_weights": [1, 1, 1, 1],
                "matcher": {"high": 0.5, "low": 0.4}, "focal": {"alpha": 0.3, "gamma": 1.5}, "score_thresh": 0.05, "nms_thresh": 0.5,
                "topk_candidates": 50, "detections_per_img": 20}


def boxes_in(r, h, w, n):
    """Corners in quarters of a pixel, inside."""
    low, size = r.uniform(0, 0.7, (n, 2)) * [w, h], r.uniform(0.1, 0.6, (n, 2)) * [w, h]
    return torch.from_numpy(np.floor(4 * np.concatenate([low, np.minimum(low + size, [w - 0.5, h - 0.5])], 1)) / 4)


def write(path, seed):
    r = np.random.default_rng(seed)
    with_masks = seed % 2 == 1
    c = settings(r, with_masks)
    (h, w), pictures = c["image"], int(r.integers(1, 4))
    maps = [torch.from_numpy(r.standard_normal((pictures, n, -(-h // s), -(-w // s))).astype(np.float32)).double().requires_grad_()
            for n, s in zip(c["channels_in"], c["strides_backbone"])]
    boxes = [boxes_in(r, h, w, int(r.integers(with_masks, 6))) for _ in range(pictures)]
    labels = [torch.from_numpy(r.integers(0, c["num_classes"], len(b))) for b in boxes]
    y, x = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
    masks = [torch.stack([(x > o[0]) & (x < o[2]) & (y > o[1]) & (y < o[3]) & (x + y < (o.sum()) / 2 + 5) for o in b]).to(torch.uint8)
             if len(b) else torch.zeros(0, h, w, dtype=torch.uint8) for b in boxes]
    proposals = [boxes_in(r, h, w, 9) for _ in boxes]
    m = (maskrcnn if with_masks else retinanet)(c, r)
    out = (run_maskrcnn if with_masks else run_retinanet)(m, c, maps, boxes, labels, masks, proposals)
    if with_masks and any(len(o.unique()) < len(o) for o in out["rpn_objectness"]):
        return write(path, seed + 1000)  # of equal scores either may come first
    named = dict(m.named_parameters()) | {f"in.feat{i}": f for i, f in enumerate(maps)}
    grad = torch.autograd.grad(out["loss"], list(named.values()), allow_unused=True)
    grad = {n: torch.zeros_like(p) if g is None else g for (n, p), g in zip(named.items(), grad)}
    t = {f"param.{n}": p for n, p in m.named_parameters()} | {f"in.feat{i}": f for i, f in enumerate(maps)}
    t |= {f"out.{n}": v for n, v in out.items()} | {f"grad.{n}": v for n, v in grad.items()}
    t |= {"in.boxes": torch.cat(boxes), "in.labels": torch.cat(labels), "in.box_image": image_of(boxes)}
    if with_masks:
        t |= {"in.masks": torch.cat(masks), "in.proposals": torch.cat(proposals), "in.proposal_image": image_of(proposals)}
    largest = max(float(g.abs().max()) for g in grad.values())
    save_file({n: (v.float() if v.is_floating_point() else v).detach().contiguous().clone() for n, v in t.items()}, path, {
        "format": "norma-golden-model-1", "family": c["arch"], "naming": "torchvision", "mode": "eval", "case": path.stem,
        "config": json.dumps(c), "tol_out": "2e-05", "tol_loss": "2e-05", "tol_grad": "0.0002", "scale_out": "0",
        "scale_grad": str(1e-3 * largest)})


torch.set_num_threads(1)
with scratch() as folder:
    for case in range(CASES):
        write(Path(folder) / f"case{case}.safetensors", case)
    done = subprocess.run([GOLDEN, folder], capture_output=True, text=True)
    print(done.stdout, end="")
    if done.returncode and os.path.exists(f"{GOLDEN}64"):
        done = subprocess.run([f"{GOLDEN}64", folder], capture_output=True, text=True)
        print(f"in double:\n{done.stdout}", end="")
    sys.exit(done.returncode)
