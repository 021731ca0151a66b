"""How inference frameworks name their ranges and kernels, and how each switches CUDA graphs off.

Data only: used to record each way of launching, to leave framework ranges out of phases, and to give advice that can
be followed.
"""

import re
from typing import NamedTuple


class Switch(NamedTuple):
    """The environment variable by which a process is told whether to use graphs.

    ``on`` is None where the variable must be absent. A ``word`` stands among others in its variable.
    """

    variable: str
    off: str
    on: str | None = None
    word: bool = False


class ScopedSwitch(NamedTuple):
    """A framework's own way to launch a part of a process without graphs.

    ``maker`` is the path from ``module`` to what makes a context manager of the keyword arguments ``off``, for what
    its thread launches within it.
    """

    module: str
    maker: str
    off: tuple[tuple[str, int], ...]


class Trap(NamedTuple):
    """A command line (a regular expression) that does not do what it seems to."""

    command: str
    warning: str


class Framework(NamedTuple):
    """One framework.

    ``kernels`` and ``ranges`` are regular expressions that tell it from a trace, ``modules`` (what a script imports)
    and ``programs`` those that tell it from what is run. ``graphs_off``, ``graphs_on`` and ``scope`` are for people;
    ``switch``, or ``off_arguments`` where only its command line has one, is what recording does. ``serial`` is the
    variable and value for graphs whose nodes run one after another, ``dump`` the variable that takes the prefix of
    DOT files, ``variables`` a regular expression of those that it reads, ``port`` where it serves by default.
    ``scoped_switch`` need not be in the version at hand.
    """

    name: str
    graphs_off: str
    graphs_on: str
    scope: str
    kernels: str
    ranges: str
    modules: str
    programs: str
    switch: Switch | None = None
    off_arguments: tuple[str, ...] = ()
    serial: tuple[str, str] | None = None
    dump: str | None = None
    variables: str | None = None
    traps: tuple[Trap, ...] = ()
    port: int | None = None
    scoped_switch: ScopedSwitch | None = None


FRAMEWORKS = (
    Framework(
        "MLX",
        "set MLX_USE_CUDA_GRAPHS=0",
        "leave MLX_USE_CUDA_GRAPHS unset (graphs are on by default)",
        "the per-scope switch where your MLX version already has it",
        r"\bmlx::core\b",
        r"::eval_gpu$|^CommandEncoder::commit$",
        modules=r"mlx(?:_\w+)?",
        programs=r"mlx_[\w.]+",
        switch=Switch("MLX_USE_CUDA_GRAPHS", off="0", on="1"),
        # Only builds with an edge from each node to the one before it read this.
        serial=("MLX_CUDA_GRAPH_SERIAL", "1"),
        dump="MLX_SAVE_CUDA_GRAPHS_DOT_FILE",
        variables=r"MLX_(?:USE_CUDA_GRAPHS|SAVE_CUDA_GRAPHS_DOT_FILE|MAX_(?:OPS|MB)_PER_BUFFER|CUDA_GRAPH_CACHE_SIZE|"
        r"CUDA_USE_CUDNN_SDPA|CUDA_SDPA_(?:BACKWARD_)?CACHE_SIZE|ENABLE_CACHE_THRASHING_CHECK|PTX_CACHE_DIR|"
        r"ENABLE_TF32|BFS_MAX_WIDTH|DISABLE_COMPILE|NCCL_TIMEOUT|HOSTFILE|RANK|WORLD_SIZE)",
        port=8080,
        # In MLX's sources after 0.32.4 (python/src/config.cpp). Whether the CUDA backend looks at it at each launch, or
        # once a process as it did when this came, the trace shows.
        scoped_switch=ScopedSwitch("mlx.core", "config.scoped_update", (("MLX_USE_CUDA_GRAPHS", 0),)),
    ),
    Framework(
        "TensorRT-LLM",
        "set cuda_graph_config: null in the LLM options (leaving the key out keeps graphs on)",
        "give cuda_graph_config in the LLM options",
        "",
        r"\btensorrt_llm::",
        r"^tensorrt_llm\b",
        modules=r"tensorrt_llm",
        programs=r"trtllm-\w+",
        port=8000,
    ),
    Framework(
        "vLLM",
        "start it with -cc.cudagraph_mode=NONE (--enforce-eager also disables compilation, which is not the same)",
        "start it without -cc.cudagraph_mode",
        "",
        r"\bvllm::",
        r"^vllm\b",
        modules=r"vllm",
        programs=r"vllm",
        off_arguments=("-cc.cudagraph_mode=NONE",),
        traps=(
            Trap(
                r"--enforce-eager\b",
                "--enforce-eager disables graphs and compilation both, in every arm: no comparison of graphs; leave "
                "it out",
            ),
        ),
        port=8000,
    ),
    Framework(
        "SGLang",
        "start it with --disable-cuda-graph",
        "start it without --disable-cuda-graph",
        "",
        r"\bsgl_kernel\b|\bsglang\b",
        r"^sglang\b",
        modules=r"sglang",
        programs=r"sglang",
        off_arguments=("--disable-cuda-graph",),
        port=30000,
    ),
    Framework(
        "llama.cpp",
        "set GGML_CUDA_DISABLE_GRAPHS=1",
        "leave GGML_CUDA_DISABLE_GRAPHS unset",
        "",
        r"\bmul_mat_(?:q|vec_q|vec_f)\b|\bggml_|\bquantize_mmq_q8_1\b",
        r"^ggml",
        modules=r"llama_cpp",
        programs=r"llama-[\w-]+",
        # Present with any value, it disables graphs.
        switch=Switch("GGML_CUDA_DISABLE_GRAPHS", off="1"),
        variables=r"(?:GGML_CUDA|LLAMA_ARG)_\w+",
        port=8080,
    ),
    Framework(
        "Ollama",
        "set GGML_CUDA_DISABLE_GRAPHS=1 for the server",
        "leave GGML_CUDA_DISABLE_GRAPHS unset",
        "",
        # Its traces are those of llama.cpp.
        r"(?!)",
        r"(?!)",
        modules=r"ollama",
        programs=r"ollama",
        switch=Switch("GGML_CUDA_DISABLE_GRAPHS", off="1"),
        variables=r"(?:GGML_CUDA|OLLAMA)_\w+",
        traps=(
            Trap(
                r"^(?!.*\bollama serve\b)",
                "the work is done by an Ollama server that runs already and is not recorded: record '-- ollama serve' "
                "with --load",
            ),
        ),
        port=11434,
    ),
    Framework(
        "exllamav2",
        "set EXLLAMA_NO_GRAPHS=1",
        "leave EXLLAMA_NO_GRAPHS unset",
        "",
        r"\bgemm_half_q_half|\bexl2\b",
        r"^exllama",
        modules=r"exllamav2",
        programs=r"exllamav2",
        switch=Switch("EXLLAMA_NO_GRAPHS", off="1"),
        variables=r"EXLLAMA_NO_GRAPHS",
    ),
    Framework(
        "mistral.rs",
        "set MISTRALRS_CUDA_GRAPHS=0",
        "leave MISTRALRS_CUDA_GRAPHS unset",
        "",
        # Its traces bear no mark that no other program on the same libraries has.
        r"(?!)",
        r"(?!)",
        modules=r"mistralrs",
        programs=r"mistralrs(?:-[\w-]+)?",
        switch=Switch("MISTRALRS_CUDA_GRAPHS", off="0"),
        variables=r"MISTRALRS_\w+",
        port=1234,
    ),
    Framework(
        "JAX/XLA",
        'set XLA_FLAGS="--xla_gpu_enable_command_buffer=" (an empty value)',
        "leave --xla_gpu_enable_command_buffer out of XLA_FLAGS",
        "",
        r"^(?:input_|loop_)?(?:\w+_)?fusion(?:_\d+)?$|\bxla::",
        r"^XlaModule|^Thunk:|^TSL:",
        modules=r"jax|flax",
        programs=r"jax|xla",
        switch=Switch("XLA_FLAGS", off="--xla_gpu_enable_command_buffer=", word=True),
        variables=r"(?:XLA|JAX|TF)_\w+",
    ),
    Framework(
        "PyTorch",
        "run the eager path (PyTorch has no switch: put torch.cuda.graph and mode='reduce-overhead' behind one)",
        "run the captured path",
        "a call of the eager function for that phase",
        r"\bat::native\b",
        r"^aten::",
        modules=r"torch",
        programs=r"pytorch|torchrun",
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
