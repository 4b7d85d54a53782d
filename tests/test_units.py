import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricsim.units import parse, show, show_size


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("128 GB/s", "B/s", 128e9),
        ("200 Gb/s", "B/s", 25e9),
        ("400Gbps", "B/s", 50e9),
        ("12.8 Tb/s", "B/s", 1.6e12),
        ("1 B/s", "B/s", 1.0),
        ("64 MiB", "B", 64 * 2**20),
        ("1 GB", "B", 1e9),
        ("0 B", "B", 0.0),
        ("1e9B", "B", 1e9),
        ("6.5 us", "s", 6.5e-6),
        ("6.5 µs", "s", 6.5e-6),
        ("0 s", "s", 0.0),
    ],
)
def test_reads(text: str, unit: str, value: float) -> None:
    assert parse(text, unit) == value


@pytest.mark.parametrize(
    ("text", "unit", "words"),
    [
        ("128", "B/s", "no unit"),
        (128, "B/s", "needs a unit"),
        (1e9, "B", "needs a unit"),
        ("128 GB", "B/s", "not a unit of bandwidth"),
        ("128 GB/s", "B", "not a unit of size"),
        ("400 mb/s", "B/s", "not a unit of bandwidth"),
        ("8 MB", "s", "not a unit of duration"),
        ("8 Mb", "B", "not a unit of size"),
        ("fast", "B/s", "not a number"),
        ("nan GB/s", "B/s", "not a number"),
        ("inf GB/s", "B/s", "not a number"),
        ("1e999 GB/s", "B/s", "beyond"),
        ("", "B", "not a number"),
        ("1 GB/s please", "B/s", "not a number"),
    ],
)
def test_refuses(text: object, unit: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse(text, unit)


@given(st.integers(1, 10**6), st.sampled_from(["", "k", "M", "G", "T"]))
def test_bits_are_an_eighth_of_bytes(number: int, prefix: str) -> None:
    in_bytes, in_bits = parse(f"{number} {prefix}B/s", "B/s"), parse(f"{number} {prefix}b/s", "B/s")
    assert in_bits == in_bytes / 8


def test_shows_for_people() -> None:
    assert show(1.03e-3, "s") == "1.03 ms"
    assert show(126e9, "B/s") == "126 GB/s"
    assert show(0.0, "s") == "0 s"
    assert show_size(64 * 2**20) == "64 MiB"
    assert show_size(1e9) == "1 GB"
    assert show_size(1.5 * 2**30) == "1.5 GiB"
    assert show_size(8) == "8 B"
