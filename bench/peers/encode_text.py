"""Hugging Face's `tokenizers` on one thread: lines of a file to ids.

python encode_text.py --vocab PATH --text FILE [--seconds 3]
Prints one JSON line; the faster of encode_batch_fast, encode_batch and encode counts. The checksum is CRC-32 over count and ids of each
line, as int32.
"""
import os
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
import argparse, array, json, time, zlib
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors


def wordpiece(path):
    t = Tokenizer(models.WordPiece.from_file(path, unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    t.post_processor = processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
    return t


def bpe(folder):
    t = Tokenizer(models.BPE.from_file(os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt")))
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    t.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")), add_prefix_space=False)
    return t


def load(path):
    """The file or folder as norma reads it."""
    for name in ("tokenizer.json", "vocab.txt", "vocab.json"):
        if os.path.isdir(path) and os.path.exists(os.path.join(path, name)):
            path = os.path.join(path, name)
    if path.endswith("vocab.txt"):
        return wordpiece(path)
    if path.endswith("vocab.json"):
        return bpe(os.path.dirname(path))
    t = Tokenizer.from_file(path)
    t.no_padding()
    t.no_truncation()
    return t


def timed(ways, lines, seconds):
    """The faster way, by a first look, then its rate over whole passes."""
    def once(way, part):
        start = time.perf_counter()
        for i in range(0, len(part), 1000):
            way(part[i:i + 1000])
        return time.perf_counter() - start
    way = min(ways, key=lambda w: once(w, lines[:5000]))
    spent = passes = 0
    while not passes or spent < seconds:
        spent, passes = spent + once(way, lines), passes + 1
    return passes / spent


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--vocab", required=True)
    p.add_argument("--text", required=True)
    p.add_argument("--seconds", type=float, default=3)
    a = p.parse_args()
    with open(a.text, encoding="utf-8", errors="replace", newline="\n") as f:
        lines = f.read().split("\n")[:-1]
    t = load(a.vocab)
    ways = [t.encode_batch, lambda part: [t.encode(s) for s in part]]
    if hasattr(t, "encode_batch_fast"):
        ways.append(t.encode_batch_fast)
    rate = timed(ways, lines, a.seconds) * os.path.getsize(a.text) * 1e-6
    ids = checksum = 0
    for i in range(0, len(lines), 1000):
        for e in t.encode_batch(lines[i:i + 1000]):
            checksum = zlib.crc32(array.array("i", [len(e.ids), *e.ids]).tobytes(), checksum)
            ids += len(e.ids)
    print(json.dumps({"mb_per_s": rate, "ids": ids, "checksum": checksum}), flush=True)


if __name__ == "__main__":
    main()
