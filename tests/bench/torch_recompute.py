#!/usr/bin/env python3
"""Trainings of models that people train, for the benchmark `recompute`.

    torch_recompute.py NAME [hand|offload]    trains one for eight steps; without a name, prints the
                                              names

`hand` checkpoints every block by the model's own switch, `offload` moves what is saved for backward
to the host by PyTorch's `save_on_cpu`. Weights are random.
"""
import contextlib
import sys

import torch
import transformers

STEPS, DEVICE, DTYPE = 8, "cuda", torch.bfloat16
LLAMA = {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 16,
         "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
         "attn_implementation": "sdpa", "use_cache": False}


def words(batch, length):
    return torch.zeros(batch, length, dtype=torch.long, device=DEVICE)


def of_text(model, batch, length, **more):
    """The loss of a language model."""
    return lambda: model(input_ids=words(batch, length), labels=words(batch, length), **more).loss


def of_images(model, batch):
    def loss():
        images = torch.zeros(batch, 3, 224, 224, dtype=DTYPE, device=DEVICE)
        return torch.nn.functional.cross_entropy(model(images).logits.float(),
                                                 words(1, batch).view(-1))
    return loss


def gpt2():
    """GPT-2 small."""
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))
    return model.to(DEVICE, DTYPE), of_text(model, 8, 1024)


def llama():
    """A Llama of 1 billion parameters."""
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))
    return model.to(DEVICE, DTYPE), of_text(model, 4, 2048)


def lora():
    """Only adapters of that Llama are trained."""
    import peft
    model, _ = llama()
    model.enable_input_require_grads()
    model = peft.get_peft_model(model, peft.LoraConfig(
        r=16, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]))
    return model, of_text(model, 4, 2048)


def bert():
    """BERT base."""
    model = transformers.BertForMaskedLM(transformers.BertConfig())
    return model.to(DEVICE, DTYPE), of_text(model, 32, 512)


def t5():
    """T5 base."""
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(
        d_model=768, d_ff=3072, num_layers=12, num_heads=12, use_cache=False,
        decoder_start_token_id=0))
    return model.to(DEVICE, DTYPE), of_text(model, 8, 512)


def vit():
    """ViT base."""
    model = transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000))
    return model.to(DEVICE, DTYPE), of_images(model, 128)


def resnet():
    """ResNet-50, whose stages have no switch for checkpointing: by hand, each of their layers."""
    model = transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=1000))
    return model.to(DEVICE, DTYPE), of_images(model, 128)


def unet():
    """The UNet of Stable Diffusion 1.5."""
    import diffusers
    model = diffusers.UNet2DConditionModel(sample_size=64, cross_attention_dim=768)

    def loss():
        noisy = torch.zeros(8, 4, 64, 64, dtype=DTYPE, device=DEVICE)
        text = torch.zeros(8, 77, 768, dtype=DTYPE, device=DEVICE)
        return model(noisy, words(1, 8).view(-1), text).sample.float().square().mean()
    return model.to(DEVICE, DTYPE), loss


PROGRAMS = {make.__name__: make for make in (gpt2, llama, lora, bert, t5, vit, resnet, unet)}


def checkpoint_layers(model):
    """Checkpoints the layers of a model without a switch."""
    from torch.utils.checkpoint import checkpoint
    for layer in model.modules():
        if type(layer).__name__ == "ResNetBottleNeckLayer":
            layer.forward = lambda x, inner=layer.forward: checkpoint(inner, x, use_reentrant=False)


def checkpoint_by_hand(model):
    if isinstance(model, transformers.ResNetForImageClassification):
        checkpoint_layers(model)
    elif hasattr(model, "enable_gradient_checkpointing"):
        model.enable_gradient_checkpointing()
    else:
        model.gradient_checkpointing_enable({"use_reentrant": False})


def train(model, loss_of, way):
    adam = torch.optim.AdamW([part for part in model.parameters() if part.requires_grad], lr=1e-4,
                             fused=True)
    model.train()
    if way == "hand":
        checkpoint_by_hand(model)
    for _ in range(STEPS):
        with torch.autograd.graph.save_on_cpu() if way == "offload" else contextlib.nullcontext():
            loss = loss_of()
        loss.backward()
        adam.step()
        adam.zero_grad()


def main():
    name, way = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    if name not in PROGRAMS or way not in ("", "hand", "offload"):
        sys.exit(f"torch_recompute.py: {' '.join(sys.argv[1:])}: expected "
                 f"{', '.join(PROGRAMS)}, and hand, offload or nothing")
    torch.manual_seed(0)
    train(*PROGRAMS[name](), way)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    else:
        print("\n".join(PROGRAMS))
