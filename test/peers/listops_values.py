"""10,000 expressions as `norma data make listops` draws them, evaluated by Python: the same targets, none twice, lengths within bounds."""
import statistics
from pathlib import Path

import numpy as np

from common import close, finish, norma, scratch

OPERATORS = {"[MIN": min, "[MAX": max, "[MED": lambda v: int(statistics.median(v)), "[SM": lambda v: sum(v) % 10}


def value(text):
    """Of an expression in brackets: the nested pairs are one list of an operator and its arguments."""
    stack = []
    for word in text.replace("(", " ").replace(")", " ").split():
        if word in OPERATORS:
            stack.append((OPERATORS[word], []))
            continue
        if word == "]":
            operator, arguments = stack.pop()
            word = operator(arguments)
        if not stack:
            return int(word)
        stack[-1][1].append(int(word))


with scratch() as folder:
    norma("data", "make", "listops", "--samples", "8000:1000:1000", "-o", folder)
    rows = [line.split("\t") for name in ("train", "val", "test")
            for line in (Path(folder) / f"basic_{name}.tsv").read_text().splitlines()[1:]]
    lengths = [sum(w not in "()" for w in text.split()) for text, _ in rows]
    close(f"{len(rows)} values", np.array([value(text) for text, _ in rows]), [int(target) for _, target in rows], 0)
    close("all different", np.array([len({text for text, _ in rows})]), [10000], 0)
    close(f"lengths {min(lengths)} to {max(lengths)}", np.array([float(min(lengths) > 500 and max(lengths) < 2000)]), [1.0], 0)
finish()
