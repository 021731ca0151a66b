"""What a CUDA API call does, told from its name."""

import re

import polars as pl

ROLES = {
    "graph launch": r"^cu(?:da)?GraphLaunch",
    "launch": r"^cu(?:da)?Launch(?!HostFunc)",
    "instantiate": r"^cu(?:da)?GraphInstantiate",
    "capture": r"^cu(?:da)?StreamBeginCapture",
    "end of capture": r"^cu(?:da)?StreamEndCapture",
    "graph update": r"^cu(?:da)?GraphExec.*(?:Update|SetParams)",
    "graph build": r"^cu(?:da)?Graph(?:Add|Create|Clone|\w+NodeSet)",
    "setup": r"^cu(?:da)?(?:ModuleLoad|LibraryLoad|LinkComplete|LinkAdd)",
    "copy": r"^cu(?:da)?Mem(?:cpy|set|Prefetch)",
    "memory": r"^cu(?:da)?(?:Malloc|Free|Mem(?:Alloc|Free|Host)|Host(?:Alloc|Register|Unregister))",
    "wait": r"^cu(?:da)?(?:Device|Stream|Event|Ctx|Thread)Synchronize",
}
"""Role -> how its functions' names begin. Version and stream tails (``_v10000``, ``_ptsz``) may follow."""


WORK_ROLES = ("launch", "graph launch", "copy")
"""What puts work on the GPU."""

COSTLY_SETUP_ROLES = ("instantiate", "capture", "end of capture", "setup")
"""What a program does once, or should: an instance that does much of it is warming up."""

SETUP_ROLES = (*COSTLY_SETUP_ROLES, "graph update", "graph build")
"""What prepares work rather than launches it."""


def role_of(name: str) -> str:
    """The role of one API function, by name: a key of ROLES, or ``other``.

    Both the runtime's and the driver's names count (``cudaGraphLaunch_v10000``, ``cuGraphLaunch_ptsz``).
    """
    for role, pattern in ROLES.items():
        if re.search(pattern, name):
            return role
    return "other"


def roles_by_string(strings: pl.DataFrame) -> pl.DataFrame:
    """String table (``id``, ``value``) -> frame (``id``, ``role``) of the strings that name a CUDA call."""
    calls = strings.filter(pl.col("value").str.contains(r"^cu[A-Z]|^cuda[A-Z]"))
    return calls.select("id", role=pl.Series([role_of(name) for name in calls["value"]], dtype=pl.String))
