"""Does every way in which a command can end say one sentence, and only bugs a traceback?"""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from minimal.command import Stop, command, number


def ending(error):
    """A command that ends in this error."""

    @command("minimal.thing", "Do the thing.")
    def main(parser, argv):
        parser.add_argument("--steps", type=number(int, least=1), default=1)
        parser.parse_args(argv)
        raise error

    return main


@pytest.mark.parametrize(
    "error, told",
    [
        (ValueError("wanted two\nlines, got one"), "thing: wanted two lines, got one"),
        (Stop("stopped at step 3"), "thing: stopped at step 3"),
        (FileNotFoundError("no x.json; make one"), "thing: no x.json; make one"),
        (PermissionError(13, "Permission denied", "/x/y"), "thing: /x/y: Permission denied; name"),
        (KeyboardInterrupt(), "thing: interrupted"),
        (MemoryError(), "thing: the memory does not suffice"),
        (
            RuntimeError("[enforce] DefaultCPUAllocator: can't allocate memory"),
            "thing: the memory does not suffice",
        ),
        (OSError(28, "No space left on device"), "thing: No space left on device"),
        (ValueError(), "thing: ValueError without a word"),
    ],
)
def test_what_a_user_can_fix_ends_in_one_sentence(error, told):
    with pytest.raises(SystemExit) as ended:
        ending(error)([])
    assert str(ended.value).startswith(told) and "\n" not in str(ended.value)


@pytest.mark.parametrize("error", [KeyError("state"), TypeError("x"), RuntimeError("shapes")])
def test_a_bug_keeps_its_traceback(error):
    with pytest.raises(type(error)):
        ending(error)([])


def test_a_wrong_option_is_one_sentence_with_status_2_and_help_is_no_error(capsys):
    for argv, status, told in (
        (["--steps", "0"], 2, "thing: argument --steps: wanted a whole number from 1, got 0; "),
        (["--zzz"], 2, "thing: unrecognized arguments: --zzz; "),
        (["--help"], 0, "usage: python -m minimal.thing"),
    ):
        with pytest.raises(SystemExit) as ended:
            ending(ValueError())(argv)
        said = "".join(capsys.readouterr())
        assert ended.value.code == status and said.startswith(told)
        assert status == 0 or said.count("\n") == 1


@pytest.mark.parametrize(
    "limits, good, bad",
    [
        (dict(kind=int, least=1), ["1", "7"], ["0", "-1", "1.5", "nan", "x", ""]),
        (dict(kind=float, above=0), ["1e-9", "3"], ["0", "-1", "nan", "inf", "-inf", "1e999"]),
        (dict(kind=int, least=0, most=9), ["0", "9"], ["10", "9" * 5000]),
    ],
)
def test_numbers_are_finite_and_within_their_limits(limits, good, bad):
    import argparse

    parse = number(**limits)
    assert all(math.isfinite(parse(text)) for text in good)
    for text in bad:
        with pytest.raises(argparse.ArgumentTypeError, match="wanted a "):
            parse(text)


def test_a_reader_that_has_seen_enough_is_no_error_to_speak_of():
    code = (
        "from minimal.command import command\n"
        "@command('minimal.thing', '')\n"
        "def main(parser, argv):\n"
        "    for n in range(100_000):\n"
        "        print(n)\n"
        "main([])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[2],
    )
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait(30) == 1
