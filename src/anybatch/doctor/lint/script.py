"""A training script as text and as a tree; it is read and never run."""

import ast
import io
import os
import tokenize
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from anybatch.doctor.lint.refusal import NotPython

Made = TypeVar("Made")

_NO_TOKENS = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
# excerpts often leave their imports out
_USUAL = {"tf": "tensorflow", "np": "numpy", "keras": "keras", "ab": "anybatch"}


Place = tuple[int, int]
"""A line, from 1, and a column in bytes, from 0, as the parser counts them."""


class Token(NamedTuple):
    """One word or sign of a script; comments and line ends are none."""

    start: Place
    end: Place
    text: str


@dataclass(frozen=True, eq=False, slots=True)
class Script:
    """One parsed file, with what its names were imported as."""

    file: str
    lines: tuple[str, ...]
    tree: ast.Module
    aliases: Mapping[str, str]
    comments: Mapping[int, str]
    tokens: tuple[Token, ...]
    parents: Mapping[ast.AST, ast.AST]
    _made: dict[tuple[object, ast.AST], Any] = field(default_factory=dict)

    def dotted(self, node: ast.AST | None) -> str:
        """Return the full name that an expression spells, such as `tensorflow.data.AUTOTUNE`, or ""."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            before = self.dotted(node.value)
            return _plain(f"{before}.{node.attr}") if before else ""
        return ""

    def once(self, make: Callable[[ast.AST], Made], node: ast.AST) -> Made:
        """Return what a function makes of a piece of code; it is made once however often it is asked for."""
        if (make, node) not in self._made:
            self._made[make, node] = make(node)
        made: Made = self._made[make, node]
        return made

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what a node lies in, the innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement that a node belongs to."""
        return next(one for one in (node, *self.above(node)) if isinstance(one, ast.stmt))

    def scope(self, node: ast.AST) -> ast.AST:
        """Return the function that a node lies in, or the module."""
        inner = (one for one in self.above(node) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
        return next(inner, self.tree)

    def alias_of(self, module: str, usual: str) -> str:
        """Return what the script calls a module."""
        return next((name for name, full in self.aliases.items() if full == module), usual)


def functions_in(tree: ast.AST) -> dict[str, ast.FunctionDef]:
    """Return the functions of a piece of code by name."""
    return {one.name: one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}


def classes_in(tree: ast.AST) -> dict[str, ast.ClassDef]:
    """Return the classes of a piece of code by name."""
    return {one.name: one for one in ast.walk(tree) if isinstance(one, ast.ClassDef)}


def calls_kept(tree: ast.AST) -> dict[str, ast.Call]:
    """Return the calls that names are first given the results of."""
    made: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            made.setdefault(ast.unparse(node.targets[0]), node.value)
    return {name: value for name, value in made.items() if isinstance(value, ast.Call)}


def read_script(path: str | os.PathLike[str]) -> Script:
    """Return a script read from a file."""
    file = os.fspath(path)
    try:
        with tokenize.open(file) as lines:
            text = lines.read()
    except (SyntaxError, UnicodeDecodeError) as error:
        raise NotPython(file, 0, str(error)) from None
    return parse(text, file)


def parse(text: str, file: str = "<script>") -> Script:
    """Return a script from its text."""
    # as the parser counts lines
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = ast.parse(text)
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except SyntaxError as error:
        raise NotPython(file, error.lineno or 0, error.msg) from None
    except (ValueError, tokenize.TokenError) as error:
        raise NotPython(file, 0, str(error)) from None
    except (RecursionError, MemoryError):
        raise NotPython(file, 0, "its expressions are nested too deeply") from None
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    comments = {one.start[0]: one.string for one in tokens if one.type == tokenize.COMMENT}
    lines = tuple(text.split("\n"))
    return Script(file, lines, tree, _aliases(tree), comments, tuple(_in_bytes(tokens, lines)), parents)


def _in_bytes(tokens: list[tokenize.TokenInfo], lines: tuple[str, ...]) -> Iterator[Token]:
    for one in tokens:
        if one.type not in _NO_TOKENS:
            start, end = (
                (row, len(lines[row - 1][:column].encode())) for row, column in (one.start, one.end)
            )
            yield Token(start, end, one.string)


def _aliases(tree: ast.Module) -> dict[str, str]:
    aliases = dict(_USUAL)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {
                _bound(name): _plain(name.name if name.asname else _bound(name)) for name in node.names
            }
        elif isinstance(node, ast.ImportFrom) and node.module:
            aliases |= {_bound(name): _plain(f"{node.module}.{name.name}") for name in node.names}
    return aliases | _shortened(tree, aliases)


def _shortened(tree: ast.Module, aliases: dict[str, str]) -> dict[str, str]:
    """Return the names that the module itself gives to parts of tf.data: `Dataset = tf.data.Dataset`."""
    found: dict[str, str] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() as value):
                first, dot, rest = ast.unparse(value).partition(".")
                full = _plain(aliases.get(first, "") + dot + rest)
                if full.startswith("tensorflow.data.") and not full.endswith("AUTOTUNE"):
                    found[name] = full
    return found


def _bound(name: ast.alias) -> str:
    return name.asname or name.name.split(".")[0]


def _plain(full: str) -> str:
    """Return a name as Keras 3 has it: `tensorflow.keras` is `keras`, and as TensorFlow 2 has it."""
    if full.startswith("tensorflow.compat."):
        full = "tensorflow" + full.removeprefix("tensorflow.compat.")[2:]
    return full.removeprefix("tensorflow.") if full.startswith("tensorflow.keras") else full
