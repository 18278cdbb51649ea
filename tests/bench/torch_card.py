#!/usr/bin/env python3
"""Programs of the size that people train and serve, for the benchmark `card`.

    torch_card.py NAME    runs one for four steps; without a name, prints the names

Where a step ends, the kernel spw_touch_step is launched (torch_spill.py). Weights are random.
"""
import sys

import torch
import torch_spill
import transformers

STEPS, DEVICE, DTYPE = 4, "cuda", torch.bfloat16
LLAMA = {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 8,
         "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000,
         "max_position_embeddings": 2048, "attn_implementation": "sdpa"}
LLAMA_1B = LLAMA | {"num_hidden_layers": 22}


def llama_of(shape):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape)).to(DEVICE, DTYPE)


def repeat(step):
    mark = torch_spill.Mark()
    for _ in range(STEPS):
        step()
        mark()


def train(model, loss_of):
    adam = torch.optim.AdamW([part for part in model.parameters() if part.requires_grad], lr=1e-4,
                             fused=True)

    def step():
        loss_of(model).backward()
        adam.step()
        adam.zero_grad()
    repeat(step)


def loss_of_text(model):
    words = torch.zeros(4, 2048, dtype=torch.long, device=DEVICE)
    return model(input_ids=words, labels=words, use_cache=False).loss


def llama():
    train(llama_of(LLAMA), loss_of_text)


def lora():
    """Only adapters are trained."""
    import peft
    adapters = peft.LoraConfig(r=16, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"])
    train(peft.get_peft_model(llama_of(LLAMA_1B), adapters), loss_of_text)


def resnet():
    """ResNet-50."""
    model = transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=1000))

    def loss(model):
        images = torch.zeros(256, 3, 224, 224, dtype=DTYPE, device=DEVICE)
        labels = torch.zeros(256, dtype=torch.long, device=DEVICE)
        return torch.nn.functional.cross_entropy(model(images).logits.float(), labels)
    train(model.to(DEVICE, DTYPE), loss)


def unet():
    """The UNet of Stable Diffusion 1.5."""
    import diffusers
    model = diffusers.UNet2DConditionModel(sample_size=64, cross_attention_dim=768)

    def loss(model):
        noisy = torch.zeros(8, 4, 64, 64, dtype=DTYPE, device=DEVICE)
        times = torch.zeros(8, dtype=torch.long, device=DEVICE)
        text = torch.zeros(8, 77, 768, dtype=DTYPE, device=DEVICE)
        return model(noisy, times, text).sample.float().square().mean()
    train(model.to(DEVICE, DTYPE), loss)


def inference():
    """A batch of prompts through a Llama."""
    model = llama_of(LLAMA_1B).eval()
    words = torch.zeros(8, 1024, dtype=torch.long, device=DEVICE)

    @torch.inference_mode()
    def step():
        model(input_ids=words, use_cache=False, logits_to_keep=1)
    repeat(step)


PROGRAMS = {run.__name__: run for run in (llama, lora, resnet, unet, inference)}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        print("\n".join(PROGRAMS))
    elif sys.argv[1] not in PROGRAMS:
        sys.exit(f"torch_card.py: {sys.argv[1]}: expected {', '.join(PROGRAMS)}")
    else:
        torch.manual_seed(0)
        PROGRAMS[sys.argv[1]]()
