"""timm backbones at 224 (PVT v1 from transformers): python backbone_step.py --model swin_tiny|pvt_v2_b0|levit_128s|pvt_tiny [--bs N]"""
import timm, torch, torch.nn.functional as F
import common

names = {"swin_tiny": ("swin_tiny_patch4_window7_224", 4), "pvt_v2_b0": ("pvt_v2_b0", 8), "pvt_v2_b3": ("pvt_v2_b3", 2),
         "levit_128s": ("levit_128s", 16), "pvt_tiny": (None, 4)}
p = common.parser(__doc__)
p.add_argument("--model", default="swin_tiny", choices=list(names))
a = p.parse_args()
common.setup(a)
name, bs = names[a.model]
bs = a.bs or bs
if name:
    net = timm.create_model(name, num_classes=1000)
    call = lambda m, x: m(x)
else:
    from transformers import PvtConfig, PvtForImageClassification
    net = PvtForImageClassification(PvtConfig(num_labels=1000))
    call = lambda m, x: m(x).logits
x, y = torch.randn(bs, 3, 224, 224), torch.randint(0, 1000, (bs,))


def attention_flops():
    """Multiply-adds of scores and values in one forward pass, counted by torch's own counter less linear and conv layers."""
    from torch.utils.flop_counter import FlopCounterMode
    net.eval()
    with torch.no_grad(), FlopCounterMode(display=False) as c:
        call(net, x)
    k = common.LinearFlops(net)
    with torch.no_grad():
        call(net, x)
    return max(0.0, c.get_total_flops() - k.done())


common.run(f"{a.model}_bs{bs}", a, net, lambda m: F.cross_entropy(call(m, x), y), call, (x,), bs, attention_flops())
