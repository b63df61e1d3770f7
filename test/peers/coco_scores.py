"""`norma score` beside pycocotools on random truth and detections: crowds, polygons in parts, masks as runs and as text, empty pictures, equal
scores, hundreds of detections of one picture, classes without objects, objects of no area; and on `norma data make shapes`. All 12 numbers
and AP, AP50 and AR of each class."""
import contextlib
import io
import json
from pathlib import Path

import numpy as np
from pycocotools import mask as rle
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from common import close, finish, norma, scratch

STATS = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]


def ellipse(r, h, w, cy, cx, ry, rx):
    y, x = np.ogrid[:h, :w]
    return (((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 <= 1).astype(np.uint8)


def text(mask):
    m = rle.encode(np.asfortranarray(mask))
    return {"size": [int(v) for v in m["size"]], "counts": m["counts"].decode()}


def plain(mask):
    flat = mask.flatten(order="F")
    edges = np.flatnonzero(np.diff(flat)) + 1
    runs = np.diff(np.concatenate([[0], edges, [flat.size]])).tolist()
    return {"size": list(mask.shape), "counts": [0] * int(flat[0]) + runs}


def polygons(r, cy, cx, ry, rx):
    parts = []
    for _ in range(r.integers(1, 4)):
        angle = np.sort(r.uniform(0, 2 * np.pi, r.integers(3, 12)))
        ring = np.stack([cx + rx * np.cos(angle), cy + ry * np.sin(angle)], 1)
        parts.append(np.round(ring, 2).ravel().tolist())
        cx += 3
    return parts


def made_up(seed, images, classes, per_image):
    """Truth and detections; half of these are near an object."""
    r = np.random.default_rng(seed)
    truth = {"images": [], "annotations": [], "categories": [{"id": int(k), "name": f"c{k}"} for k in r.permutation(3 * classes)[:classes] + 1]}
    ids = [c["id"] for c in truth["categories"]]
    boxes, masks = [], []
    for i in r.permutation(images):
        h, w = (int(v) for v in r.integers(40, 260, 2))
        truth["images"].append({"id": int(i) + 7, "file_name": f"{i}.jpg", "height": h, "width": w})
        places = []
        for _ in range(r.integers(0, per_image)):
            ry, rx = r.uniform(2, h / 2), r.uniform(2, w / 2)
            cy, cx, k = r.uniform(0, h), r.uniform(0, w), int(r.choice(ids[:-1]))
            crowd = bool(r.random() < 0.1)
            mask = ellipse(r, h, w, cy, cx, ry, rx)
            if not mask.any():
                continue
            outline = plain(mask) if crowd else text(mask) if r.random() < 0.5 else polygons(r, cy, cx, ry, rx)
            box = [round(float(v), 2) for v in (cx - rx, cy - ry, 2 * rx, 2 * ry)]
            truth["annotations"].append({"id": len(truth["annotations"]) + 1, "image_id": int(i) + 7, "category_id": k, "bbox": box,
                                         "area": float(r.choice([mask.sum(), 1024, 9216, 0])), "iscrowd": int(crowd), "segmentation": outline})
            places.append((cy, cx, ry, rx, k))
        for n in range(r.integers(0, 3 * per_image)):
            if places and r.random() < 0.7:
                cy, cx, ry, rx, k = places[r.integers(len(places))]
                shift = r.normal(0, 0.15, 4) * (r.random() < 0.8)
                cy, cx, ry, rx = cy + shift[0] * ry, cx + shift[1] * rx, ry * np.exp(shift[2]), rx * np.exp(shift[3])
                k = int(r.choice(ids)) if r.random() < 0.2 else k
            else:
                cy, cx, ry, rx, k = r.uniform(0, h), r.uniform(0, w), r.uniform(1, h), r.uniform(1, w), int(r.choice(ids))
            score = float(np.round(r.random(), 1 if r.random() < 0.5 else 6))
            one = {"image_id": int(i) + 7, "category_id": k, "score": score}
            boxes.append(one | {"bbox": [float(np.float32(v)) for v in (cx - rx, cy - ry, 2 * rx, 2 * ry)]})
            masks.append(one | {"segmentation": text(ellipse(r, h, w, cy, cx, ry, rx))})
    return truth, boxes, masks


def reference(truth, found, kind):
    with contextlib.redirect_stdout(io.StringIO()):
        gt = COCO(str(truth))
        e = COCOeval(gt, gt.loadRes(str(found)), kind)
        e.evaluate()
        e.accumulate()
        e.summarize()
    p, r = e.eval["precision"], e.eval["recall"]
    each = []
    for k in range(p.shape[2]):
        each += [v[v > -1].mean() if (v > -1).any() else -1 for v in (p[:, :, k, 0, 2], p[0, :, k, 0, 2], r[:, k, 0, 2])]
    return np.concatenate([e.stats, each])


def ours(truth, found, kind):
    j = json.loads(norma("score", found, truth, "--of", kind, "--json"))
    values = [j[name] for name in STATS]
    for c in j["classes"]:
        values += [c["AP"], c["AP50"], c["AR100"]]
    return np.array([-1 if v is None else v for v in values])


def compare(title, folder, truth, boxes, masks):
    paths = [folder / f"{name}.json" for name in ("truth", "boxes", "masks")]
    for path, value in zip(paths, (truth, boxes, masks)):
        path.write_text(json.dumps(value))
    for found, kind, name in ((paths[1], "bbox", "boxes"), (paths[2], "segm", "masks")):
        want = reference(paths[0], found, kind)
        # an average of 1e-6 apart is one detection matched otherwise
        close(f"{title}, {name}: {len(boxes)} detections, AP {want[0]:.6f}", ours(paths[0], found, name), want, 1e-9)


with scratch() as folder:
    folder = Path(folder)
    for seed in range(6):
        compare(f"seed {seed}", folder, *made_up(seed, images=[1, 5, 40, 60, 100, 20][seed], classes=[2, 3, 5, 9, 20, 2][seed],
                                                per_image=[400, 20, 8, 10, 12, 120][seed]))
    norma("data", "make", "shapes", "--samples", "1:40", "--shapes", "0:9", "-o", folder / "shapes")
    truth = json.loads((folder / "shapes/annotations/instances_val.json").read_text())
    r = np.random.default_rng(1)
    boxes, masks = [], []
    for a in truth["annotations"]:
        score = float(r.random())
        one = {"image_id": a["image_id"], "category_id": int(r.choice([a["category_id"], 1])), "score": score}
        boxes.append(one | {"bbox": [v + float(e) for v, e in zip(a["bbox"], r.normal(0, 2, 4))]})
        masks.append(one | {"segmentation": text(np.roll(rle.decode(a["segmentation"]), r.integers(-2, 3, 2), (0, 1)))})
    areas = [float(rle.area(a["segmentation"])) for a in truth["annotations"]]
    close("areas of shapes", np.array([float(a["area"]) for a in truth["annotations"]]), areas, 0)
    close("boxes of shapes", np.array([a["bbox"] for a in truth["annotations"]]),
          [rle.toBbox(a["segmentation"]) for a in truth["annotations"]], 0)
    compare("shapes", folder, truth, boxes, masks)
finish()
