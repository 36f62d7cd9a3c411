"""Sphinx, as `python docs/site/build.py` runs it; a warning is an error."""

import os
import sys
from pathlib import Path

import unseam

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project, author, copyright = "unseam", "The unseam authors", "The unseam authors, Apache-2.0"
version = release = unseam.__version__
extensions = [
    "myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "sphinx_design",
    "sphinx_copybutton", "mathml", "docstrings",
]  # fmt: skip
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
# tutorials run in an empty folder; `build.py --run` executes them, the test of the pages does not
nb_execution_mode = os.environ.get("UNSEAM_DOCS_RUN", "off")
nb_execution_in_temp = True
nb_execution_timeout = 900  # seconds by the clock, for each cell: a machine may be busy
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

default_role = "code"
autodoc_typehints = "both"
autodoc_typehints_description_target = "all"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = False
autosummary_generate = False
napoleon_numpy_docstring, napoleon_google_docstring = True, False
napoleon_use_rtype = False
napoleon_preprocess_types = False
python_display_short_literal_types = True
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False
highlight_language = "text"
pygments_style = "tango"
suppress_warnings = ["myst.header", "myst-nb.lexer"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "unseam"
html_static_path = [str(HERE / "static")]
html_css_files = ["unseam.css"]
html_copy_source = html_show_sourcelink = html_show_search_summary = False
html_theme_options = {
    "logo": {"text": "unseam"},
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "collapse_navigation": True,
}
html_sidebars = {"index": [], "gallery": [], "changelog": [], "installation": []}
