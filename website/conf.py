"""Sphinx's settings.

Every warning is an error. The site asks no other host for anything, and its search needs no server:
the index is a script.
"""

from pathlib import Path

import rota

project = "Rota"
version = release = rota.__version__
extensions = ["myst_parser"]
root_doc = "index"
toc_object_entries_show_parents = "hide"
add_module_names = False
python_maximum_signature_line_length = 80
python_display_short_literal_types = True

# Headings are named as code hosts name them.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "fieldlist"]

html_theme = "furo"
html_title = "Rota"
html_static_path = ["static"]
html_favicon = str(Path(rota.__file__).parent / "dashboard" / "static" / "icon.svg")
html_css_files = ["rota.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style = "default"
pygments_dark_style = "github-dark"
html_js_files = ["files.js"]
html_search_scorer = str(Path(__file__).with_name("search.js"))
