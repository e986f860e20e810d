"""The documentation site: ``make docs`` builds it into ``out/docs``, offline."""

import logging
import os
import sys
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import api_pages
import command_line
import docstrings
import excerpts
import policy_tables

import tailproof

api_pages.write(Path(__file__).parent / "api")
for file, public in api_pages.HANDLES.items():  # so that autodoc can import the public name
    sys.modules[public] = import_module(f"tailproof.{file}") if public != "tailproof" else tailproof

# Tutorials use the command of this environment, with room for its tables.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["COLUMNS"] = "80"
# Personal IPython settings must not change a page; hide the kernel's notice about its address.
_ipython = Path(mkdtemp()) / "profile_default"
_ipython.mkdir()
(_ipython / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 'ERROR'\n")
os.environ["IPYTHONDIR"] = str(_ipython.parent)
logging.getLogger("traitlets").setLevel(logging.WARNING)

project = "tailproof"
author = "The tailproof authors"
project_copyright = f"2026, {author}"
version = release = tailproof.__version__

# No intersphinx: the build must work offline.
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
highlight_language = "text"
smartquotes = False
nitpicky = True

# Pages: Markdown; the code of tutorials runs at every build, and a failure stops it.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 120
nb_execution_show_tb = True
nb_merge_streams = True

# The API: one page per public name, from its docstring.
add_module_names = False
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
autosummary_generate = True
numpydoc_show_class_members = False

# Looks: a page loads nothing from other hosts.
html_theme = "furo"
html_title = f"tailproof {version}"
html_static_path = ["_static"]
html_css_files = ["tailproof.css"]
html_js_files = ["tailproof.js"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_dark_style = "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\.\.\.$|\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"


def setup(app: Any) -> None:
    """Register the converters of docstrings and commands, and the excerpts of the search."""
    app.connect("autodoc-process-docstring", docstrings.to_rst, priority=100)
    app.connect("source-read", command_line.fill)
    app.connect("source-read", policy_tables.fill)
    app.connect("html-page-context", excerpts.add_script)
    app.connect("build-finished", excerpts.write)
