"""Texts drawn by steps that are recorded once and repeated: as a CUDA graph on a GPU, by `torch.fx` on the CPU.

Either repeats operations on arrays at their places, and nothing of what Python works out. The product draws without: no
GPU has tried this yet.
"""

import contextlib

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from prefmh_web.endpoints.local import texts


class RepeatedSteps(texts._Batch):
    """A batch whose step is repeated as it was recorded, from the third one of a number of rows on."""

    _shape = _repeat = None
    repeated = 0
    """Steps of all batches that were repeated."""

    def _draw_one(self, temperature):
        if self._new.shape != self._shape:
            # The first pass over the prompts, or the first step after rows were dropped; it also warms up.
            self._shape, self._repeat = self._new.shape, None
            super()._draw_one(temperature)
        elif self._repeat is None:
            self._repeat = _recorded(lambda: super(RepeatedSteps, self)._draw_one(temperature), self._new.device.type)
        else:
            self._repeat()
            self._width += 1
            RepeatedSteps.repeated += 1


def _recorded(work, kind):
    """Return what does the work again, having done it once."""
    if kind != "cuda":
        return make_fx(work)()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    graph.replay()
    return graph.replay


@contextlib.contextmanager
def repeated_steps():
    """Let models draw so. The cache must be one of ours: that of a model that makes its own grows."""
    usual, texts._Batch = texts._Batch, RepeatedSteps
    try:
        yield
    finally:
        texts._Batch = usual
