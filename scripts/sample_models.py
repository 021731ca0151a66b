"""The three planted models: kernels as MLX names them, layers, and how long each group takes.

Kernel durations are shaped on public figures of an MLX pull request; phases are a tenth of theirs.
"""

from dataclasses import dataclass, replace

from sample_plan import Alone, Graph, Kernel, Together, Train

_LAYERS_PREFILL = 6
_LAYERS_DECODE = 4
_COPIES = 12
_DENSE_HEAD_US = 624
_MOE_HEAD_US = 135.5


@dataclass(frozen=True)
class Model:
    """Work of one prefill and of one decode step, with each phase's eager gap between kernels (ns)."""

    prefill: list[Graph]
    decode: list[Graph]
    eager_gap_ns: dict[str, int]


def _mlx(short: str, template: str, operator: str, us: float, grid: int, threads: int = 256, smem: int = 0) -> Kernel:
    name = f"void mlx::core::cu::{short}<{template}>(mlx::core::cu::{short}_params)"
    return Kernel(name, f"{operator}::eval_gpu", round(us * 1000), grid, threads, smem)


def _qmm(us: float, grid: int) -> Kernel:
    return _mlx("qmm_sm80", "__nv_bfloat16, 128, 128, 64, 4, true", "QuantizedMatmul", us, grid, 128, 65536)


def _gather_qmm(us: float, grid: int) -> Kernel:
    return _mlx("gather_qmm", "__nv_bfloat16, 64, 128, 64, 4", "GatherQMM", us, grid, 128, 49152)


def _qmv(us: float, grid: int) -> Kernel:
    return _mlx("qmv", "__nv_bfloat16, 8, 4, 64, true", "QuantizedMatmul", us, grid, 64)


def _gather_qmv(us: float, grid: int) -> Kernel:
    return _mlx("gather_qmv", "__nv_bfloat16, 8, 4, 64", "GatherQMM", us, grid, 64)


def _delta(us: float, grid: int) -> Kernel:
    return _mlx("gated_delta_step", "__nv_bfloat16, 128, 128", "CustomKernel", us, grid, 128)


def _scan(us: float, grid: int) -> Kernel:
    return _mlx("gated_delta_scan", "__nv_bfloat16, 128", "CustomKernel", us, grid, 128)


def _rms(us: float, grid: int) -> Kernel:
    return _mlx("rms_norm", "__nv_bfloat16, 1024, 8", "RMSNorm", us, grid, 1024)


def _compiled(us: float, grid: int) -> Kernel:
    return Kernel(
        f"CompiledSigmoidMultiplyMultiply_{COMPILED_HASH}_contiguous<unsigned int, 4>(unsigned int)",
        "Compiled::eval_gpu",
        round(us * 1000),
        grid,
    )


COMPILED_HASH = "6142509188972423790"
"""Constant hash in the compiled kernel's name; eager arms carry ``EAGER_HASH`` instead."""
EAGER_HASH = "9070615843301846377"

_COPY = _mlx("copy_gg_nd", "__nv_bfloat16, __nv_bfloat16, int, 3, 4", "Copy", 1.8, 96)
_BINARY = _mlx("binary_two", "mlx::core::cu::DivMod, __nv_bfloat16, int, 4", "DivMod", 38, 2048)
_SDPA_PREFILL = _mlx("sdpa_full", "__nv_bfloat16, 64, 64, 128", "ScaledDotProductAttention", 9000, 768, 128)
_SDPA_DECODE = _mlx("sdpa_vector", "__nv_bfloat16, 128, 128", "ScaledDotProductAttention", 30, 24, 1024)
_ARGMAX = _mlx("arg_reduce_general", "__nv_bfloat16, 32, 4", "ArgReduce", 12, 1, 1024)


def _head(us: float) -> Graph:
    name = "nvjet_tst_64x8_64x16_4x1_v_bz_TNT"
    matmul = Kernel(name, "Matmul::eval_gpu", round(us * 1000), 1187, 384, 99328, captured=True)
    return [Alone(_rms(4, 1)), Alone(matmul), Alone(_ARGMAX)]


@dataclass(frozen=True)
class _Prefill:
    """A prefill layer's kernels and the wall (us) of the sets that run at once with graphs on."""

    qkv: Kernel
    beta: Kernel
    mix_wall: float
    core: Kernel
    z: Kernel
    core_wall: float
    scan: Kernel
    out: Kernel
    gate_up: Kernel
    mlp_wall: float
    down: Kernel

    def layer(self, index: int) -> Graph:
        """Every third layer attends; the others run the gated-delta loop with its copies."""
        attends = index % 3 == 2
        core = replace(_SDPA_PREFILL, solo_ns=self.core.solo_ns) if attends else self.core
        return [
            Alone(_rms(45, 2048)),
            Together((self.qkv, self.beta), round(self.mix_wall * 1000)),
            Together((core, self.z), round(self.core_wall * 1000)),
            Alone(self.scan),
            Train(self.out, _COPY, _COPIES, 15_900),
            Alone(_rms(45, 2048)),
            Alone(_BINARY),
            Together((self.gate_up, self.gate_up), round(self.mlp_wall * 1000)),
            Alone(_compiled(210, 17408)),
            Alone(self.down),
        ]

    def graphs(self, head_us: float) -> list[Graph]:
        """One graph a layer, then the head."""
        return [*(self.layer(index) for index in range(_LAYERS_PREFILL)), _head(head_us)]


@dataclass(frozen=True)
class _Decode:
    """A decode layer's kernels and the wall (us) of the sets that run at once with graphs on."""

    qkv: Kernel
    z: Kernel
    mix_wall: float
    gate_up: Kernel
    mlp_wall: float
    down: Kernel

    def layer(self, index: int) -> Graph:
        """As in prefill; attention and gated-delta layers have the same nodes and edges."""
        return [
            Alone(_rms(4, 1)),
            Together((self.qkv, self.z), round(self.mix_wall * 1000)),
            Alone(_SDPA_DECODE if index % 3 == 2 else _delta(30, 48)),
            Together((self.gate_up, self.gate_up), round(self.mlp_wall * 1000)),
            Alone(_compiled(5, 17)),
            Alone(self.down),
        ]

    def graphs(self, head_us: float) -> list[Graph]:
        """Two layers a graph, then the head."""
        layers = [self.layer(index) for index in range(_LAYERS_DECODE)]
        pairs = zip(layers[::2], layers[1::2], strict=True)
        return [*(first + second for first, second in pairs), _head(head_us)]


_DENSE_DECODE = _Decode(
    qkv=_qmv(350, 1280),
    z=_qmv(220, 768),
    mix_wall=570,
    gate_up=_qmv(380, 2176),
    mlp_wall=760,
    down=_qmv(380, 640),
).graphs(_DENSE_HEAD_US)

_STOCK = _Prefill(
    qkv=_qmm(7000, 2560),
    beta=_qmm(4200, 1536),
    mix_wall=18_000,
    core=_delta(9000, 1536),
    z=_qmm(4400, 768),
    core_wall=20_930,
    scan=_scan(118_270, 1536),
    out=_qmm(7400, 640),
    gate_up=_qmm(7400, 4352),
    mlp_wall=12_800,
    down=_qmm(7500, 1280),
).graphs(_DENSE_HEAD_US)

_GBX = _Prefill(
    qkv=_qmm(7000, 2560),
    beta=_qmm(4200, 1536),
    mix_wall=35_000,
    core=_delta(9000, 1536),
    z=_qmm(4400, 768),
    core_wall=44_170,
    scan=_scan(300, 1536),
    out=_qmm(2500, 640),
    gate_up=_qmm(7600, 4352),
    mlp_wall=21_400,
    down=_qmm(7690, 1280),
).graphs(_DENSE_HEAD_US)

_MOE = _Prefill(
    qkv=_qmm(2600, 1024),
    beta=_qmm(1400, 512),
    mix_wall=6000,
    core=_delta(4000, 1024),
    z=_qmm(1500, 256),
    core_wall=7000,
    scan=_scan(300, 1024),
    out=_qmm(1500, 320),
    gate_up=_gather_qmm(4800, 8192),
    mlp_wall=11_260,
    down=_gather_qmm(5153, 2048),
).graphs(_MOE_HEAD_US)

_MOE_DECODE = _Decode(
    qkv=_qmv(60, 512),
    z=_qmv(40, 256),
    mix_wall=112,
    gate_up=_gather_qmv(60, 4096),
    mlp_wall=143.4,
    down=_gather_qmv(55, 1024),
).graphs(_MOE_HEAD_US)

MODELS = {
    "stock": Model(_STOCK, _DENSE_DECODE, {"prefill": 40_000, "decode": 10_430}),
    "gbx": Model(_GBX, _DENSE_DECODE, {"prefill": 41_000, "decode": 10_430}),
    "moe": Model(_MOE, _MOE_DECODE, {"prefill": 15_500, "decode": 8360}),
}

PUBLISHED_MS = {
    ("stock", "on"): (1115.0, 7.69),
    ("stock", "off"): (1045.0, 8.0),
    ("stock", "serial"): (None, 7.69),
    ("gbx", "on"): (670.0, 7.69),
    ("gbx", "off"): (311.0, 8.0),
    ("gbx", "serial"): (305.0, 7.69),
    ("moe", "on"): (191.0, 1.608),
    ("moe", "off"): (161.0, 1.701),
    ("moe", "serial"): (159.0, 1.464),
}
"""Prefill and decode step a tenth of the published ones; None where nothing was published."""

THREE_AT_ONCE: list[Graph] = [[Together((_qmm(7600, 4352),) * 3, 21_400_000)]]
