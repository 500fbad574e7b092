"""Everything of the command is imported first.

A module that is imported late would keep for good what a test has replaced for its own time.
"""

import importlib
import pkgutil

import rota.cli

for module in pkgutil.walk_packages(rota.cli.__path__, "rota.cli."):
    importlib.import_module(module.name)
