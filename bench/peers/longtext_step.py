"""BigBird and Reformer of transformers at the sizes of `norma bench step bigbird_bs2_len*`: dim 256, 4 heads, 4 layers, FFN 1024.

python longtext_step.py --model bigbird|reformer --length 1024 --mode eager|compile
"""
import torch, torch.nn.functional as F
from torch import nn
from transformers import BigBirdConfig, BigBirdModel, ReformerConfig, ReformerModel
import common


class Net(nn.Module):
    def __init__(self, kind, L):
        super().__init__()
        shared = dict(vocab_size=18, hidden_size=256, max_position_embeddings=L, hidden_dropout_prob=0.0)
        if kind == "bigbird":
            self.body = BigBirdModel(BigBirdConfig(num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024, block_size=64,
                num_random_blocks=3, attention_probs_dropout_prob=0.0, **shared), add_pooling_layer=False)
        else:
            self.body = ReformerModel(ReformerConfig(attn_layers=["lsh"] * 4, num_attention_heads=4, attention_head_size=64,
                feed_forward_size=1024, axial_pos_embds=False, num_hashes=2, num_buckets=L // 64, lsh_attn_chunk_length=64,
                lsh_attention_probs_dropout_prob=0.0, is_decoder=False, **shared))
        self.head = nn.Linear(256 if kind == "bigbird" else 512, 10)

    def forward(self, t):
        return self.head(self.body(t).last_hidden_state[:, 0])


p = common.parser(__doc__)
p.add_argument("--model", default="bigbird", choices=["bigbird", "reformer"])
p.add_argument("--length", type=int, default=1024)
a = p.parse_args()
common.setup(a)
bs, L = a.bs or 2, a.length
net = Net(a.model, L)
t, y = torch.randint(0, 18, (bs, L)), torch.randint(0, 10, (bs,))
common.run(f"{a.model}_bs{bs}_len{L}", a, net, lambda m: F.cross_entropy(m(t).float(), y), lambda m, t: m(t), (t,), bs, 0.0)
