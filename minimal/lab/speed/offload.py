"""What do tables on the host cost? Counted bytes and measured time of a prefill and of steps.

python -m minimal.lab.speed.offload [--length 131072]
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import torch

from minimal.kernels.offload import Offloaded, fetched_bytes, mapped


def cost(length=131072, steps=64, layers=4, G=6, D=128, V=32768, folder=None):
    """Bytes and milliseconds of a prefill and of steps, tables in files; and of fetching all rows in each step."""
    from minimal.lab.timing import zipf

    made = torch.Generator().manual_seed(0)
    ids = zipf(V, length + steps, made)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        tables = [mapped(Path(place) / f"table{layer}", (V, G, D)) for layer in range(layers)]
        for table in tables:
            table.normal_(generator=made)
        bank = Offloaded(tables)
        start = time.perf_counter()
        bank.local(ids[:length])
        prefill, first = time.perf_counter() - start, bank.fetched_bytes
        taken = []
        for step in range(length, length + steps):
            start = time.perf_counter()
            bank.local(ids[step : step + 1])
            taken.append(1e3 * (time.perf_counter() - start))
        seen = ids[:length].unique().long()
        start = time.perf_counter()
        for table in tables:
            table[seen]
        every = time.perf_counter() - start
        found = dict(
            length=length,
            distinct=len(seen),
            prefill_bytes=first,
            prefill_ms=1e3 * prefill,
            step_bytes=(bank.fetched_bytes - first) / steps,
            step_ms=statistics.median(taken),
            slowest_step_ms=max(taken),
            every_row_each_step_bytes=fetched_bytes(len(seen), layers, G, D),
            every_row_each_step_ms=1e3 * every,
            tables_bytes=layers * V * G * D * 4,
            resident_bytes=bank.count * layers * G * D * 4,
            v_cache_bytes=layers * length * G * D * 4,
        )
        del tables, bank.host
        return found


def main():
    ask = argparse.ArgumentParser(
        prog="python -m minimal.lab.speed.offload", description=__doc__.splitlines()[0]
    )
    ask.add_argument("--length", type=int, default=131072)
    ask.add_argument("--threads", type=int, default=2)
    asked = ask.parse_args()
    torch.set_num_threads(asked.threads)
    print(json.dumps(cost(asked.length), indent=1))


if __name__ == "__main__":
    main()
