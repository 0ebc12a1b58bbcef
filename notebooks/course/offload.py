"""What if the tables of a Bank of Values do not fit beside the model? Offloading them to the host.

A decode step needs, in every layer with a table, the rows of ALL tokens of the history, not of the
newest one. Fetched afresh each step, that is as many rows a layer over the bus as there are
distinct tokens. `Offloaded` keeps the rows that were needed once and fetches only those of tokens
not seen before: at most one a sequence and step, named by ids that are known before the first layer
runs, so that `prefetch` can overlap with all layers below the tables. What stays on the device are
the distinct rows: a V cache by token, never larger than one by position. What a prefill and a step
fetch, in counted bytes and measured time:

    python -m evidence.bench.offload [--length 131072]
"""

from concurrent.futures import ThreadPoolExecutor

import torch


class Offloaded:
    """Tables (V, G, D), one a layer, on the host: in memory or mapped from a file.

    What crosses the bus is pinned first."""

    def __init__(self, tables, device="cpu", room=1024):
        self.device, self.host = torch.device(device), list(tables)
        if self.device.type == "cuda":
            self.stream = torch.cuda.Stream(self.device)
        V = len(self.host[0])
        self.slots = torch.full((V,), -1, dtype=torch.int32)  # each token's row, -1 if absent
        self.resident = [
            torch.empty(room, *table.shape[1:], dtype=table.dtype, device=device)
            for table in self.host
        ]
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
        if self.device.type == "cuda":  # after what grow() moved
            self.stream.wait_stream(torch.cuda.current_stream(self.device))
        row_bytes = sum(table[0].numel() * table.element_size() for table in self.host)
        self.fetched_bytes += len(new) * row_bytes
        self.pending = self.worker.submit(self.copy, new, first)

    def copy(self, new, first):
        """Rows are collected on the host, then sent, beside what the device computes."""
        for table, rows in zip(self.host, self.resident, strict=True):
            collected = table[new]  # (n, G, D)
            if self.device.type == "cuda":
                with torch.cuda.stream(self.stream):
                    rows[first : first + len(new)].copy_(collected.pin_memory(), non_blocking=True)
            else:
                rows[first : first + len(new)] = collected

    def grow(self, count):
        """Room doubles, so that each row is moved a constant number of times."""
        room = len(self.resident[0])
        if count > room:
            for layer, rows in enumerate(self.resident):
                self.resident[layer] = rows.new_empty(max(count, 2 * room), *rows.shape[1:])
                self.resident[layer][: self.count] = rows[: self.count]

    def wait(self):
        """Until the last prefetch has arrived. Afterwards the device may read what it fetched."""
        if self.pending is not None:
            self.pending.result()
            self.pending = None
            if self.device.type == "cuda":
                torch.cuda.current_stream(self.device).wait_stream(self.stream)

    def local(self, ids):
        """ids into the resident rows.

        They never change, so a history of local ids only ever grows at its end."""
        self.prefetch(ids)
        self.wait()
        return self.slots[ids.long()].to(self.device)

    def table(self, layer):
        """(count, G, D): with local ids, gather_attention reads it as it would the whole table."""
        return self.resident[layer][: self.count]

    def resident_bytes(self):
        return sum(rows.untyped_storage().nbytes() for rows in self.resident)


def fetched_bytes(new_tokens, layers, G, D, b=4):
    """What must cross the bus for tokens that were not there."""
    return new_tokens * layers * G * D * b


def mapped(path, shape, dtype=torch.float32):
    """A table in a file, of which only the pages that are touched are read."""
    size = torch.Size(shape).numel()
    return torch.from_file(str(path), shared=True, size=size, dtype=dtype).view(shape)
