"""Text as training data without a tokenizer: bytes are tokens.

`Corpus` is a Dataset over byte strings. By default it holds the source of Python's standard library, one
sample per top-level definition and one for each file's rest: every machine has it, and so cut it is
long-tailed, which whole files are not.
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

BEGIN, END = 256, 257  # of a sample
VOCABULARY = 258
_TEXT = {
    ".txt",
    ".md",
    ".rst",
    ".py",
    ".json",
    ".jsonl",
    ".csv",
    ".html",
    ".xml",
    ".tex",
    ".c",
    ".h",
    ".cpp",
    ".rs",
}
_SKIPPED = {"site-packages", "dist-packages", "test", "tests", "idlelib", "__pycache__", "lib2to3"}


@dataclass(frozen=True)
class Corpus:
    """Samples of BEGIN, bytes, END; at most `max_length` tokens. `cut` samples lost their end, `lost` tokens
    in all.
    """

    texts: tuple[bytes, ...]
    lengths: tuple[int, ...]
    cut: int
    lost: int

    def read(self, i: int, begin: int, end: int) -> torch.Tensor:
        """Tokens [begin, end) of sample i."""
        text = self.texts[i]
        tokens = (
            [BEGIN, *text[max(begin - 1, 0) : end - 1]] if begin == 0 else list(text[begin - 1 : end - 1])
        )
        if len(tokens) < end - begin:
            tokens.append(END)
        return torch.tensor(tokens[: end - begin], dtype=torch.long)

    @property
    def tokens(self) -> int:
        return sum(self.lengths)


def load_corpus(folder: str | None, max_length: int) -> Corpus:
    """The text files of a folder, or the standard library's source. ValueError: no text found there."""
    texts = list(standard_library() if folder is None else text_files(Path(folder)))
    if not texts:
        raise ValueError(
            f"corpus: {folder or 'the standard library'} holds no text files; name a folder with some"
        )
    return make_corpus(texts, max_length)


def make_corpus(texts: Iterable[bytes], max_length: int) -> Corpus:
    """ValueError: max_length leaves no room for a byte between BEGIN and END."""
    if max_length < 3:
        raise ValueError(f"max_length: {max_length} is too short; use at least 3 tokens")
    whole = [text for text in texts if text.strip()]
    kept = tuple(text[: max_length - 2] for text in whole)
    lengths = tuple(len(text) + 2 for text in kept)
    if not kept:
        raise ValueError("--corpus: its files hold nothing but white space; name a folder of text files")
    lost = sum(len(text) for text in whole) - sum(len(text) for text in kept)
    return Corpus(kept, lengths, sum(len(t) > max_length - 2 for t in whole), lost)


def text_files(folder: Path) -> Iterator[bytes]:
    """Whole files with a text suffix, by path."""
    if not folder.is_dir():
        raise ValueError(f"corpus: {folder} is not a folder; name a folder of text files")
    for path in sorted(p for p in folder.rglob("*") if p.suffix.lower() in _TEXT and p.is_file()):
        yield path.read_bytes()


def standard_library() -> Iterator[bytes]:
    """The running Python's own library, by path; tests and installed packages left out."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        if not _SKIPPED.intersection(path.relative_to(root).parts):
            yield from definitions(path.read_bytes())


def definitions(source: bytes) -> Iterator[bytes]:
    """Each top-level function or class (with its decorators), then the rest of the file as one sample."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        yield source
        return
    lines = source.splitlines(keepends=True)
    rest, done = [], 0
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
        last = node.end_lineno or node.lineno
        rest += lines[done:first]
        yield b"".join(lines[first:last])
        done = last
    yield b"".join([*rest, *lines[done:]])
