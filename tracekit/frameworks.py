"""How inference frameworks name their ranges and kernels, and how each switches CUDA graphs off.

Data only: used to leave framework ranges out of phases, and to give advice that can be followed.
"""

import re
from typing import NamedTuple


class Framework(NamedTuple):
    """One framework. ``kernels`` and ``ranges`` are regular expressions that tell it from a trace."""

    name: str
    graphs_off: str
    graphs_on: str
    scope: str
    kernels: str
    ranges: str


FRAMEWORKS = (
    Framework(
        "MLX",
        "set MLX_USE_CUDA_GRAPHS=0",
        "leave MLX_USE_CUDA_GRAPHS unset (graphs are on by default)",
        "an MLX version whose API switches graphs per scope",
        r"\bmlx::core\b",
        r"::eval_gpu$|^CommandEncoder::commit$",
    ),
    Framework(
        "TensorRT-LLM",
        "set cuda_graph_config: null in the LLM options (leaving the key out keeps graphs on)",
        "give cuda_graph_config in the LLM options",
        "",
        r"\btensorrt_llm::",
        r"^tensorrt_llm\b",
    ),
    Framework(
        "vLLM",
        "start it with -cc.cudagraph_mode=NONE (--enforce-eager also disables compilation, which is not the same)",
        "start it without -cc.cudagraph_mode",
        "",
        r"\bvllm::",
        r"^vllm\b",
    ),
    Framework(
        "SGLang",
        "start it with --disable-cuda-graph",
        "start it without --disable-cuda-graph",
        "",
        r"\bsgl_kernel\b|\bsglang\b",
        r"^sglang\b",
    ),
    Framework(
        "llama.cpp",
        "set GGML_CUDA_DISABLE_GRAPHS=1",
        "leave GGML_CUDA_DISABLE_GRAPHS unset",
        "",
        r"\bmul_mat_(?:q|vec_q|vec_f)\b|\bggml_|\bquantize_mmq_q8_1\b",
        r"^ggml",
    ),
    Framework(
        "exllamav2",
        "set EXLLAMA_NO_GRAPHS=1",
        "leave EXLLAMA_NO_GRAPHS unset",
        "",
        r"\bgemm_half_q_half|\bexl2\b",
        r"^exllama",
    ),
    Framework(
        "JAX/XLA",
        'set XLA_FLAGS="--xla_gpu_enable_command_buffer=" (an empty value)',
        "leave --xla_gpu_enable_command_buffer out of XLA_FLAGS",
        "",
        r"^(?:input_|loop_)?(?:\w+_)?fusion(?:_\d+)?$|\bxla::",
        r"^XlaModule|^Thunk:|^TSL:",
    ),
    Framework(
        "PyTorch",
        "run the eager path (PyTorch has no switch: put torch.cuda.graph and mode='reduce-overhead' behind one)",
        "run the captured path",
        "a call of the eager function for that phase",
        r"\bat::native\b",
        r"^aten::",
    ),
)
"""In order of how specific their marks are: an engine built on PyTorch shows PyTorch's kernels too."""

FRAMEWORK_RANGES = re.compile(
    r"::eval_gpu$|^CommandEncoder::commit|^gpu::|^aten::|^cu(?:BLAS|DNN|SPARSE|SOLVER|FFT)|^cublas|^cudnn|^nccl|"
    r"^cub::|^thrust::|^CCCL|^cutlass|^TSL:|^Thunk:|^autograd::|Backward\d*(?:,|$)|^TensorRT:",
    re.IGNORECASE,
)
"""Ranges that frameworks and libraries make of their own inner work; they are no phases of a workload."""

LIBRARY_DOMAINS = re.compile(r"^(?:cuBLAS|cuDNN|cuSPARSE|cuSOLVER|cuFFT|NCCL|CCCL|TensorRT|NVSHMEM|TSL|cuTENSOR)", re.I)
"""NVTX domains of libraries, the same way."""


def detect(kernel_names: list[str], range_names: list[str]) -> Framework | None:
    """The framework whose marks a trace bears: its ranges, else its kernels."""
    for framework in FRAMEWORKS:
        if any(re.search(framework.kernels, name) for name in kernel_names):
            return framework
        if any(re.search(framework.ranges, name) for name in range_names):
            return framework
    return None
