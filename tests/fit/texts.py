"""Language models with the shapes of their published configurations, written by hand.

Nothing is fetched. Values that do not change the memory are left at the library's defaults.
"""
import transformers

GPT2 = dict(kind="GPT2", vocab_size=50257)
OPT = dict(kind="OPT", vocab_size=50272, max_position_embeddings=2048)
T5 = dict(kind="T5", vocab_size=32128, d_kv=64, decoder_start_token_id=0)
QWEN35 = dict(kind="Qwen3_5Text", num_hidden_layers=24, num_attention_heads=8,
              num_key_value_heads=2, head_dim=256, linear_num_key_heads=16,
              linear_num_value_heads=16, tie_word_embeddings=True)
SHAPES = {
    "openai-community/gpt2": GPT2,
    "distilbert/distilgpt2": dict(GPT2, n_layer=6),
    "cerebras/Cerebras-GPT-111M": dict(GPT2, n_layer=10, n_inner=3072, n_positions=2048,
                                       activation_function="gelu", attn_pdrop=0, embd_pdrop=0,
                                       resid_pdrop=0),
    "EleutherAI/gpt-neo-125M": dict(kind="GPTNeo", hidden_size=768, num_layers=12, num_heads=12,
                                    attention_types=[[["global", "local"], 6]]),
    "facebook/opt-125m": dict(OPT, hidden_size=768, num_hidden_layers=12, ffn_dim=3072,
                              num_attention_heads=12),
    "facebook/opt-350m": dict(OPT, hidden_size=1024, num_hidden_layers=24, ffn_dim=4096,
                              num_attention_heads=16, word_embed_proj_dim=512,
                              do_layer_norm_before=False),
    "microsoft/deberta-base": dict(kind="Deberta", vocab_size=50265, relative_attention=True,
                                   position_biased_input=False, pos_att_type="c2p|p2c",
                                   type_vocab_size=0, max_relative_positions=-1),
    "T5-small": dict(T5, d_model=512, d_ff=2048, num_layers=6, num_heads=8),
    "t5-base": dict(T5, d_model=768, d_ff=3072, num_layers=12, num_heads=12),
    "EleutherAI/pythia-1b": dict(kind="GPTNeoX", vocab_size=50304, hidden_size=2048,
                                 num_hidden_layers=16, num_attention_heads=8,
                                 intermediate_size=8192, tie_word_embeddings=False),
    "Qwen/Qwen3-0.6B": dict(kind="Qwen3", vocab_size=151936, hidden_size=1024,
                            num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8,
                            head_dim=128, intermediate_size=3072, tie_word_embeddings=True),
    "Qwen/Qwen3-4B": dict(kind="Qwen3", vocab_size=151936, hidden_size=2560, num_hidden_layers=36,
                          num_attention_heads=32, num_key_value_heads=8, head_dim=128,
                          intermediate_size=9728, tie_word_embeddings=True),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": dict(
        kind="Qwen2", vocab_size=151936, hidden_size=1536, num_hidden_layers=28,
        num_attention_heads=12, num_key_value_heads=2, intermediate_size=8960,
        tie_word_embeddings=False),
    "google/gemma-2-2b-it": dict(kind="Gemma2", vocab_size=256000, hidden_size=2304,
                                 num_hidden_layers=26, num_attention_heads=8,
                                 num_key_value_heads=4, head_dim=256, intermediate_size=9216),
    "meta-llama/Llama-3.2-3B-Instruct": dict(
        kind="Llama", vocab_size=128256, hidden_size=3072, num_hidden_layers=28,
        num_attention_heads=24, num_key_value_heads=8, head_dim=128, intermediate_size=8192,
        tie_word_embeddings=True),
    "Qwen/Qwen3.5-0.8B": dict(QWEN35, hidden_size=1024, intermediate_size=3584),
    "Qwen/Qwen3.5-2B": dict(QWEN35, hidden_size=2048, intermediate_size=6144),
}
HEADS = {"T5": "AutoModelForSeq2SeqLM", "Deberta": "AutoModelForMaskedLM"}


def build(name):
    """The model with its usual head; its attention is what the library chooses."""
    shape = dict(SHAPES[name])
    kind = shape.pop("kind")
    config = getattr(transformers, kind + "Config")(**shape)
    return getattr(transformers, HEADS.get(kind, "AutoModelForCausalLM")).from_config(config)
