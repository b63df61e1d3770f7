"""RetinaNet of torchvision on PVT-Tiny of transformers, 256 px, eight boxes in each picture: python retinanet_step.py [--bs N]"""
from collections import OrderedDict
import torch
from torch import nn
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.image_list import ImageList
from torchvision.models.detection.retinanet import RetinaNet
from torchvision.ops import FeaturePyramidNetwork
from torchvision.ops.feature_pyramid_network import LastLevelP6P7
from transformers import PvtConfig, PvtModel
import common

SIDE, CLASSES, BOXES = 256, 80, 8
p = common.parser(__doc__)
a = p.parse_args()
common.setup(a)
bs = a.bs or 2


class Backbone(nn.Module):
    out_channels = 256

    def __init__(self):
        super().__init__()
        pvt = PvtModel(PvtConfig(image_size=SIDE))
        self.encoder = pvt.encoder
        self.fpn = FeaturePyramidNetwork([128, 320, 512], 256, LastLevelP6P7(256, 256))

    def forward(self, x):
        levels = []
        for embed, blocks in zip(self.encoder.patch_embeddings, self.encoder.block):
            t, h, w = embed(x)
            for block in blocks:
                t = block(t, h, w)
                t = t[0] if isinstance(t, tuple) else t
            t = t[:, -h * w:]
            x = t.reshape(len(t), h, w, -1).permute(0, 3, 1, 2).contiguous()
            levels.append(x)
        return self.fpn(OrderedDict((str(i), x) for i, x in enumerate(levels[1:])))


sizes = tuple((s, int(s * 2 ** (1 / 3)), int(s * 2 ** (2 / 3))) for s in (32, 64, 128, 256, 512))
net = RetinaNet(Backbone(), CLASSES, anchor_generator=AnchorGenerator(sizes, ((.5, 1., 2.),) * 5))
x = torch.randn(bs, 3, SIDE, SIDE)
start = torch.tensor([SIDE * i / 16 for i in range(BOXES)])
side = torch.tensor([SIDE * (1 + i % 4) / 8 for i in range(BOXES)])
box = torch.stack([start, start, start + side, start + side], 1)
targets = [{"boxes": box, "labels": torch.randint(0, CLASSES, (BOXES,))} for _ in range(bs)]
shapes = [(SIDE, SIDE)] * bs


def heads(m):
    features = list(m.backbone(x).values())
    return features, m.head(features), m.anchor_generator(ImageList(x, shapes), features)


def loss(m):
    _, out, anchors = heads(m)
    return sum(m.compute_loss(targets, out, anchors).values())


def infer(m, _):
    features, out, anchors = heads(m)
    per_level = [f.shape[2] * f.shape[3] * 9 for f in features]
    split = {k: list(v.split(per_level, dim=1)) for k, v in out.items()}
    return m.postprocess_detections(split, [list(q.split(per_level)) for q in anchors], shapes)


common.run(f"retinanet_pvt_tiny_bs{bs}", a, net, loss, infer, (x,), bs, 0.0)
