"""Sentence embeddings by PyTorch: texts in, mean-pooled vectors out, batches sorted by length.

python embed.py --model FOLDER --text FILE [--seconds 6] [--threads 2] [--bs 64]
Prints one JSON line. The batch size is the fastest of a few on the first texts unless given; the first pass is not counted.
"""
import argparse, json, os, resource, time


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--model", required=True)
    p.add_argument("--text", required=True)
    p.add_argument("--seconds", type=float, default=6)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--bs", type=int, default=0)
    a = p.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(a.threads)
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModel
    torch.set_num_threads(a.threads)
    with open(a.text, encoding="utf-8", newline="\n") as f:
        texts = [s for s in f.read().split("\n") if s]
    tokenizer = Tokenizer.from_file(os.path.join(a.model, "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(512)
    model = AutoModel.from_pretrained(a.model).eval()

    @torch.inference_mode()
    def embed(texts, size):
        ids = [e.ids for e in tokenizer.encode_batch(texts)]
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        out = torch.empty(len(ids), model.config.hidden_size)
        for at in range(0, len(order), size):
            rows = order[at:at + size]
            longest = len(ids[rows[0]])
            x = torch.tensor([ids[i] + [0] * (longest - len(ids[i])) for i in rows])
            mask = torch.tensor([[1] * len(ids[i]) + [0] * (longest - len(ids[i])) for i in rows])
            y = model(input_ids=x, attention_mask=mask).last_hidden_state
            m = mask.unsqueeze(-1).to(y.dtype)
            out[rows] = (y * m).sum(1) / m.sum(1)
        return out

    def timed(texts, size):
        start = time.perf_counter()
        embed(texts, size)
        return time.perf_counter() - start

    size = a.bs
    if not size:
        first = texts[:512]
        timed(first, 64)
        size = min((16, 32, 64, 128), key=lambda n: timed(first, n))
    out = embed(texts, size)
    spent = passes = 0
    while not passes or spent < a.seconds:
        spent, passes = spent + timed(texts, size), passes + 1
    print(json.dumps({"texts": len(texts), "texts_per_s": len(texts) * passes / spent, "batch": size,
                      "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                      "size": out.abs().double().mean().item()}), flush=True)


if __name__ == "__main__":
    main()
