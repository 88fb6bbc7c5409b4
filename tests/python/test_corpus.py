"""Bytes as tokens, and how source is cut into samples."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from nsp.corpus import BEGIN, END, definitions, load_corpus, make_corpus, standard_library  # noqa: E402

SOURCE = b'"""Doc."""\nimport os\n\n@cache\ndef f():\n    return 1\n\nX = 2\n\nclass C:\n    pass\n'


def test_one_sample_for_each_definition_and_one_for_the_rest() -> None:
    assert list(definitions(SOURCE)) == [
        b"@cache\ndef f():\n    return 1\n",
        b"class C:\n    pass\n",
        b'"""Doc."""\nimport os\n\n\nX = 2\n\n',
    ]


def test_no_byte_is_lost_or_doubled() -> None:
    assert sorted(b"".join(definitions(SOURCE))) == sorted(SOURCE)


def test_what_does_not_parse_is_one_sample() -> None:
    assert list(definitions(b"def f(:\n")) == [b"def f(:\n"]


@pytest.mark.parametrize("begin", range(6))
@pytest.mark.parametrize("end", range(6))
def test_a_slice_is_the_slice_of_the_whole(begin: int, end: int) -> None:
    corpus = make_corpus([b"abc"], 100)
    if begin < end <= 5:
        assert corpus.read(0, begin, end).tolist() == [BEGIN, 97, 98, 99, END][begin:end]


def test_cuts_are_counted() -> None:
    corpus = make_corpus([b"abcdef", b"ab", b"  \n"], 5)
    assert (corpus.lengths, corpus.cut, corpus.lost) == ((5, 4), 1, 3)
    assert corpus.read(0, 0, 5).tolist() == [BEGIN, 97, 98, 99, END]


def test_text_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("bb")
    (tmp_path / "a.md").write_text("a")
    (tmp_path / "c.bin").write_bytes(b"\0\1")
    assert load_corpus(str(tmp_path), 100).texts == (b"a", b"bb")


def test_a_folder_without_text_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no text files"):
        load_corpus(str(tmp_path), 100)
    with pytest.raises(ValueError, match="is not a folder"):
        load_corpus(str(tmp_path / "none"), 100)


def test_the_standard_library_is_long_tailed() -> None:
    lengths = sorted(len(text) for text in standard_library())
    top = lengths[-len(lengths) // 100 :]
    assert len(lengths) > 2000
    assert lengths[len(lengths) // 2] < 1000
    assert sum(top) > 0.15 * sum(lengths)
