"""How is a GPU kept busy by small kernels? A call recorded once as a CUDA graph, then replayed.

A step of a tiny model is some fifteen hundred kernels of a few microseconds each, and so is a token
of a large one; Python needs longer to launch them than the GPU to run them. A CUDA graph launches
them all at once.
"""

import torch

WARM = 2  # calls that run as they are: the first ones compile, and ask for memory


def on_gpu(device):
    return torch.device(device).type == "cuda"


class Graphed:
    """One call, work() -> tensors. It must read all that changes from tensors that stay where they
    are. The first `warm` calls run as they are, on a stream aside; the next one is recorded; and
    each from there on is a replay, which writes into the tensors that the recording gave.

    Without a GPU it is the call itself. On an H100 a replay gave what the call gives."""

    def __init__(self, work, device, warm=None):
        self.work, self.calls = work, 0
        self.warm = WARM if warm is None else warm
        self.recorded = on_gpu(device)
        self.graph, self.outputs = None, None

    def __call__(self):
        self.calls += 1
        if not self.recorded:
            return self.work()
        if self.calls <= self.warm:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                outputs = self.work()
            torch.cuda.current_stream().wait_stream(side)
            return outputs
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):  # records, and runs nothing
                self.outputs = self.work()
        self.graph.replay()
        return self.outputs


class Made:
    """Work compiled at the first call, and from then on run without a question.

    By itself PyTorch asks before each call whether anything has changed since it compiled, which
    takes longer than the token of a small model. Here only `tensors` change, and not their shapes;
    whatever else the work reads, weights, must stay where it is."""

    def __init__(self):
        self.run, self.inputs = None, []

    def __call__(self, work, *tensors):
        """work() -> a tuple; it reads `tensors` and writes into them."""
        if self.run is None:
            return self.make(work, tensors)
        return self.run(*(x if at is None else tensors[at] for x, at in self.inputs))

    def make(self, work, tensors):
        def backend(graph, examples):
            compiled = torch._dynamo.lookup_backend("inductor")(graph, examples)

            def first(*inputs):
                where = {id(x): at for at, x in enumerate(tensors)}
                for x in inputs:
                    at = where.get(id(x))
                    self.inputs.append((x if at is None else None, at))
                self.run = compiled
                return compiled(*inputs)

            return first

        made = torch.compile(work, backend=backend, fullgraph=True, dynamic=False)()
        torch._dynamo.reset_code(work.__code__)
        return made


class Recorded:
    """work(what, *tensors) -> a tuple of tensors, recorded once for every `what` and every shape.

    What changes from call to call must stand in the tensors, which may come from the CPU; `what` is
    everything else that decides the work. The work may change tensors of its own, as a training
    step does: it runs once a call."""

    def __init__(self, work, device):
        self.work, self.device, self.found = work, device, {}

    def __call__(self, what, *tensors):
        key = repr(what), *(x.shape for x in tensors)
        if key not in self.found:
            inputs = [torch.empty_like(x, device=self.device) for x in tensors]
            self.found[key] = inputs, Graphed(lambda: self.work(what, *inputs), self.device)
        inputs, one = self.found[key]
        for mine, given in zip(inputs, tensors):
            mine.copy_(given.pin_memory() if given.is_cpu else given, non_blocking=True)
        return tuple(x.clone() for x in one())  # the next call writes over them


class Direct:
    """The same call without a recording."""

    def __init__(self, work, to_device):
        self.work, self.to_device = work, to_device

    def __call__(self, what, *tensors):
        return self.work(what, *map(self.to_device, tensors))
