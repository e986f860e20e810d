"""What a result depends on beside its settings."""

import platform
from importlib.metadata import version

__all__ = ["provenance"]


def provenance() -> dict[str, str]:
    """Return the versions that a result depends on."""
    packages = {name: version(name) for name in ("tailproof", "numpy", "scipy")}
    return {"python": platform.python_version(), **packages}
