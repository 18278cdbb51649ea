#!/usr/bin/env python3
"""A small language model writes text: greedily, with beams, and by chance."""
import torch
import transformers

PAD, END = 0, 1
WAYS = {"greedy": {"do_sample": False}, "beam": {"num_beams": 3, "early_stopping": True},
        "sample": {"do_sample": True, "top_k": 20, "top_p": 0.9, "temperature": 0.8}}


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=2, bos_token_id=2, pad_token_id=PAD, eos_token_id=END))
    model = model.to(device).eval()
    prompt = torch.tensor([[PAD, PAD, 5, 6, 7], [8, 9, 10, 11, 12]], device=device)
    for way, settings in WAYS.items():
        tokens = model.generate(prompt, attention_mask=(prompt != PAD).long(), max_new_tokens=12,
                                repetition_penalty=1.2, **settings)
        ended = (tokens[:, prompt.shape[1]:] == END).any(-1)
        print(way, tokens[:, :5].tolist() == prompt.tolist(), tuple(tokens.shape), ended.tolist())


if __name__ == "__main__":
    main()
