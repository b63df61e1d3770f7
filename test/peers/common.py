"""What the checks against timm and Hugging Face share: running norma, and comparing."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

NORMA = os.environ.get("NORMA", "build/bin/norma")
BOUND = 2e-5  # of the largest logit
failed = 0


def norma(*arguments):
    done = subprocess.run([NORMA, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"norma {' '.join(map(str, arguments))}: exit code {done.returncode}: {done.stderr}")
    return done.stdout


def shake(model, seed):
    """Weights that make every bias and norm count: fresh models have zeros and ones there."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=g)
            if p.ndim > 1 and "token" not in name and "pos" not in name:
                p.copy_(noise / p[0].numel() ** 0.5)
            elif name.endswith("weight"):
                p.copy_(1 + 0.2 * noise)
            else:
                p.copy_(0.2 * noise)
    return model.eval()


def pictures(n, channels, size, seed=0):
    return np.random.default_rng(seed).standard_normal((n, channels, size, size)).astype(np.float32)


def infer(folder, weights, x, *flags, what="logits"):
    folder = Path(folder)
    np.save(folder / "x.npy", x)
    norma("infer", weights, "--input", folder / "x.npy", "--output", folder / "y.npy", "--what", what, *flags)
    return np.load(folder / "y.npy")


def close(title, got, want, bound=BOUND):
    global failed
    want = np.asarray(want, dtype=np.float64)
    error = np.abs(got - want).max() / np.abs(want).max() if got.shape == want.shape else np.inf
    ok = error <= bound
    failed += not ok
    print(f"{'ok    ' if ok else 'FAILED'}  {title}: {error:.2e}")


def scratch():
    return tempfile.TemporaryDirectory(prefix="norma-peers-")


def finish():
    sys.exit(1 if failed else 0)
