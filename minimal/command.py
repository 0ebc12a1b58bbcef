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
import signal
import sys
from pathlib import Path

INTERRUPTED = "interrupted before anything was finished"
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class Stop(Exception):
    """The work ended early, in one sentence that says what was kept and how to go on."""


class Parser(argparse.ArgumentParser):
    """An argparse parser that answers a wrong option in one sentence instead of its usage."""

    def __init__(self, module, description):
        is_file = module.endswith(".py")
        super().__init__(
            prog=f"python {module}" if is_file else f"python -m {module}",
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.name = Path(module).stem if is_file else module.rpartition(".")[2]

    def error(self, message):
        self.exit(2, f"{self.name}: {message}; {self.prog} --help lists the options\n")


def command(module, description):
    """Make main(parser, argv) a command, main(argv=None); `module` is what follows python -m, or
    a file that python is called with."""

    def decorate(main):
        @functools.wraps(main)
        def run(argv=None):
            parser = Parser(module, description)
            ready_to_print()
            if signal.getsignal(signal.SIGINT) is leave:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                try:
                    return main(parser, sys.argv[1:] if argv is None else argv)
                finally:
                    sys.stdout.flush()  # what cannot be printed is noticed here, not at the exit
            except BrokenPipeError:  # whoever read our output, `head` for one, has seen enough
                print_no_more()
                sys.exit(1)
            except KeyboardInterrupt:
                sys.exit(f"{parser.name}: {INTERRUPTED}")
            except (ValueError, OSError, Stop, MemoryError, RuntimeError) as error:
                sentence = last_sentence(error)
                if sentence is None:
                    raise
                print_no_more()
                sys.exit(f"{parser.name}: {sentence}")

        return run

    return decorate


def ready_to_print():
    """A letter that this console does not have is printed as its number, \\u03b3, not refused."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", "") == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def print_no_more():
    """What is printed already is let go if it cannot be written: Python would try at its exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# ---- Ctrl-C while Python still imports -----------------------------------------------------------
def wait_for_imports():
    """Until the command begins, Ctrl-C ends the process in a sentence. An import has nothing to
    lose, and an exception in one may surface anywhere."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # nohup's wish stands
        signal.signal(signal.SIGINT, leave)


def leave(number, frame):
    os.write(2, f"{INTERRUPTED}\n".encode())
    os._exit(1)


def last_sentence(error):
    """What to say of this error in one line; None if it is not the user's to fix."""
    told = " ".join(str(error).split())
    if isinstance(error, MemoryError) or any(words in told for words in OUT_OF_MEMORY):
        return "the memory does not suffice: ask for a smaller size, batch, context or vocabulary"
    if isinstance(error, RuntimeError):
        return None
    if isinstance(error, OSError) and error.filename is None:
        told = error.strerror or told
    elif isinstance(error, OSError):
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
            fits = math.isfinite(value)  # no float is as large as an int of 400 digits
        except (ValueError, OverflowError):
            fits = False
        fits = fits and (above is None or value > above)
        fits = fits and (least is None or value >= least)
        fits = fits and (most is None or value <= most)
        if not fits:
            raise argparse.ArgumentTypeError(f"wanted {wanted}, got {text}")
        return value

    return parse
