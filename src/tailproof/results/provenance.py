"""What a result depends on besides its settings."""

import platform
from functools import cache
from importlib.metadata import version

import numpy as np

__all__ = ["provenance"]


def provenance() -> dict[str, str]:
    """Return the versions that a result depends on, and the kernels chosen for the processor.

    Kernels of matrix products (`blas`) and of functions such as the logarithm (`simd`) differ in
    how they round.

    >>> sorted(provenance())
    ['blas', 'numpy', 'python', 'scipy', 'simd', 'tailproof']
    """
    return dict(_provenance())


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
