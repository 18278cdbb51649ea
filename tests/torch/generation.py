#!/usr/bin/env python3
"""Small models generate text in the usual ways. Prints the shape of each result, whose tokens mean
nothing on a simulated GPU."""
import torch
import transformers

ROOM = {"vocab_size": 1000, "bos_token_id": 997, "eos_token_id": 998, "pad_token_id": 999}
MODELS = [
    transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2, n_embd=64, n_head=2, **ROOM)),
    transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        **ROOM)),
]
WAYS = {"greedy": {"do_sample": False}, "beams": {"num_beams": 2},
        "sampled": {"do_sample": True, "top_k": 5, "top_p": 0.9}}
prompt = torch.tensor([[5, 6, 7], [999, 9, 10]], device="cuda")
for model in MODELS:
    model = model.cuda().eval()
    for way, settings in WAYS.items():
        tokens = model.generate(prompt, attention_mask=prompt.ne(999), min_new_tokens=6,
                                max_new_tokens=6, **settings)
        ok = tokens[:, :3].equal(prompt) and 0 <= tokens.min().item() <= tokens.max().item() < 1000
        print(type(model).__name__, way, tuple(tokens.shape), "ok" if ok else tokens.tolist())
