"""Normalization kernels alone: forward and forward+backward, f32.

python norms.py --mode eager|compile [--norms copy,ln,rms,...] [--shapes 64x196x384,...]
Effective bytes: forward 2 passes over the tensor (read x, write y); forward+backward 5 (plus read dy, read x, write dx).
"copy" is y.copy_(x) in the same process: the streaming ceiling torch itself reaches at that size. T = n^2 tokens are an
n x n grid, T = 1 + n^2 a special token and a grid; heads have 64 channels.
"""
import argparse, json, math, statistics, time
import torch
from torch import nn

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("--mode", default="eager", choices=["eager", "compile"])
p.add_argument("--norms", default="copy,ln,rms,scale,bn_flat,bn_t,gn,in,dtn,dyt,derf,seednorm")
p.add_argument("--shapes", default="128x50x128,8x197x768,64x196x384")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--seconds", type=float, default=0.6)
a = p.parse_args()
torch.set_num_threads(a.threads)
torch.manual_seed(0)


class Flat(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.m = m

    def forward(self, x):
        return self.m(x.reshape(-1, x.shape[-1])).view(x.shape)


class Trans(Flat):
    def forward(self, x):
        return self.m(x.transpose(1, 2)).transpose(1, 2)


class Scale(nn.Module):
    """ScaleNorm with one gain."""

    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.eps, self.scale = eps, nn.Parameter(torch.tensor([math.sqrt(channels)]))

    def forward(self, x):
        return self.scale * x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(self.eps)


class DyT(nn.Module):
    """weight tanh(alpha x) + bias."""

    def __init__(self, channels):
        super().__init__()
        self.alpha = nn.Parameter(torch.full((1,), 0.5))
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return self.weight * torch.tanh(self.alpha * x) + self.bias


class Derf(nn.Module):
    """weight erf(alpha x + shift) + bias."""

    def __init__(self, channels):
        super().__init__()
        self.alpha, self.shift = nn.Parameter(torch.full((1,), 0.5)), nn.Parameter(torch.zeros(1))
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return self.weight * torch.erf(self.alpha * x + self.shift) + self.bias


class SeeDNorm(nn.Module):
    """(tanh(x . beta) alpha + weight) x / rms(x)."""

    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight, self.alpha = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        gain = torch.tanh(x @ self.beta).unsqueeze(-1) * self.alpha + self.weight
        return gain * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)


class DTN(nn.Module):
    """Dynamic Token Normalization, Eq. 4-7, positional attention, learned blends: the settings that the paper trains with."""

    def __init__(self, channels, heads, grid, special, eps=1e-5):
        super().__init__()
        self.heads, self.grid, self.special, self.eps = heads, grid, special, eps
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.mean_logit, self.var_logit = nn.Parameter(torch.zeros(heads)), nn.Parameter(torch.zeros(heads))
        side = math.isqrt(heads)
        pos = torch.zeros(heads, 3)
        for h in range(side * side):
            pos[h] = torch.tensor([-1.0, 2 * (h // side - (side - 1) / 2), 2 * (h % side - (side - 1) / 2)])
        self.pos = nn.Parameter(pos)
        i = torch.arange(grid * grid)
        dx, dy = (i % grid)[None, :] - (i % grid)[:, None], (i // grid)[None, :] - (i // grid)[:, None]
        self.register_buffer("features", torch.stack([dx * dx + dy * dy, dx, dy], -1).float())

    def forward(self, x):
        s = self.special
        mean = x.mean(-1, keepdim=True)
        var = ((x - mean) ** 2).mean(-1, keepdim=True)
        body = x[:, s:].unflatten(-1, (self.heads, -1))
        att = torch.softmax(torch.einsum("ijk,hk->hij", self.features, self.pos), -1)
        centre = body.mean(1, keepdim=True).detach()
        body = body - centre
        first = torch.einsum("hij,bjhd->bihd", att, body)
        second = torch.einsum("hij,bjhd->bihd", att, body * body)
        lm, lv = torch.sigmoid(self.mean_logit)[:, None], torch.sigmoid(self.var_logit)[:, None]
        m = (lm * mean[:, s:, None] + (1 - lm) * (first + centre)).flatten(-2)
        v = (lv * var[:, s:, None] + (1 - lv) * (second - first * first)).flatten(-2)
        if s:
            m = torch.cat([mean[:, :s].expand(-1, -1, x.shape[-1]), m], 1)
            v = torch.cat([var[:, :s].expand(-1, -1, x.shape[-1]), v], 1)
        return self.weight * (x - m) / torch.sqrt(v + self.eps) + self.bias


def build(name, T, C):
    if name == "ln": return nn.LayerNorm(C)
    if name == "rms": return nn.RMSNorm(C)
    if name == "scale": return Scale(C)
    if name == "bn_flat": return Flat(nn.BatchNorm1d(C))
    if name == "bn_t": return Trans(nn.BatchNorm1d(C))
    if name == "gn": return Trans(nn.GroupNorm(8, C))
    if name == "in": return Trans(nn.InstanceNorm1d(C, affine=True))
    if name == "dyt": return DyT(C)
    if name == "derf": return Derf(C)
    if name == "seednorm": return SeeDNorm(C)
    if name == "dtn":
        special = 0 if math.isqrt(T) ** 2 == T else 1
        return DTN(C, max(1, C // 64), math.isqrt(T - special), special)
    raise SystemExit(f"unknown norm '{name}'")


def med(f):
    f(); f()
    ts, s = [], time.perf_counter()
    while len(ts) < 7 or time.perf_counter() - s < a.seconds:
        t = time.perf_counter(); f(); ts.append(time.perf_counter() - t)
    return statistics.median(ts)


for shape in a.shapes.split(","):
    B, T, C = map(int, shape.split("x"))
    for name in a.norms.split(","):
        x = torch.randn(B, T, C, requires_grad=True)
        g, y = torch.randn(B, T, C), torch.empty(B, T, C)
        size, tb = 4.0 * B * T * C, None
        if name == "copy":
            with torch.no_grad():
                tf = med(lambda: y.copy_(x))
        else:
            net = build(name, T, C)
            if a.mode == "compile":
                torch._dynamo.reset()  # else the 8th module hits the recompile limit and runs eager
                net = torch.compile(net)

            def fwd():
                with torch.no_grad():
                    net(x)

            def both():
                x.grad = None
                net(x).backward(g)
            tf, tb = med(fwd), med(both)
        r = {"case": "norm", "norm": name, "mode": a.mode, "threads": a.threads, "shape": [B, T, C], "fwd_us": round(tf * 1e6, 1),
             "fwd_gbps": round(2 * size / tf * 1e-9, 1)}
        if tb:
            r |= {"fwdbwd_us": round(tb * 1e6, 1), "fwdbwd_gbps": round(5 * size / tb * 1e-9, 1)}
        print(json.dumps(r), flush=True)
