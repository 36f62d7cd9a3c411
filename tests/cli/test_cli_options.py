"""Flags that belong to a data set or an objective: split, typed, refused with a hint."""

import subprocess
import sys

import pytest

from unseam import BadInput
from unseam.cli.common import convert, named_data, parse_numbers, parse_options, split_options
from unseam.data.sets.sprites import Sprites


def test_split_keeps_the_order_of_the_rest_and_both_spellings() -> None:
    rest, options = split_options(["a", "--data.x=1", "-v", "--data.y-z", "2", "b", "--data.on"], "data")
    assert rest == ["a", "-v", "b"]
    assert options == {"x": "1", "y_z": "2", "on": "true"}


def test_split_takes_negative_numbers_as_values() -> None:
    assert split_options(["--data.shear", "-0.5"], "data") == ([], {"shear": "-0.5"})


def test_split_without_prefix_takes_only_the_given_names() -> None:
    assert split_options(["--beta", "4", "--betas", "5"], names=["beta"]) == (["--betas", "5"], {"beta": "4"})


def test_a_flag_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="twice"):
        split_options(["--data.x", "1", "--data.x", "2"], "data")


@pytest.mark.parametrize(
    ("word", "kind", "value"),
    [("12", int, 12), ("9007199254740993", int, 9007199254740993), ("1e3", int, 1000), ("2", float, 2.0),
     ("no", bool, False), ("none", bool | None, None), ("None", str | None, None), ("7", str, "7")],
)  # fmt: skip
def test_words_become_values_of_the_type(word: str, kind: type, value: object) -> None:
    assert convert(word, kind, "--x") == value
    assert type(convert(word, kind, "--x")) is type(value)


@pytest.mark.parametrize(("word", "kind"), [("1.5", int), ("inf", int), ("nan", int), ("x", float), ("2", bool)])
def test_words_of_another_type_are_refused(word: str, kind: type) -> None:
    with pytest.raises(BadInput, match="--x="):
        convert(word, kind, "--x")


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(BadInput, match="did you mean 'size'"):
        parse_options(Sprites, {"sise": "1"}, "sprites", "--data.")
    with pytest.raises(BadInput, match="did you mean 'ratio'"):
        named_data("synth-linear", {"ration": "1"})


def test_parsing_needs_no_torch() -> None:
    code = "import sys, unseam.cli.common; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_range_has_at_most_a_hundred_thousand_numbers() -> None:
    assert len(parse_numbers("0..99999", "--seeds", int)) == 100_000
    with pytest.raises(BadInput, match=r"100,001 numbers; at most 100,000 can be asked for"):
        parse_numbers("0..100000", "--seeds", int)
