"""What do tables on the host cost? Counted bytes and measured time of a prefill and of steps.

python -m evidence.bench.offload [--length 131072]
"""

import json
import statistics
import tempfile
from pathlib import Path

import torch

from course.offload import Offloaded, fetched_bytes, mapped
from minimal.bench.timing import clock, zipf
from minimal.command import command, number


def offload_cost(length=131072, steps=64, layers=4, G=6, D=128, V=32768, folder=None):
    """A prefill, then steps, with tables in files; and what fetching all rows in each step would
    be."""
    made = torch.Generator().manual_seed(0)
    ids = zipf(V, length + steps, made)
    once = lambda work: 1e3 * clock(work, repeats=1, warm=0)[0]
    with tempfile.TemporaryDirectory(dir=folder) as place:
        tables = [mapped(Path(place) / f"table{layer}", (V, G, D)) for layer in range(layers)]
        for table in tables:
            table.normal_(generator=made)
        bank = Offloaded(tables)

        # a prefill, then steps, then what fetching every row again would take
        prefill = once(lambda: bank.local(ids[:length]))
        prefill_bytes = bank.fetched_bytes
        taken = []
        for at in range(length, length + steps):
            new = ids[at : at + 1]
            taken.append(once(lambda new=new: bank.local(new)))
        seen = ids[:length].unique().long()
        every = once(lambda: [table[seen] for table in tables])

        found = dict(
            length=length,
            distinct=len(seen),
            prefill_bytes=prefill_bytes,
            prefill_ms=prefill,
            step_bytes=(bank.fetched_bytes - prefill_bytes) / steps,
            step_ms=statistics.median(taken),
            slowest_step_ms=max(taken),
            every_row_each_step_bytes=fetched_bytes(len(seen), layers, G, D),
            every_row_each_step_ms=every,
            tables_bytes=layers * V * G * D * 4,
            resident_bytes=bank.count * layers * G * D * 4,
            v_cache_bytes=layers * length * G * D * 4,
        )
        tables.clear(), bank.host.clear()  # a file is removed once nobody maps it
        return found


@command("evidence.bench.offload", __doc__.splitlines()[0])
def main(parser, argv):
    parser.add_argument("--length", type=number(int, least=1), default=131072)
    parser.add_argument("--threads", type=number(int, least=1, most=1024), default=2)
    asked = parser.parse_args(argv)
    torch.set_num_threads(asked.threads)
    print(json.dumps(offload_cost(asked.length), indent=1))


if __name__ == "__main__":
    main()
