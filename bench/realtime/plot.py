"""Latency over time, both engines under a load, the ends of batches marked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bench.realtime.latency import Latencies

COLOURS = {"realtime": "tab:blue", "flink": "tab:orange"}
TITLES = {"realtime": "Headrace", "flink": "Flink 2.2"}
SPAN = 5.0


def plot(load: str, engines: Mapping[str, Latencies], file: Path) -> None:
    """Draw the median and the greatest latency of every few seconds."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 3.2))
    for engine, found in engines.items():
        bins = (found.at // SPAN).astype(int)
        edges = np.flatnonzero(np.diff(bins, prepend=-1))
        parts = np.split(found.ms, edges[1:])
        times = bins[edges] * SPAN
        name, colour = TITLES[engine], COLOURS[engine]
        axes.plot(times, [np.median(part) for part in parts], color=colour, label=f"{name}, median")
        axes.plot(times, [part.max() for part in parts], color=colour, alpha=0.4, lw=0.8, label=f"{name}, greatest")
        for end in found.ends:
            if 0 < end < found.at[-1]:
                axes.axvline(end, color="grey", lw=0.6, ls=":")
    axes.set_yscale("log")
    axes.set_ylabel("ms")
    axes.set_title(load, loc="left", fontsize=9)
    axes.legend(fontsize=8, ncols=2)
    axes.set_xlabel("seconds since the warm-up")
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    plt.close(figure)
