"""Ids and texts of `norma tokenize` against Hugging Face's tokenizers and transformers on made-up strings: control characters, ideographs,
emoji, marks, long words, literal special tokens, letters with odd cases.

Left out are characters that the libraries know from different versions of Unicode. python tokenizers_compare.py [STRINGS]
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
root = Path(__file__).resolve().parents[2]
sys.path.append(str(root / "bench/peers"))
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers
from tokenizers.normalizers import BertNormalizer
from transformers import BertTokenizerFast, CLIPTokenizer, GPT2TokenizerFast, RobertaTokenizerFast

import encode_text

NORMA = os.environ.get("NORMA", "build/bin/norma")
FILES = root / "test/golden/text/tokenizer"
failed = 0


def norma(text, *arguments):
    done = subprocess.run([NORMA, "tokenize", *map(str, arguments)], input=text, capture_output=True)
    if done.returncode:
        sys.exit(f"norma tokenize {' '.join(map(str, arguments))}: {done.stderr.decode()}")
    return done.stdout


def same(title, got, want, strings):
    global failed
    wrong = [i for i in range(len(want)) if i >= len(got) or got[i] != want[i]]
    failed += bool(wrong) or len(got) != len(want)
    print(f"{'FAILED' if wrong or len(got) != len(want) else 'ok    '}  {title}: {len(want)} strings, {len(wrong)} different", flush=True)
    for i in wrong[:5]:
        print(f"        {ascii(strings[i])[:200]}\n        norma {str(got[i] if i < len(got) else None)[:300]}\n        peer  {str(want[i])[:300]}")


def agreed():
    """Code points about which Python's Unicode and that of the tokenizers are of one mind."""
    clean = BertNormalizer(True, False, False, False)
    accents = BertNormalizer(False, False, True, False)
    punctuation = pre_tokenizers.BertPreTokenizer()
    ranges = [(0, 0xd800), (0xe000, 0x10000), (0x10000, 0x10200), (0x1d150, 0x1d200), (0x1f000, 0x1fb00), (0x20000, 0x20040), (0x2f800, 0x2f820)]
    for c in (c for a, b in ranges for c in range(a, b)):
        s, category = chr(c), unicodedata.category(chr(c))
        if category in ("Cn", "Cs"):
            continue
        dropped = category[0] == "C" and s not in "\t\n\r" or c in (0, 0xfffd)
        mark = unicodedata.normalize("NFD", s) != s or (accents.normalize_str("a" + s) == "a") == (category == "Mn")
        split = category[0] == "P" or c < 128 and category[0] == "S"
        if (clean.normalize_str("a" + s + "b") == "ab") == dropped and mark and \
                (c < 128 or (len(punctuation.pre_tokenize_str("a" + s + "b")) == 3) == split):
            yield s


def make_strings(count, words, specials):
    """Deterministic; plain text, mixtures, and noise."""
    r = random.Random(5)
    pool = list(agreed())
    odd = list("İIıiŞşĞğΣσςΆάΫΰßẞǅǆŉǰÅéÉñüÖœÆ\u0301\u0308\u0323\u0307\u3099ｶﾞ가각힣漢字仮名あいうー、。「」") + \
        list("\u200d\ufe0f\u200b\ufeff\u00ad\u2028\u2029\u0085\u00a0\u3000\u1680\u205f\x00\x01\x7f\t\n\r\x0b\x0c\x1c ") + \
        ["👍🏽", "👨‍👩‍👧", "🇩🇪", "\U0001d165\u302e", "\u302e\U0001d165", "1/2½²Ⅷ٣", "don't", "we'LL", "'s's", "...", "--", "$5.00", "#x", "##ing",
         "DON'T", "I'LL", "WE'RE", "I'VE", "it’s", "ﬁ", "ﬃ", "ſt", "ภาษาไทย", "กำ", "नमस्ते", "\u1112\u1161\u11ab", "🏳️‍🌈", "Ġthe", "Ċ", "[Mask]", "<MASK>",
         "\ue000", "\U0010fffd", "\u2060", "\u180e", "İstanbul"]
    out = ["", " ", "  ", "a", "\n\n", "x" * 100, "x" * 101, "é" * 100, "é" * 101, "漢" * 300, "word " * 400, "a\u0301" * 120, "!" * 200,
           "ab" * 5000, " \t\n " * 50, "'", "''", "' s", "a'", "\u00a0a", " \u00a0a", "a \n b", "a  b   c", "\n a"]
    while len(out) < count:
        kind, parts = r.random(), []
        for _ in range(r.randint(1, 14)):
            p = r.random()
            if kind < 0.3:
                parts.append(r.choice(words) + r.choice([" ", " ", " ", ", ", ". ", "-", "'s "]))
            elif kind < 0.6:
                parts.append(r.choice(words) if p < 0.4 else r.choice(odd) if p < 0.7 else r.choice(pool) if p < 0.9 else r.choice(specials))
                parts.append(r.choice(["", "", " ", "  "]))
            elif kind < 0.8:
                parts.append(r.choice(pool))
            else:
                w = r.choice(words)
                parts.append(r.choice([w.upper(), w.capitalize(), w[::-1], w + r.choice(words), w + r.choice(odd), w[:3] + r.choice(odd) + w[3:]]))
                parts.append(r.choice([" ", "", "_"]))
        out.append("".join(parts))
    return out


def ids(tokenizer, strings):
    return [" ".join(map(str, e.ids)) for e in tokenizer.encode_batch(strings)]


def compare(title, path, tokenizer, strings, *flags, column=1):
    hexed = "".join(s.encode().hex() + "\n" for s in strings).encode()
    rows = norma(hexed, "--vocab", path, "--hex", *flags).decode().split("\n")[:-1]
    same(title, [row.split("\t")[column] for row in rows], ids(tokenizer, strings), strings)


def compare_pairs(title, path, tokenizer, strings):
    """Truncation in its three ways, with type ids; and padding."""
    clean = [s.replace("\t", " ").replace("\n", " ").replace("\r", " ") for s in strings]
    a, b = clean[:len(clean) // 2], clean[len(clean) // 2:]
    pairs = [p for p in zip(a, b)]
    for cut, length in (("longest_first", 9), ("longest_first", 16), ("only_first", 24), ("only_second", 24)):
        def encode(p):
            tokenizer.enable_truncation(length, strategy=cut)
            try:
                return tokenizer.encode(*p)
            except Exception:
                return None
        kept = [(p, e) for p, e in ((p, encode(p)) for p in pairs) if e]
        tokenizer.no_truncation()
        text = "".join(f"{x}\t{y}\n" for (x, y), _ in kept).encode()
        got = norma(text, "--vocab", path, "--pair", "--max-length", length, "--cut", cut, "--types").decode().split("\n")[:-1]
        want = [" ".join(map(str, e.ids)) + "\t" + " ".join(map(str, e.type_ids)) for _, e in kept]
        same(f"{title}, pairs cut to {length}, {cut}", got, want, [p for p, _ in kept])
    tokenizer.enable_padding(length=40, pad_id=tokenizer.token_to_id("[PAD]") or tokenizer.token_to_id("<pad>") or 0)
    got = norma("".join(s + "\n" for s in a).encode(), "--vocab", path, "--pad", 40).decode().split("\n")[:-1]
    same(f"{title}, padded to 40", got, ids(tokenizer, a), a)
    tokenizer.no_padding()


def compare_decoded(title, path, tokenizer, strings):
    encoded = [e.ids for e in tokenizer.encode_batch(strings)]
    want = [tokenizer.decode(i) for i in encoded]
    keep = [i for i, w in enumerate(want) if "\n" not in w]
    text = "".join(" ".join(map(str, encoded[i])) + "\n" for i in keep).encode()
    got = norma(text, "--vocab", path, "--decode", "--no-special").decode().split("\n")[:-1]
    same(f"{title}, decoded", got, [want[i] for i in keep], [strings[i] for i in keep])


def cased_vocab(path):
    """BERT's vocabulary with capitals in the place of unused tokens."""
    lines = (FILES / "vocab.txt").read_text(encoding="utf-8").split("\n")
    words = [line for line in lines if line.isalpha() and line.isascii() and len(line) > 3]
    fresh = [f"{p}{c}" for p in ("", "##") for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZÉÖÅ"] + [w.capitalize() for w in words[:400]]
    unused = [i for i, line in enumerate(lines) if line.startswith("[unused")]
    for i, token in zip(unused, fresh):
        lines[i] = token
    path.write_text("\n".join(lines), encoding="utf-8")


def clip_tokenizer(texts):
    """CLIP's with a small vocabulary of its own: the bytes, inside words and at their ends, and merges learned from the texts."""
    base = CLIPTokenizer()
    small = base.backend_tokenizer
    learner = trainers.BpeTrainer(vocab_size=1200, special_tokens=["<|startoftext|>", "<|endoftext|>"], end_of_word_suffix="</w>", max_token_length=20,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    model = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    model.normalizer, model.pre_tokenizer = small.normalizer, small.pre_tokenizer
    model.train_from_iterator(texts, learner)
    merges = [tuple(m) for m in json.loads(model.to_str())["model"]["merges"]]
    letters = pre_tokenizers.ByteLevel.alphabet()
    names = sorted(letters) + [c + "</w>" for c in sorted(letters)]
    names += [n for n in ("".join(m) for m in merges) if n not in names] + ["<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(vocab={n: i for i, n in enumerate(dict.fromkeys(names))}, merges=merges)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
    words = [w for w in (FILES / "vocab.txt").read_text(encoding="utf-8").split("\n") if w.isalpha() and len(w) > 2][:20000]
    bert = make_strings(count, words, ["[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]", "[mask]", "[CLS", "[[CLS]]"])
    roberta = make_strings(count, words, ["<s>", "</s>", "<mask>", "<pad>", "<unk>", "<S>", "<<s>", "<|endoftext|>"])
    few = count // 10
    with tempfile.TemporaryDirectory(prefix="norma-peers-") as folder:
        at = Path(folder)

        vocab = FILES / "vocab.txt"
        fast = encode_text.wordpiece(str(vocab))
        compare("WordPiece, uncased", vocab, fast, bert)
        compare_pairs("WordPiece", vocab, fast, bert[:few])
        compare_decoded("WordPiece", vocab, fast, bert[:few])
        fast.normalizer = BertNormalizer(strip_accents=False)
        fast.save(str(at / "accents.json"))
        compare("WordPiece, lower case with accents", at / "accents.json", fast, bert[:few])
        fast.normalizer = BertNormalizer(clean_text=False, handle_chinese_chars=False, lowercase=False, strip_accents=True)
        fast.save(str(at / "raw.json"))
        compare("WordPiece, not cleaned", at / "raw.json", fast, bert[:few])
        BertTokenizerFast(vocab=str(vocab)).save_pretrained(at / "bert")
        compare("BertTokenizerFast's folder", at / "bert", BertTokenizerFast(vocab=str(vocab)).backend_tokenizer, bert[:few])

        (at / "cased").mkdir()
        cased_vocab(at / "cased/vocab.txt")
        (at / "cased/tokenizer_config.json").write_text('{"do_lower_case": false}')
        cased = BertTokenizerFast(vocab=str(at / "cased/vocab.txt"), do_lower_case=False)
        compare("WordPiece, cased", at / "cased", cased.backend_tokenizer, bert)

        fast = encode_text.wordpiece(str(vocab))
        fast.add_tokens([AddedToken("Ünïcode", normalized=True), AddedToken("the", single_word=True, normalized=False), AddedToken("ing", normalized=False),
                         AddedToken("漢字", lstrip=True, rstrip=True), "##ing", AddedToken("👍", rstrip=True, normalized=False)])
        fast.save(str(at / "added.json"))
        extra = [s.replace(" ", r) for s, r in zip(bert[:few], ["the", " the ", "ünicode", "ÜNÏCODE", " 漢字 ", "👍  ", "[MASK] ", "ing"] * few)]
        compare("WordPiece, added tokens", at / "added.json", fast, extra + ["the", "the end", "end the", "bathe", "a漢字 b", "a \t漢字 \n b"])

        bpe = encode_text.bpe(str(FILES / "bpe"))
        compare("BPE", FILES / "bpe", bpe, roberta)
        compare_pairs("BPE", FILES / "bpe", bpe, roberta[:few])
        compare_decoded("BPE", FILES / "bpe", bpe, roberta[:few])
        bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        compare("BPE, a blank in front", FILES / "bpe", bpe, roberta, column=2)
        files = {"vocab": str(FILES / "bpe/vocab.json"), "merges": str(FILES / "bpe/merges.txt")}
        for kind, cls in (("roberta", RobertaTokenizerFast), ("gpt2", GPT2TokenizerFast)):
            t = cls(**files)
            t.save_pretrained(at / kind)
            compare(f"{cls.__name__}'s folder", at / kind, t.backend_tokenizer, roberta[:few])
        t = RobertaTokenizerFast(**files, mask_token=AddedToken("<mask>", lstrip=True, special=True))
        t.save_pretrained(at / "mask")
        compare("RoBERTa, blanks before <mask> are its own", at / "mask", t.backend_tokenizer, roberta[:few] + ["a <mask> b", "\n\u3000<mask>"])
        shutil.copy(FILES / "bpe/vocab.json", at)
        shutil.copy(FILES / "bpe/merges.txt", at)
        (at / "tokenizer_config.json").write_text('{"add_prefix_space": true}')
        compare("add_prefix_space in tokenizer_config.json", at / "vocab.json", bpe, roberta[:few])

        texts = make_strings(few, words, ["<|startoftext|>", "it's", "we'LL", "1234", "a1b2"])
        clip = clip_tokenizer(texts)
        clip.save_pretrained(at / "clip")
        compare("CLIPTokenizerFast's folder", at / "clip", clip.backend_tokenizer, [unicodedata.normalize("NFC", t) for t in texts])

    broken = [b"a\xffb", b"\xe2\x82", b"\xf0\x9f\x98 x", b"\xed\xa0\x80", b"\xc0\xaf", b"ab\xe3\x81cd", b"\xf4\x90\x80\x80"]
    bpe = encode_text.bpe(str(FILES / "bpe"))
    got = norma(b"".join(b.hex().encode() + b"\n" for b in broken), "--vocab", FILES / "bpe", "--hex").decode().split("\n")[:-1]
    same("bytes that are not UTF-8", [g.split("\t")[1] for g in got], ids(bpe, [b.decode(errors="replace") for b in broken]), broken)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
