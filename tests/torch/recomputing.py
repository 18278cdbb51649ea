#!/usr/bin/env python3
"""Trains small models, and prints each loss and the sum of all gradients, bit for bit. On a GPU, it
prints the peak of each model instead."""
import argparse
import itertools

import torch
import torch.nn.functional as functional
import torch.utils.checkpoint

WORDS = 200


class Attention(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inputs = torch.nn.Linear(width, 3 * width)
        self.output = torch.nn.Linear(width, width)
        self.dropout = torch.nn.Dropout(0.1)

    def forward(self, x):
        q, k, v = (part.view(*x.shape[:2], self.heads, -1).transpose(1, 2)
                   for part in self.inputs(x).chunk(3, -1))
        weights = self.dropout(torch.softmax(q @ k.transpose(-1, -2) / 8, -1))
        return self.output((weights @ v).transpose(1, 2).reshape(x.shape))


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before = torch.nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.between = torch.nn.LayerNorm(width)
        self.inner = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(),
                                         torch.nn.Linear(4 * width, width), torch.nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.inner(self.between(x))


class Model(torch.nn.Module):
    """Shaped like GPT-2."""
    by_hand = False

    def __init__(self, layers=3, width=64, heads=4):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = torch.nn.Linear(width, WORDS)

    def forward(self, input_ids, labels):
        x = self.words(input_ids)
        for block in self.blocks:
            if self.by_hand:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return functional.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


def words(batch=2, length=16):
    return lambda: {"input_ids": torch.randint(WORDS, (batch, length)),
                    "labels": torch.randint(WORDS, (batch, length))}


def images(size):
    return lambda: {"pixel_values": torch.randn(2, 3, size, size),
                    "labels": torch.randint(2, (2,))}


def small():
    return Model(), words()


def large():
    return Model(layers=8, width=512, heads=8), words(batch=8, length=512)


def gpt2():
    """With the cache that transformers fills unless it is told not to."""
    import transformers
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=3, n_embd=64, n_head=4, vocab_size=WORDS, bos_token_id=0,
        eos_token_id=0)), words()


def llama():
    import transformers
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        num_hidden_layers=3, hidden_size=64, intermediate_size=128, num_attention_heads=4,
        vocab_size=WORDS, attention_dropout=0.1)), words()


def bert():
    import transformers
    return transformers.BertForMaskedLM(transformers.BertConfig(
        num_hidden_layers=3, hidden_size=64, intermediate_size=128, num_attention_heads=4,
        vocab_size=WORDS)), words()


def t5():
    import transformers
    return transformers.T5ForConditionalGeneration(transformers.T5Config(
        num_layers=2, d_model=64, d_ff=128, num_heads=4, d_kv=16, vocab_size=WORDS,
        decoder_start_token_id=0)), words()


def vit():
    import transformers
    return transformers.ViTForImageClassification(transformers.ViTConfig(
        num_hidden_layers=3, hidden_size=64, intermediate_size=128, num_attention_heads=4,
        image_size=32, patch_size=8, hidden_dropout_prob=0.1)), images(32)


def resnet():
    """Batch norms count in the forward pass."""
    import transformers
    return transformers.ResNetForImageClassification(transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[2, 2])), images(32)


def lora():
    import peft
    model, batches = llama()
    return peft.get_peft_model(model, peft.LoraConfig(target_modules=["q_proj", "v_proj"],
                                                      lora_dropout=0.1)), batches


def compiled():
    model, batches = small()
    return torch.compile(model, backend="aot_eager", fullgraph=True), batches


def alone():
    """Joins a group of one process."""
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0,
                                             world_size=1)


def ddp():
    alone()
    model, batches = small()
    return torch.nn.parallel.DistributedDataParallel(model), batches


def fsdp():
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    alone()
    model, batches = small()
    return FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Block}),
                                    device_id=torch.device("cpu")), batches


def fsdp2():
    from torch.distributed.fsdp import fully_shard
    alone()
    model, batches = small()
    for block in model.blocks:
        fully_shard(block)
    return fully_shard(model), batches


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def train(name, model, batches, args):
    model.to(args.device).train()
    Model.by_hand = args.by_hand
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(args.steps):
        batch = {key: value.to(args.device) for key, value in batches().items()}
        with torch.autocast(args.device, torch.bfloat16, enabled=args.autocast):
            loss = model(**batch)
        loss = getattr(loss, "loss", loss)
        loss.backward()
        if args.device == "cpu":
            gradients = [whole(item.grad).double().sum() for item in model.parameters()
                         if item.grad is not None]
            print(name, loss.item().hex(), sum(gradients).item().hex(), len(gradients))
        optimizer.step()
        optimizer.zero_grad()
    if args.device == "cpu":
        state = itertools.chain(model.parameters(), model.buffers())
        print(name, sum(whole(item).double().sum() for item in state).item().hex())
    else:
        print(name, torch.cuda.max_memory_allocated())
        torch.cuda.reset_peak_memory_stats()


def main():
    models = {build.__name__: build for build in (small, large, gpt2, llama, bert, t5, vit, resnet,
                                                  lora, compiled, ddp, fsdp, fsdp2)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=models, nargs="+")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--by-hand", action="store_true", help="checkpoint every block")
    args = parser.parse_args()

    torch.set_num_threads(1)
    for name in args.model:
        torch.manual_seed(0)
        train(name, *models[name](), args)


if __name__ == "__main__":
    main()
