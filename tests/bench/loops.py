#!/usr/bin/env python3
"""Fifteen training loops as people write them, for the benchmark `reserved`.

    loops.py LOOP       trains for some steps and prints PyTorch's peaks as JSON: bytes allocated
                        and reserved; and the memory calls of the last step
    loops.py --list     prints the names

Models have the shapes of well-known ones with fewer layers, so that a run takes seconds.
"""
import argparse
import ctypes
import json
import tempfile

import torch
import transformers

STEPS = 8
WORDS = 32000
CALLS = ["cuMemAlloc_v2", "cuMemFree_v2", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap",
         "cuMemRelease"]


def memory_calls():
    driver = ctypes.CDLL("libcuda.so.1")
    driver.spillway_sim_calls.restype = ctypes.c_ulonglong
    return sum(driver.spillway_sim_calls(name.encode()) for name in CALLS)


class CallsOfSteps:
    """Counts the memory calls of each step."""

    def __init__(self):
        self.before, self.steps = memory_calls(), []

    def step(self):
        now = memory_calls()
        self.steps.append(now - self.before)
        self.before = now


class Counting(transformers.TrainerCallback):
    """The same under the Trainer."""

    def __init__(self, calls):
        self.calls = calls

    def on_step_end(self, args, state, control, **rest):
        self.calls.step()


class Rows(torch.utils.data.Dataset):
    """Random text of one length."""

    def __init__(self, count, length):
        self.count, self.length = count, length

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        words = torch.randint(WORDS, (self.length,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": words, "labels": words}


# ---- ways to train ----

def own_loop(model, loss_of, calls):
    """The loop of most tutorials: autocast, AdamW, one batch in a step."""
    model.train()
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-4)
    for _ in range(STEPS):
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(model)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        calls.step()


def hugging_face_trainer(calls, rows, trainer=transformers.Trainer,
                         arguments=transformers.TrainingArguments, settings=None, **more):
    """Batches of four."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = arguments(output_dir=folder, max_steps=STEPS, per_device_train_batch_size=4,
                           bf16=True, save_strategy="no", logging_steps=1, report_to=[],
                           disable_tqdm=True, **settings or {})
        trainer(args=chosen, train_dataset=rows, callbacks=[Counting(calls)], **more).train()


def tokens(batch, length, words=WORDS):
    return torch.randint(words, (batch, length), device="cuda")


def text_loss(batch, length, kinds=WORDS):
    def loss_of(model):
        words = tokens(batch, length, kinds)
        return model(input_ids=words, labels=words).loss
    return loss_of


def decoder(kind, **more):
    """A decoder of 1024 channels and 8 layers."""
    config = getattr(transformers, kind + "Config")(**{
        "vocab_size": WORDS, "hidden_size": 1024, "intermediate_size": 2816,
        "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 4,
        "use_cache": False, **more})
    with torch.device("cuda"):
        return getattr(transformers, kind + "ForCausalLM")(config)


# ---- the loops ----

def llama_trainer(calls):
    hugging_face_trainer(calls, Rows(4 * STEPS, 512), model=decoder("Llama"))


def llama(calls):
    own_loop(decoder("Llama"), text_loss(4, 512), calls)


def qwen3(calls):
    own_loop(decoder("Qwen3", head_dim=64), text_loss(2, 768), calls)


def qwen2(calls):
    own_loop(decoder("Qwen2", num_hidden_layers=6), text_loss(2, 768), calls)


def mixtral(calls):
    own_loop(decoder("Mixtral", hidden_size=512, intermediate_size=1024, num_local_experts=4,
                     num_attention_heads=8), text_loss(4, 256), calls)


def bert(calls):
    with torch.device("cuda"):
        model = transformers.BertForMaskedLM(transformers.BertConfig())
    own_loop(model, text_loss(8, 512, model.config.vocab_size), calls)


def t5(calls):
    with torch.device("cuda"):
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(
            d_model=512, d_ff=2048, num_layers=6, num_heads=8, decoder_start_token_id=0))
    own_loop(model, text_loss(8, 256), calls)


def vit(calls):
    with torch.device("cuda"):
        model = transformers.ViTForImageClassification(transformers.ViTConfig())

    def loss_of(model):
        return model(pixel_values=torch.randn(16, 3, 224, 224, device="cuda"),
                     labels=torch.zeros(16, dtype=torch.long, device="cuda")).loss
    own_loop(model, loss_of, calls)


def whisper(calls):
    with torch.device("cuda"):
        model = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(
            d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6,
            decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536, use_cache=False))

    def loss_of(model):
        return model(input_features=torch.randn(4, 80, 3000, device="cuda"),
                     labels=tokens(4, 64)).loss
    own_loop(model, loss_of, calls)


def clip(calls):
    with torch.device("cuda"):
        model = transformers.CLIPModel(transformers.CLIPConfig())

    def loss_of(model):
        return model(input_ids=tokens(16, 77), return_loss=True,
                     pixel_values=torch.randn(16, 3, 224, 224, device="cuda")).loss
    own_loop(model, loss_of, calls)


def noise_loss(shape, **inputs):
    def loss_of(model):
        noise = torch.randn(shape, device="cuda")
        times = torch.zeros(shape[0], dtype=torch.long, device="cuda")
        found = model(noise, times, **inputs).sample
        return torch.nn.functional.mse_loss(found[:, :shape[1]].float(), noise)
    return loss_of


def unet(calls):
    import diffusers  # pylint: disable=import-outside-toplevel
    with torch.device("cuda"):
        model = diffusers.UNet2DConditionModel(
            sample_size=64, block_out_channels=(160, 320, 640, 640), cross_attention_dim=768)
        text = torch.randn(4, 77, 768)
    own_loop(model, noise_loss((4, 4, 64, 64), encoder_hidden_states=text), calls)


def dit(calls):
    import diffusers  # pylint: disable=import-outside-toplevel
    with torch.device("cuda"):
        model = diffusers.DiTTransformer2DModel(num_layers=12, num_attention_heads=12,
                                                attention_head_dim=64, sample_size=32)
        classes = torch.zeros(8, dtype=torch.long)

    def loss_of(model):
        noise = torch.randn((8, 4, 32, 32), device="cuda")
        times = torch.zeros(8, dtype=torch.long, device="cuda")
        found = model(noise, timestep=times, class_labels=classes).sample
        return torch.nn.functional.mse_loss(found[:, :4].float(), noise)
    own_loop(model, loss_of, calls)


def lora(calls):
    import peft  # pylint: disable=import-outside-toplevel
    model = peft.get_peft_model(decoder("Llama"), peft.LoraConfig(
        r=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    own_loop(model, text_loss(2, 512), calls)


def sft(calls):
    import trl  # pylint: disable=import-outside-toplevel
    import datasets  # pylint: disable=import-outside-toplevel
    rows = Rows(4 * STEPS, 256)
    text = datasets.Dataset.from_list([{"input_ids": rows[i]["input_ids"].tolist()}
                                       for i in range(len(rows))])
    hugging_face_trainer(calls, text, trl.SFTTrainer, trl.SFTConfig,
                         {"eos_token": None, "dataset_kwargs": {"skip_prepare_dataset": True}},
                         model=decoder("Llama", hidden_size=512, intermediate_size=1408,
                                       num_attention_heads=8), processing_class=word_pieces())


def word_pieces():
    """A tokenizer without a file: one token for each number."""
    import tokenizers  # pylint: disable=import-outside-toplevel
    model = tokenizers.models.WordLevel({str(i): i for i in range(WORDS)}, unk_token="0")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(model),
                                                pad_token="0", eos_token="1", unk_token="0")


def compiled(calls):
    model = decoder("Llama", hidden_size=512, intermediate_size=1408, num_attention_heads=8,
                    num_hidden_layers=4)
    own_loop(torch.compile(model, backend="aot_eager"), text_loss(2, 256), calls)


LOOPS = {"llama, Trainer": llama_trainer, "llama": llama, "qwen3": qwen3, "qwen2": qwen2,
         "mixtral": mixtral, "bert": bert, "t5": t5, "vit": vit, "whisper": whisper, "clip": clip,
         "unet": unet, "DiT": dit, "LoRA": lora, "SFT": sft, "torch.compile": compiled}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loop", nargs="?", choices=LOOPS)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(LOOPS))
        return
    transformers.logging.set_verbosity_error()
    torch.manual_seed(1)
    calls = CallsOfSteps()
    LOOPS[arguments.loop](calls)
    free, total = torch.cuda.mem_get_info()
    print(json.dumps({"allocated_peak": torch.cuda.max_memory_allocated(),
                      "reserved_peak": torch.cuda.max_memory_reserved(), "device": total - free,
                      "calls": sum(calls.steps), "last_step_calls": calls.steps[-1]}))


if __name__ == "__main__":
    main()
