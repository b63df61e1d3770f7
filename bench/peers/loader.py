"""torchvision's loading of JPEG files: PIL, RandomResizedCrop(224, bicubic), flip, ToTensor, Normalize, in DataLoader workers.

python loader.py --folder DIR [--threads 2] [--seconds 6]
Prints one JSON line; samples_per_s counts after the first batches.
"""
import argparse, glob, json, os, time
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as T

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("--folder", required=True)
p.add_argument("--threads", type=int, default=2)
p.add_argument("--seconds", type=float, default=6)
a = p.parse_args()
torch.set_num_threads(1)


class Files(Dataset):
    def __init__(self, folder):
        self.paths = sorted(glob.glob(os.path.join(folder, "*.jpg"))) * 1000
        self.transform = T.Compose([
            T.RandomResizedCrop(224, interpolation=T.InterpolationMode.BICUBIC), T.RandomHorizontalFlip(), T.ToTensor(),
            T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return self.transform(Image.open(self.paths[i]).convert("RGB")), -1


def main():
    batches = iter(DataLoader(Files(a.folder), 32, shuffle=True, num_workers=a.threads, drop_last=True))
    for _ in range(3 + 2 * a.threads):
        next(batches)
    start, n = time.perf_counter(), 0
    while time.perf_counter() - start < a.seconds:
        n += len(next(batches)[1])
    print(json.dumps({"samples_per_s": n / (time.perf_counter() - start), "threads": a.threads}), flush=True)
    os._exit(0)  # workers that still fill the queue are not waited for


if __name__ == "__main__":
    main()
