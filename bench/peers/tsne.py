"""scikit-learn's t-SNE of an array: Barnes-Hut, perplexity 30, 1000 iterations, started from PCA.

python tsne.py --input X.npy --output Y.npy [--threads 2]
Writes the layout and prints one JSON line; seconds are those of fit_transform alone.
"""
import argparse, json, os, time

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("--input", required=True)
p.add_argument("--output", required=True)
p.add_argument("--threads", type=int, default=2)
a = p.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = str(a.threads)  # before NumPy is loaded

import numpy as np
from sklearn.manifold import TSNE

x = np.load(a.input)
start = time.perf_counter()
model = TSNE(perplexity=30, max_iter=1000, init="pca", method="barnes_hut", random_state=0, n_jobs=a.threads)
y = model.fit_transform(x)
seconds = time.perf_counter() - start
np.save(a.output, y)
print(json.dumps({"seconds": seconds, "kl": float(model.kl_divergence_), "steps": int(model.n_iter_), "threads": a.threads}))
