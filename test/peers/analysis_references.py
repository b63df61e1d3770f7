"""What norma's analysis and study statistics say of random arrays, beside NumPy, scikit-learn and SciPy in float64.

The values come from build/test/peer-analysis_values (of NORMA_BUILD, default build), made by `make test`. Errors are shares of the
largest value. Bounds: sums over pairs are taken in float32 (2e-6); singular values and attention distances of float32 input in double
(1e-6); statistics in double (1e-9). A layout of t-SNE is one of many: its trustworthiness may be .01 and its divergence 2 % worse
than scikit-learn's, no more."""
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, trustworthiness

import common
from common import close, finish, scratch

PROGRAM = Path(os.environ.get("NORMA_BUILD", "build")) / "test/peer-analysis_values"
SUMS, DOUBLE, TESTS = 2e-6, 1e-6, 1e-9
N, C = 400, 24


def arrays():
    rng = np.random.default_rng(3)
    groups = 2 * rng.standard_normal((5, C))
    x = groups[np.arange(N) % 5] + rng.standard_normal((N, C)) * np.linspace(0.2, 2, C)
    other = x @ rng.standard_normal((C, 17)) + 3 * rng.standard_normal((N, 17)) + 1
    attention = rng.random((3, 4, 26, 26)) ** 4
    attention /= attention.sum(-1, keepdims=True)
    differences = rng.standard_normal((8, 12)) + np.linspace(0, 1.5, 8)[:, None]
    differences[3] = np.round(differences[3] * 2) / 2  # ties and zeros
    return {k: v.astype(np.float32) for k, v in dict(x=x, other=other, attention=attention, differences=differences).items()}


def values(folder, given):
    for name, array in given.items():
        np.save(Path(folder) / f"{name}.npy", array)
    done = subprocess.run([PROGRAM, folder], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{PROGRAM}: {done.stderr}")
    return json.loads(done.stdout)


def same(title, got, want, bound):
    close(title, np.asarray(got, dtype=np.float64).ravel(), np.asarray(want, dtype=np.float64).ravel(), bound)


def at_most(title, got, limit):
    ok = got <= limit
    common.failed += not ok
    print(f"{'ok    ' if ok else 'FAILED'}  {title}: {got:.4f}, at most {limit:.4f}")


def sphere(got, x):
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    cos = (u @ u.T)[np.triu_indices(len(u), 1)]
    same("uniformity, t = 2", got["uniformity"], np.log(np.exp(-2 * (2 - 2 * cos)).mean()), SUMS)
    same("mean cosine", got["mean_cos"], cos.mean(), 1e-5)
    same("mean squared cosine", got["mean_sq"], (cos ** 2).mean(), SUMS)
    same("singular values", got["spectrum"], np.linalg.svd(x, compute_uv=False), DOUBLE)
    s = np.linalg.svd(x - x.mean(0), compute_uv=False)
    same("singular values, centred", got["centred"], s, DOUBLE)
    same("effective rank", got["rank"], np.exp(stats.entropy(s / s.sum())), DOUBLE)


def components(got, x):
    reference = PCA(4, svd_solver="full").fit(x)
    sign = np.sign(reference.components_[np.arange(4), np.abs(reference.components_).argmax(1)])[:, None]
    same("variances explained", got["variance"], reference.explained_variance_, DOUBLE)
    same("principal components", got["component"], reference.components_ * sign, DOUBLE)
    same("projections", got["projected"], reference.transform(x) * sign.T, DOUBLE)
    same("total variance", got["total"], x.var(0, ddof=1).sum(), DOUBLE)


def layouts(got, x):
    for name, method in (("tsne", "exact"), ("tree", "barnes_hut")):
        y = np.array(got[name]["layout"]).reshape(-1, 2)
        mine = trustworthiness(x, y, n_neighbors=12)
        same(f"trustworthiness of our layout ({method})", got[name]["trustworthiness"], mine, DOUBLE)
        model = TSNE(perplexity=30, init="pca", method=method, random_state=0)
        theirs = trustworthiness(x, model.fit_transform(x), n_neighbors=12)
        at_most(f"t-SNE, {method}: 1 - trustworthiness", 1 - mine, 1 - theirs + 0.01)
        at_most(f"t-SNE, {method}: divergence", got[name]["kl"], 1.02 * model.kl_divergence_)


def attention_distance(got, a):
    grid = np.stack(np.divmod(np.arange(25), 5), 1)
    distance = np.linalg.norm(grid[:, None] - grid[None], axis=-1)
    a = a[:, :, 1:, 1:]
    same("attention distance", got, (a / a.sum(-1, keepdims=True) * distance).sum(-1).mean((0, 2)), DOUBLE)


def alike(got, x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    same("linear CKA", got, np.linalg.norm(y.T @ x) ** 2 / np.linalg.norm(x.T @ x) / np.linalg.norm(y.T @ y), DOUBLE)


def holm(p):
    """Step-down by hand: SciPy has no Holm."""
    order, out, worst = np.argsort(p), np.empty(len(p)), 0
    for rank, i in enumerate(order):
        worst = max(worst, min(1, (len(p) - rank) * p[i]))
        out[i] = worst
    return out


def statistics(got, d):
    t = [stats.ttest_rel(row, np.zeros_like(row)).pvalue for row in d]
    same("paired t", got["t"], t, TESTS)
    same("95 % t intervals", got["half"], [stats.sem(row) * stats.t.ppf(0.975, len(row) - 1) for row in d], TESTS)
    same("Holm", got["holm"], holm(np.array(t)), TESTS)
    exact = []
    for row in d:
        row = row[row != 0]
        ranks, positive = stats.rankdata(np.abs(row)), row > 0
        signs = (np.arange(1 << len(row))[:, None] >> np.arange(len(row))) & 1  # every one: exact with ties, too
        sums, seen = signs @ ranks, ranks[positive].sum()
        exact.append(min(1, 2 * min((sums <= seen + 1e-9).mean(), (sums >= seen - 1e-9).mean())))
    same("Wilcoxon, every sign", got["wilcoxon"], exact, TESTS)
    plain = [i for i, row in enumerate(d) if len(set(np.abs(row))) == len(row) and (row != 0).all()]
    same("Wilcoxon, SciPy's exact", np.array(got["wilcoxon"])[plain], [stats.wilcoxon(d[i], method="exact").pvalue for i in plain], TESTS)


with scratch() as folder:
    given = arrays()
    got = values(folder, given)
    given = {k: v.astype(np.float64) for k, v in given.items()}
    sphere(got["sphere"], given["x"])
    components(got["pca"], given["x"])
    layouts(got, given["x"])
    attention_distance(got["attention"], given["attention"])
    alike(got["cka"], given["x"], given["other"])
    statistics(got["statistics"], given["differences"])
finish()
