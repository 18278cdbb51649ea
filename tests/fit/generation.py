"""A decoder of transformers that generates some tokens after a prompt, with its cache; the loop is
written anew, since the library's own ends at tokens that are not computed."""
import torch
import transformers

SHAPES = {
    "bigcode/octocoder": dict(kind="GPTBigCode", vocab_size=49152, n_positions=8192, n_embd=6144,
                              n_layer=40, n_head=48, n_inner=24576, multi_query=True,
                              activation_function="gelu_pytorch_tanh"),
}


def build(row):
    shape = dict(SHAPES[row["model"]])
    config = getattr(transformers, shape.pop("kind") + "Config")(**shape)
    torch.set_default_dtype(getattr(torch, row["dtype"]))
    model = transformers.AutoModelForCausalLM.from_config(config)
    torch.set_default_dtype(torch.float32)
    return model


def train(row, model, device):
    """`length` tokens of a prompt and sixty after it."""
    model.eval()
    tokens = torch.zeros(row["batch"], row["length"], dtype=torch.long, device=device)
    cache = None
    with torch.no_grad():
        for _ in range(60):
            outputs = model(input_ids=tokens, past_key_values=cache, use_cache=True)
            cache = outputs.past_key_values
            chosen = outputs.logits[:, -1, :].float()
            tokens = torch.argmax(chosen, dim=-1)[:, None]
            del outputs, chosen
