"""What a result depends on besides its settings."""

import platform
from functools import cache
from importlib.metadata import version
from typing import Literal

import numpy as np

__all__ = ["Code", "provenance"]


Code = Literal["numpy", "compiled", "cuda"]
"""How a result was computed: arrays of paths, or compiled code of one path on cores or a GPU."""


def provenance(code: Code = "numpy") -> dict[str, str]:
    """Return the versions that a result depends on, and the kernels chosen for the processor.

    Kernels of matrix products (`blas`) and of functions such as the logarithm (`simd`) differ in
    how they round. Compiled code depends on the version of Numba, too.

    >>> sorted(provenance())
    ['blas', 'numpy', 'python', 'scipy', 'simd', 'tailproof']
    """
    compiler = {} if code == "numpy" else {"numba": version("numba")}
    return _provenance() | compiler


@cache
def _provenance() -> dict[str, str]:
    from threadpoolctl import threadpool_info

    names = ("internal_api", "version", "architecture")
    blas = {
        " ".join(str(library.get(name, "")) for name in names)
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in ("tailproof", "numpy", "scipy")},
        "blas": ", ".join(sorted(blas)),
        "simd": " ".join([*simd.get("baseline", ()), *simd.get("found", ())]),
    }
