"""Graphs of `norma smiles` against RDKit and the features of the Open Graph Benchmark: the molecules of the golden files, or of a file
with one SMILES in each line, in several spellings, and with symbols exchanged so that many of them are none.

python smiles_compare.py [FILE [ROUNDS]]
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

try:
    from rdkit import Chem, RDLogger
except ImportError:
    print("skipped: no RDKit; scripts/setup-peers installs it")
    sys.exit(0)

NORMA = os.environ.get("NORMA", "build/bin/norma")
GOLDEN = Path(__file__).resolve().parents[2] / "test/golden/graph/smiles/ogb_graphs.jsonl"
CHIRAL = ["CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER"]
HYBRID = ["SP", "SP2", "SP3", "SP3D", "SP3D2"]
BONDS = ["SINGLE", "DOUBLE", "TRIPLE", "AROMATIC"]
STEREO = ["STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS", "STEREOANY"]
AROMATIC = "c n o s p b [nH] [n+] [cH-] [n-] [se] [te] [as] [o+] [s+] [pH] [si] [c+] [b-] [cH] [c] [n] * [*:1] [13c]".split()
PLAIN = ("C N O S P B F Cl [N+] [O-] [Si] [Se] [P+] [S+] [CH-] [CH] [C@H] [C@@H] [C@] [N@+] [S@] [Fe] [Pt+2] [Na+] [2H] [H] [B-] [As] "
         "[I+] [N-] [NH] [O+] [S-] * [Cu] [SH4] [PH5] [N] [13C@H]").split()
OTHERS = PLAIN + "- = # $ : ~ / \\ -> <- ( ) . 1 2 %10 %(123) (=O) (C) (/C)".split()
failed = 0


def place(names, value):
    return names.index(value) if value in names else len(names)


def within(value, misc):
    return value if 0 <= value < misc else misc


def peer(text):
    m = Chem.MolFromSmiles(text)
    if m is None:
        return None
    nodes = [[a.GetAtomicNum() - 1 if a.GetAtomicNum() else 118, place(CHIRAL, str(a.GetChiralTag())), within(a.GetTotalDegree(), 11),
              within(a.GetFormalCharge() + 5, 11), within(a.GetTotalNumHs(), 9), within(a.GetNumRadicalElectrons(), 5),
              place(HYBRID, str(a.GetHybridization())), int(a.GetIsAromatic()), int(a.IsInRing())] for a in m.GetAtoms()]
    ends, features = [[], []], []
    for b in m.GetBonds():
        i, j = b.GetBeginAtomIdx(), b.GetEndAtomIdx()
        ends[0] += [i, j]
        ends[1] += [j, i]
        features += 2 * [[place(BONDS, str(b.GetBondType())), STEREO.index(str(b.GetStereo())), int(b.GetIsConjugated())]]
    return dict(num_nodes=len(nodes), node_feat=nodes, edge_index=ends, edge_feat=features)


def norma(texts):
    with tempfile.NamedTemporaryFile("w", suffix=".smi") as f:
        f.writelines(t + "\n" for t in texts)
        f.flush()
        done = subprocess.run([NORMA, "smiles", f.name], capture_output=True, text=True)
    bad = {int(row) for row in re.findall(r"^row (\d+): ", done.stderr, re.M)}
    good = map(json.loads, done.stdout.splitlines())
    return [None if i + 1 in bad else {k: v for k, v in next(good).items() if k != "smiles"} for i in range(len(texts))]


def compare(title, texts):
    global failed
    count, wrong = Counter(), []
    for text, got in zip(texts, norma(texts)):
        want = peer(text)
        count["refused" if want is None else "read"] += 1
        if got != want:
            wrong.append((text, "only RDKit reads it" if got is None else "only norma reads it" if want is None else
                          " ".join(k for k in want if got[k] != want[k])))
    failed += bool(wrong)
    print(f"{'FAILED' if wrong else 'ok    '}  {title}: {count['read']} molecules, {count['refused']} refused, {len(wrong)} different", flush=True)
    for text, why in sorted(wrong, key=lambda w: len(w[0]))[:8]:
        print(f"        {text}: {why}")


def exchange(text, rng):
    """One to three symbols replaced, left out or put in."""
    t = re.findall(r"\[[^\]]*\]|Br|Cl|%\d\d|->|<-|.", text)
    for _ in range(rng.randint(1, 3)):
        i = rng.randrange(len(t))
        lower = t[i].strip("[").lstrip("0123456789")[:1].islower()
        kind = rng.random()
        if kind < .7:
            t[i] = rng.choice(AROMATIC if lower else PLAIN if t[i][0].isalpha() or t[i][0] == "[" else OTHERS)
        elif kind < .85 and len(t) > 1:
            del t[i]
        else:
            t.insert(i, rng.choice(OTHERS))
    return "".join(t)


def main():
    RDLogger.DisableLog("rdApp.*")
    rng = random.Random(0)
    lines = Path(sys.argv[1] if len(sys.argv) > 1 else GOLDEN).read_text().splitlines()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    texts = [json.loads(line)["smiles"] if line.startswith("{") else line.split()[0] for line in lines if line.strip()]
    compare("as they are", texts)
    molecules = [m for m in map(Chem.MolFromSmiles, texts) if m]
    for title, options in (("random spellings", {}), ("all hydrogens", dict(allHsExplicit=True)), ("all bonds", dict(allBondsExplicit=True)),
                           ("without stereo", dict(isomericSmiles=False))):
        compare(title, [Chem.MolToSmiles(m, doRandom=True, **options) for m in molecules])
    compare("hydrogens as atoms", [Chem.MolToSmiles(Chem.AddHs(m), doRandom=True) for m in molecules])
    compare("symbols exchanged", [exchange(rng.choice(texts), rng) for _ in range(rounds * len(texts))])
    return failed > 0


sys.exit(main())
