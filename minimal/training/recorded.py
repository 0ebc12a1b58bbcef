"""How is a small model trained fast on a GPU? Its step recorded once, then replayed.

A step of a tiny model is some fifteen hundred kernels of a few microseconds each, and Python needs
longer to launch them than the GPU to run them. A CUDA graph launches them all at once.
"""

import torch

WARM = 2  # calls that run as they are: the first ones compile, and ask for memory


class Recording:
    """One recorded call: the tensors that it reads and writes, always the same ones."""

    def __init__(self, tensors, device):
        self.inputs = [torch.empty_like(x, device=device) for x in tensors]
        self.calls, self.graph, self.outputs = 0, None, None

    def run(self, work):
        """Another call: as it is, on a stream aside, or as the graph that it was recorded as."""
        self.calls += 1
        if self.calls <= WARM:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self.outputs = work(*self.inputs)
            torch.cuda.current_stream().wait_stream(side)
            return
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):  # records, and runs nothing
                self.outputs = work(*self.inputs)
        self.graph.replay()


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
            self.found[key] = Recording(tensors, self.device)
        one = self.found[key]
        for mine, given in zip(one.inputs, tensors):
            mine.copy_(given.pin_memory(), non_blocking=True)
        one.run(lambda *inputs: self.work(what, *inputs))
        return tuple(x.clone() for x in one.outputs)  # the next call writes over them


class Direct:
    """The same call without a recording."""

    def __init__(self, work, to_device):
        self.work, self.to_device = work, to_device

    def __call__(self, what, *tensors):
        return self.work(what, *map(self.to_device, tensors))
