"""Which stand-in a traced kernel gets, by its name."""

import re
from typing import NamedTuple

from tracekit.repro.model import Body


class Chosen(NamedTuple):
    """A stand-in and why."""

    body: Body
    why: str


RULES: tuple[tuple[Body, str], ...] = (
    ("matvec", r"qmv|qvm|gemv|matvec|mul_mat_vec|dot_kernel|sdpa_vector|decode_attention|paged_attention"),
    ("matmul", r"qmm|gemm|matmul|mul_mat|nvjet|cutlass|cudnn|conv|scudnn|xmma|mma|sgemm|hgemm|wmma|fmha|flash|sdpa|"
               r"attention|scan|delta"),
    ("copy", r"copy|transpose|permute|gather|scatter|slice|concat|cat_|index_select|embedding|pad"),
    ("reduce", r"softmax|norm|reduce|sum|mean|max|arg_|topk|sort|bn_fw|logsumexp|pool"),
)  # fmt: skip
"""Tried in this order, without regard to case; what none matches computes each element by itself."""


def stand_in(name: str) -> Chosen:
    """The stand-in for a kernel of this base name."""
    for body, pattern in RULES:
        if found := re.search(pattern, name, re.IGNORECASE):
            return Chosen(body, f"'{found[0]}' in its name")
    return Chosen("elementwise", "no other kind fits its name")
