"""What does every command share? Its parser, types for its options, and one last sentence.

    @command("minimal.train", "Train a model.")
    def main(parser, argv):
        parser.add_argument("--steps", type=number(int, least=1), default=250)
        asked = parser.parse_args(argv)
        ...

    if __name__ == "__main__":
        main()

`main` is then called as main() or, in a test, as main(["--steps", "3"]). What a user can fix
(ValueError, OSError, Stop, Ctrl-C, memory) ends the command with `train: sentence` and status 1.
A wrong option ends it with one sentence, too, and status 2. Anything else is our bug and keeps
its traceback. This file imports nothing of ours, and every room but kernels may import it.
"""

import argparse
import functools
import math
import os
import sys

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class Stop(Exception):
    """The work ended early, in one sentence that says what was kept and how to go on."""


class Parser(argparse.ArgumentParser):
    """An argparse parser that answers a wrong option in one sentence instead of its usage."""

    def __init__(self, module, description):
        super().__init__(
            prog=f"python -m {module}",
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.name = module.rpartition(".")[2]

    def error(self, message):
        self.exit(2, f"{self.name}: {message}; {self.prog} --help lists the options\n")


def command(module, description):
    """Make main(parser, argv) a command, main(argv=None); `module` is what follows python -m."""

    def decorate(main):
        @functools.wraps(main)
        def run(argv=None):
            parser = Parser(module, description)
            try:
                return main(parser, sys.argv[1:] if argv is None else argv)
            except BrokenPipeError:  # whoever read our output, `head` for one, has seen enough
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(1)
            except KeyboardInterrupt:
                sys.exit(f"{parser.name}: interrupted before anything was finished")
            except (ValueError, OSError, Stop, MemoryError, RuntimeError) as error:
                sentence = last_sentence(error)
                if sentence is None:
                    raise
                sys.exit(f"{parser.name}: {sentence}")

        return run

    return decorate


def last_sentence(error):
    """What to say of this error in one line; None if it is not the user's to fix."""
    told = " ".join(str(error).split())
    if isinstance(error, MemoryError) or any(words in told for words in OUT_OF_MEMORY):
        return "the memory does not suffice: ask for a smaller size, batch, context or vocabulary"
    if isinstance(error, RuntimeError):
        return None
    if isinstance(error, OSError) and error.filename is not None:
        return (
            f"{error.filename}: {error.strerror}; name a file or folder that is there, "
            "or one that you may write to and that has room"
        )
    return told or f"{type(error).__name__} without a word of explanation"


def number(kind, above=None, least=None, most=None):
    """A type for an option: a finite int or float, `above` a bound, or from `least` to `most`."""
    wanted = "a whole number" if kind is int else "a number"
    wanted += f" above {above:,}" if above is not None else ""
    wanted += f" from {least:,}" if least is not None else ""
    wanted += f" to {most:,}" if most is not None else ""

    def parse(text):
        try:
            value = kind(text)
        except (ValueError, OverflowError):
            value = math.nan
        fits = math.isfinite(value)
        fits = fits and (above is None or value > above)
        fits = fits and (least is None or value >= least)
        fits = fits and (most is None or value <= most)
        if not fits:
            raise argparse.ArgumentTypeError(f"wanted {wanted}, got {text}")
        return value

    return parse
