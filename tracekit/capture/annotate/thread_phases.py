"""Which phase a thread is in: the prefill and decode of token models, and models by their class."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tracekit.capture.annotate.markers import Range
from tracekit.capture.annotate.notices import harmless
from tracekit.capture.phase import open_phases, phase_range


class Generation:
    """A generator of tokens: its model and the prompt tokens that the model has still to see."""

    def __init__(self, model: object, prompt_tokens: int) -> None:
        self.model = model
        self.prompt_tokens = prompt_tokens
        self.to_prefill = prompt_tokens


class ThreadPhases(threading.local):
    """The phase that annotating has opened on this thread, if any.

    A lazy framework launches a model's work after the call of the model has returned, when its result is
    evaluated: so a phase begins with the call of a model and lasts until its work is launched. Inside of a
    ``tracekit.phase`` of the script's own nothing is opened: what the script says goes first.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.generation: Generation | None = None
        self._open: Range | None = None
        self._name = ""

    @harmless
    def model_called(self, model: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """A model was called that no other module called."""
        tokens = _tokens(args, kwargs)
        generation = self.generation
        if generation is None:
            self.close()
            if tokens is not None:
                self._enter("prefill" if tokens[1] > 1 else "decode", tokens[0] * tokens[1])
            elif _is_model(model):
                self._enter(type(model).__name__, None)
            return
        name = "prefill" if generation.to_prefill > 0 else "decode"
        if generation.model is model and tokens is not None:
            generation.to_prefill -= tokens[1]
        if name != self._name:
            self.close()
            self._enter(name, generation.prompt_tokens if name == "prefill" else tokens and tokens[0] * tokens[1])

    @harmless
    def work_launched(self) -> None:
        """What was called until now has been evaluated."""
        if self.depth == 0 and self.generation is None:
            self.close()

    @contextmanager
    def within(self, generation: Generation | None) -> Iterator[None]:
        """While a generator works on its next token. Phases end with it."""
        outer, self.generation = self.generation, generation
        self.close()
        try:
            yield
        finally:
            self.close()
            self.generation = outer

    def close(self) -> None:
        """Close the open phase."""
        # A phase of the script's own that was opened since lies on top of it, and has to be closed first.
        if not open_phases.count:
            opened, self._open, self._name = self._open, None, ""
            if opened:
                opened.__exit__(None, None, None)

    def _enter(self, name: str, payload: int | None) -> None:
        if self._open is None and not open_phases.count:
            self._name, self._open = name, phase_range(name, payload)
            if self._open:
                self._open.__enter__()


def _tokens(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, int] | None:
    """Sequences and tokens in each, where the call is given token ids or embeddings of them."""
    embeddings = kwargs.get("input_embeddings")
    if embeddings is None:
        embeddings = kwargs.get("inputs_embeds")
    if embeddings is not None:
        return int(embeddings.shape[0]), int(embeddings.shape[1])
    ids = args[0] if args else kwargs.get("input_ids")
    shape: Sequence[int] = getattr(ids, "shape", ())
    if len(shape) == 2 and "int" in str(getattr(ids, "dtype", "")):
        return shape[0], shape[1]
    return None


def _is_model(module: Any) -> bool:  # noqa: ANN401
    """Whether a module holds others: a single layer that a script calls by itself is no model."""
    return any(True for _ in module.children())
