"""A step of DINO: teacher on two global crops, student on those and six local ones, centring, clipping by parameter, AdamW, moving average.

python dino_step.py --mode eager|compile --dtype f32|bf16
32 and 16 px, patch 4, dim 128 depth 6; head 512, 512, 128, 4096 prototypes. The loss, the clipping and the average are written as in
the released code. train = one pre-training step; infer = the class token of whole pictures.
"""
import copy
import torch
from torch import nn
from torch.nn import functional as F
from timm.models.vision_transformer import Block
import common


class Encoder(nn.Module):
    def __init__(self, image=32, ch=3, patch=4, dim=128, depth=6, heads=4):
        super().__init__()
        self.p, self.side = patch, image // patch
        self.embed = nn.Conv2d(ch, dim, patch, patch)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * .02)
        self.pos = nn.Parameter(torch.randn(1, self.side ** 2 + 1, dim) * .02)
        self.blocks = nn.Sequential(*[Block(dim, heads, 4, qkv_bias=True) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim, eps=1e-6)

    def places(self, side):
        if side == self.side:
            return self.pos
        grid = self.pos[:, 1:].reshape(1, self.side, self.side, -1).permute(0, 3, 1, 2)
        by = (side + .1) / self.side
        grid = F.interpolate(grid, scale_factor=(by, by), mode="bicubic").permute(0, 2, 3, 1).flatten(1, 2)
        return torch.cat([self.pos[:, :1], grid], 1)

    def forward(self, x):
        side = x.shape[-1] // self.p
        x = self.embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.places(side)
        return self.norm(self.blocks(x))[:, 0]


class Head(nn.Module):
    def __init__(self, dim=128, hidden=512, bottleneck=128, out=4096):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, bottleneck))
        self.v = nn.Parameter(torch.empty(out, bottleneck).uniform_(-bottleneck ** -.5, bottleneck ** -.5))

    def forward(self, x):
        return F.linear(F.normalize(self.mlp(x), dim=-1), self.v / self.v.norm(dim=1, keepdim=True))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = Encoder(), Head()

    def forward(self, *sizes):
        return self.head(torch.cat([self.backbone(x) for x in sizes]))


p = common.parser(__doc__)
a = p.parse_args()
common.setup(a)
bs, crops, K = a.bs or 32, 6, 4096
student = Net()
teacher = copy.deepcopy(student).requires_grad_(False)
centre = torch.zeros(1, K)
big, small = torch.randn(2 * bs, 3, 32, 32), torch.randn(crops * bs, 3, 16, 16)


def loss(net):
    global centre
    with torch.no_grad():
        out = teacher(big)
        targets = F.softmax((out - centre) / .04, dim=-1).chunk(2)
    views = (net(big, small) / .1).chunk(2 + crops)
    total, terms = 0, 0
    for q, t in enumerate(targets):
        for v, s in enumerate(views):
            if v != q:
                total = total + torch.sum(-t * F.log_softmax(s, dim=-1), dim=-1).mean()
                terms += 1
    with torch.no_grad():
        centre = centre * .9 + out.mean(0, keepdim=True) * .1
    return total / terms


def clip(net):
    for q in net.parameters():
        scale = 3 / (q.grad.norm() + 1e-6)
        if scale < 1:
            q.grad.mul_(scale)


@torch.no_grad()
def follow(net):
    for t, s in zip(teacher.parameters(), net.parameters()):
        t.mul_(.996).add_(.004 * s)


tokens = 64 + 1, 16 + 1
at = common.attn_flops(2 * bs, tokens[0], 128, 6) + common.attn_flops(crops * bs, tokens[1], 128, 6)
a.attn_infer_scale = common.attn_flops(bs, tokens[0], 128, 6) / at
common.run(f"dino32_bs{bs}", a, student, loss, lambda m, x: m.backbone(x), (big[:bs],), bs, at, clip=clip, after=follow)
