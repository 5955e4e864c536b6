"""The two figures of the synthetic experiment: TV curves, and the distributions at N = 2.

Colours are Okabe and Ito's, which people with any colour vision tell apart; line styles say N a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sampler.diagnostics.extras import analysis_library
from sampler.experiments.synthetic import METHODS, ORACLE, PLUG_IN, PREF_MH, STATES, Curve, log_p0, target

_COLOURS = {ORACLE: "#000000", PREF_MH: "#0072B2", PLUG_IN: "#D55E00"}
_LINES = {0: "-", 1: ":", 2: "--", 4: "-"}
_STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "savefig.dpi": 300,
    # Text stays text in a PDF, so that it can be searched and its font replaced.
    "pdf.fonttype": 42,
}
_SHOWN = tuple(method for method in METHODS if method.votes in (0, 2))


def write_figures(curves: Sequence[Curve], folder: Path) -> list[Path]:
    """Draw tv and distributions, each as PNG and PDF, and return their paths.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    matplotlib = analysis_library("matplotlib")
    written = []
    with matplotlib.rc_context(_STYLE):
        for name, draw in (("tv", _draw_tv), ("distributions", _draw_distributions)):
            # A figure of its own, not pyplot's: no window system is asked for and nothing global remembers it.
            figure = analysis_library("matplotlib.figure").Figure(figsize=(5.2, 3.4), layout="constrained")
            draw(figure.subplots(), curves)
            for suffix, metadata in ((".png", {}), (".pdf", {"CreationDate": None})):
                written.append(folder / (name + suffix))
                figure.savefig(written[-1], metadata=metadata)
    return written


def _draw_tv(axes: Any, curves: Sequence[Curve]) -> None:
    for curve in curves:
        style = {"color": _COLOURS[curve.method.name], "linestyle": _LINES[curve.method.votes], "linewidth": 1.4}
        axes.plot(curve.times, curve.tv, label=curve.method.label, **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(curves[0].times[0], curves[0].times[-1])
    for axis, ticks in ((axes.xaxis, (1_000, 10_000, 100_000)), (axes.yaxis, (0.02, 0.05, 0.1, 0.2, 0.5))):
        axis.set_ticks(ticks, [f"{tick:,}" for tick in ticks])
        axis.set_tick_params(which="minor", labelleft=False, labelbottom=False)
    axes.set_xlabel("MH steps $t$")
    axes.set_ylabel(r"TV$(\hat\pi_t, \pi)$")
    axes.grid(which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="lower left", ncols=1)


def _draw_distributions(axes: Any, curves: Sequence[Curve]) -> None:
    states = np.arange(STATES)
    axes.fill_between(states, target(), color="0.85", label=r"target $\pi$", linewidth=0)
    axes.plot(states, np.exp(log_p0()), color="0.55", linestyle=":", linewidth=1.2, label="base $p_0$")
    for curve in curves:
        if curve.method in _SHOWN:
            style = {"color": _COLOURS[curve.method.name], "linewidth": 1.0}
            axes.plot(states, curve.frequencies, label=curve.method.label, **style)
    axes.set_xlim(0, STATES - 1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("state $k$")
    axes.set_ylabel("probability")
    axes.legend(loc="upper left")
