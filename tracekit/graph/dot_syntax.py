"""The part of the DOT language that graph dumps use: clusters of nodes and edges with attributes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<text>"[^"\\]*(?:\\.[^"\\]*)*")
      | (?P<mark>->|[{}\[\];,=])
      | (?P<word>\w+(?:\.\d+)?|-\.?\d[\d.]*)""",
    re.DOTALL | re.VERBOSE,
)

_BEGINNING = re.compile(r"\s*digraph\b")


@dataclass
class Cluster:
    """A graph or subgraph: its label, its nodes' attributes by name, and its edges."""

    label: str = ""
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    edges: list[tuple[str, str]] = field(default_factory=list)


class DotError(ValueError):
    """The text is not DOT, or not all of it is there; says where."""


class _Token(NamedTuple):
    kind: str
    value: str
    at: int


def parse(text: str) -> list[Cluster]:
    """The graph and its subgraphs, in the order they begin. Raises DotError."""
    return _Reader(text).clusters


class _Reader:
    def __init__(self, text: str) -> None:
        if not _BEGINNING.match(text):
            raise DotError("it does not begin with 'digraph'")
        self._text = text
        self._tokens = self._scan()
        self._next = _Token("mark", ";", 0)
        self.clusters: list[Cluster] = []
        self._advance()
        self._graph()

    def _scan(self) -> Iterator[_Token]:
        at = 0
        while at < len(self._text):
            found = _TOKEN.match(self._text, at)
            if found is None:
                rest = self._text[at]
                raise self._cut_off() if rest == '"' else self._error(f"unexpected {rest!r}", at)
            if found.lastgroup == "text":
                yield _Token("text", found[0][1:-1].replace('\\"', '"'), at)
            elif found.lastgroup != "space":
                yield _Token(str(found.lastgroup), found[0], at)
            at = found.end()
        yield _Token("end", "", at)

    def _error(self, what: str, at: int) -> DotError:
        return DotError(f"line {self._text.count(chr(10), 0, at) + 1}: {what}")

    def _cut_off(self) -> DotError:
        return DotError("it ends before the graph does: it was cut off or is still being written")

    def _advance(self) -> _Token:
        token, self._next = self._next, next(self._tokens, self._next)
        return token

    def _is(self, *marks: str) -> bool:
        return self._next.kind == "mark" and self._next.value in marks

    def _take(self, mark: str) -> bool:
        """Step over a mark if it is what comes next."""
        if self._is(mark):
            self._advance()
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise self._unexpected()

    def _unexpected(self) -> DotError:
        if self._next.kind == "end":
            return self._cut_off()
        return self._error(f"unexpected {self._next.value[:40]!r}", self._next.at)

    def _name(self) -> _Token:
        if self._next.kind not in ("word", "text"):
            raise self._unexpected()
        return self._advance()

    def _graph(self) -> None:
        self._advance()
        if not self._is("{"):
            self._name()
        open_clusters = [self._begin()]
        while open_clusters:
            if self._take("}"):
                open_clusters.pop()
            elif not self._take(";"):
                self._statement(open_clusters)
        if self._next.kind != "end":
            raise self._unexpected()

    def _begin(self) -> Cluster:
        self._expect("{")
        self.clusters.append(Cluster())
        return self.clusters[-1]

    def _statement(self, open_clusters: list[Cluster]) -> None:
        cluster = open_clusters[-1]
        token = self._name()
        keyword = token.value if token.kind == "word" else ""
        if keyword == "subgraph":
            if not self._is("{"):
                self._name()
            open_clusters.append(self._begin())
        elif self._take("="):
            value = self._name().value
            if token.value == "label":
                cluster.label = value
        elif keyword in ("graph", "node", "edge"):
            self._attributes()
        else:
            self._nodes(token.value, cluster)

    def _nodes(self, first: str, cluster: Cluster) -> None:
        chain = [first]
        while self._take("->"):
            chain.append(self._name().value)
        attributes = self._attributes()
        if len(chain) == 1:
            cluster.nodes.setdefault(first, {}).update(attributes)
        cluster.edges += pairwise(chain)

    def _attributes(self) -> dict[str, str]:
        """Attributes in brackets, parted by commas, semicolons or nothing; none where there are no brackets."""
        found = {}
        while self._take("["):
            while not self._take("]"):
                name = self._name().value
                self._expect("=")
                found[name] = self._name().value
                if self._is(",", ";"):
                    self._advance()
        return found
