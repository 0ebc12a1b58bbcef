"""If the tables of a Bank of Values do not fit beside the model, what does it cost to leave them on the host?

A decode step needs, in every layer with a table, the rows of ALL tokens of the history, not of the newest one.
Fetched afresh each step, that is as many rows a layer over the bus as there are distinct tokens. `Offloaded` keeps the
rows that were needed once and fetches only those of tokens not seen before: at most one a sequence and step, named by
ids that are known before the first layer runs, so that `prefetch` can overlap with all layers below the tables. What
stays on the device are the distinct rows: a V cache by token, never larger than one by position.

    python -m minimal.offload [--length 131072]        what a prefill and a step fetch: counted bytes, measured time
"""

import argparse
import json
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch


class Offloaded:
    """Tables (V, G, D), one a layer, on the host: in memory or mapped from a file; what crosses the bus is pinned."""

    def __init__(self, tables, device="cpu", room=1024):
        self.device, self.host = torch.device(device), list(tables)
        if self.device.type == "cuda":
            self.stream = torch.cuda.Stream(self.device)
        self.slots = torch.full((len(self.host[0]),), -1, dtype=torch.int32)  # (V,): each token's row, -1 if absent
        self.resident = [torch.empty(room, *table.shape[1:], dtype=table.dtype, device=device) for table in self.host]
        self.count, self.fetched_bytes = 0, 0
        self.worker, self.pending = ThreadPoolExecutor(1), None

    def prefetch(self, ids):
        """Start to fetch what `ids` (any shape, on the host) need; returns at once."""
        self.wait()
        new = ids.unique().long()
        new = new[self.slots[new] < 0]  # (n,)
        if not len(new):
            return
        self.slots[new] = torch.arange(self.count, self.count + len(new), dtype=torch.int32)
        self.grow(self.count + len(new))
        first, self.count = self.count, self.count + len(new)
        if self.device.type == "cuda":
            self.stream.wait_stream(torch.cuda.current_stream(self.device))  # after what grow() moved
        self.fetched_bytes += sum(len(new) * table[0].numel() * table.element_size() for table in self.host)
        self.pending = self.worker.submit(self.copy, new, first)

    def copy(self, new, first):
        """Rows are collected on the host, then sent in one piece a layer, beside what the device computes."""
        for table, rows in zip(self.host, self.resident, strict=True):
            collected = table[new]  # (n, G, D)
            if self.device.type == "cuda":
                with torch.cuda.stream(self.stream):
                    rows[first:first + len(new)].copy_(collected.pin_memory(), non_blocking=True)
            else:
                rows[first:first + len(new)] = collected

    def grow(self, count):
        """Room doubles, so that each row is moved a constant number of times."""
        room = len(self.resident[0])
        if count > room:
            for layer, rows in enumerate(self.resident):
                self.resident[layer] = rows.new_empty(max(count, 2 * room), *rows.shape[1:])
                self.resident[layer][:self.count] = rows[:self.count]

    def wait(self):
        """Until the last prefetch has arrived. Afterwards the device may read what it fetched."""
        if self.pending is not None:
            self.pending.result()
            self.pending = None
            if self.device.type == "cuda":
                torch.cuda.current_stream(self.device).wait_stream(self.stream)

    def local(self, ids):
        """ids into the resident rows; they never change, so a history of local ids only ever grows at its end."""
        self.prefetch(ids)
        self.wait()
        return self.slots[ids.long()].to(self.device)

    def table(self, layer):
        """(count, G, D): with local ids, gather_attention reads it as it would read the whole table."""
        return self.resident[layer][:self.count]

    def resident_bytes(self):
        return sum(rows.untyped_storage().nbytes() for rows in self.resident)


def fetched_bytes(new_tokens, layers, G, D, b=4):
    """What must cross the bus for tokens that were not there."""
    return new_tokens * layers * G * D * b


def mapped(path, shape, dtype=torch.float32):
    """A table in a file, of which only the pages that are touched are read."""
    size = torch.Size(shape).numel()
    return torch.from_file(str(path), shared=True, size=size, dtype=dtype).view(shape)


def cost(length=131072, steps=64, layers=4, G=6, D=128, V=32768, folder=None):
    """Bytes and milliseconds of a prefill and of steps, tables in files; and of fetching all rows in each step."""
    from minimal.bench_decode import zipf
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
            bank.local(ids[step:step + 1])
            taken.append(1e3 * (time.perf_counter() - start))
        seen = ids[:length].unique().long()
        start = time.perf_counter()
        for table in tables:
            table[seen]
        every = time.perf_counter() - start
        found = dict(length=length, distinct=len(seen), prefill_bytes=first, prefill_ms=1e3 * prefill,
                     step_bytes=(bank.fetched_bytes - first) / steps, step_ms=statistics.median(taken),
                     slowest_step_ms=max(taken), every_row_each_step_bytes=fetched_bytes(len(seen), layers, G, D),
                     every_row_each_step_ms=1e3 * every, tables_bytes=layers * V * G * D * 4,
                     resident_bytes=bank.count * layers * G * D * 4, v_cache_bytes=layers * length * G * D * 4)
        del tables, bank.host
        return found


def main():
    ask = argparse.ArgumentParser(prog="python -m minimal.offload", description=__doc__.splitlines()[0])
    ask.add_argument("--length", type=int, default=131072)
    ask.add_argument("--threads", type=int, default=2)
    asked = ask.parse_args()
    torch.set_num_threads(asked.threads)
    print(json.dumps(cost(asked.length), indent=1))


if __name__ == "__main__":
    main()
