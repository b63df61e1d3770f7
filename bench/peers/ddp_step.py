"""Data-parallel training steps by PyTorch's DistributedDataParallel over gloo, the batch for each rank: one process alone, then all.

python ddp_step.py --model vit|mae --ranks 2 --threads 1      beside `mpirun -n 2 norma bench ranks vit_tiny_bs8/train --threads 1`
"""
import argparse, json, os, statistics, time
import torch, torch.distributed as dist, torch.multiprocessing as mp


def model_of(name):
    """The model, its batch, its input and what a step minimizes."""
    if name == "vit":
        import timm
        net, x, y = timm.create_model("vit_tiny_patch16_224", num_classes=1000), torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,))
        return net, 8, lambda m: torch.nn.functional.cross_entropy(m(x), y)
    from mae_step import MAE
    x = torch.randn(128, 3, 32, 32)
    return MAE(32, 3), 128, lambda m: m(x)


def work(rank, a, world, out):
    torch.manual_seed(0)
    torch.set_num_threads(a.threads)
    net, _, loss = model_of(a.model)
    if world > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(a.port))
        dist.init_process_group("gloo", rank=rank, world_size=world)
        net = torch.nn.parallel.DistributedDataParallel(net)
    step = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.05, fused=True)
    times, began = [], time.perf_counter()
    while len(times) < 5 + a.warm or (world == 1 and time.perf_counter() - began < a.seconds) or len(times) < a.steps * (world > 1):
        start = time.perf_counter()
        loss(net).backward()
        step.step()
        step.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - start)
    if rank == 0:
        out.put((statistics.median(times[a.warm:]), len(times)))
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--model", default="vit", choices=["vit", "mae"])
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=5, help="of the process alone; as many steps of all ranks follow")
    p.add_argument("--warm", type=int, default=3)
    p.add_argument("--port", type=int, default=29571)
    a = p.parse_args()
    a.steps, context, median = 0, mp.get_context("spawn"), {}
    for world in (1, a.ranks):
        out = context.Queue()
        ranks = [context.Process(target=work, args=(r, a, world, out)) for r in range(world)]
        for r in ranks:
            r.start()
        median[world], a.steps = out.get()
        for r in ranks:
            r.join()
    batch = model_of(a.model)[1]
    print(json.dumps({"case": {"vit": "vit_tiny_bs8", "mae": "mae32_bs128"}[a.model] + "/train", "mode": "ddp gloo", "ranks": a.ranks,
                      "threads": a.threads, "alone_ms": round(median[1] * 1e3, 2), "ms": round(median[a.ranks] * 1e3, 2),
                      "samples_per_s": round(a.ranks * batch / median[a.ranks], 2), "of_alone": round(median[1] / median[a.ranks], 3)}))
