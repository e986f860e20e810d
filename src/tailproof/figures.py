"""Pictures of results and of recorded rewards, and what they are made of."""

from tailproof.advice.drawing import calibration_figure, rewards_figure
from tailproof.drawing import PALETTE, READING, band, canvas, reading
from tailproof.results.drawing import pulls_figure, regret_figure

__all__ = [
    "PALETTE",
    "READING",
    "band",
    "calibration_figure",
    "canvas",
    "pulls_figure",
    "reading",
    "regret_figure",
    "rewards_figure",
]


def __dir__() -> list[str]:
    return __all__
