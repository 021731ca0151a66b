"""Language models to time: a real one, or a small one of random weights for which nothing is downloaded."""

import importlib
from typing import Any

VOCABULARY = 1024

_COMMON = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "rms_norm_eps": 1e-6,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 4096,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}
# Three of qwen3_5's four layers are linear: where MLX has no kernel for them, they loop over the tokens.
_GATED_DELTA = {
    "full_attention_interval": 4,
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "linear_conv_kernel_dim": 4,
}
TINY: dict[str, dict[str, Any]] = {
    "llama": _COMMON,
    "qwen3": _COMMON,
    "qwen3_5": {**_COMMON, **_GATED_DELTA},
}
"""Configurations by mlx_lm's name of the architecture."""

Model = Any
"""What mlx_lm loads."""


def real_model(path: str) -> Model:
    """What mlx_lm loads: a folder, or a repository's name."""
    from mlx_lm import load

    return load(path)[0]


def tiny_model(name: str) -> Model:
    """One of TINY with random 4-bit weights, the same in each run."""
    import mlx.core as mx
    from mlx import nn

    architecture = importlib.import_module(f"mlx_lm.models.{name}")
    mx.random.seed(0)
    configuration = {"model_type": name, **TINY[name]}
    model = architecture.Model(architecture.ModelArgs.from_dict(configuration))
    if mx.default_device() == mx.gpu:
        # What real models run with; on the CPU it takes many times as long as the float32 they are made with.
        model.set_dtype(mx.bfloat16)
    nn.quantize(model, group_size=64, bits=4)  # type: ignore[attr-defined, unused-ignore]
    mx.eval(model.parameters())
    return model


def prompt(tokens: int) -> Any:  # noqa: ANN401
    """So many token ids that every vocabulary has, the same in each run."""
    import mlx.core as mx

    return mx.arange(tokens) * 389 % 1000
