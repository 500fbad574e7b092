"""An interpreter that has Django 6, which needs Python 3.12."""

import functools
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

HAS_DJANGO_6 = "import sys, django; sys.exit(django.VERSION < (6, 0))"

NONE_FOUND = (
    "skipped because no Python 3.12 was found with Django 6: install Python 3.12 or later, and let "
    "`make test-pythons` make its environment"
)


@functools.cache
def with_django_6() -> str | None:
    """This interpreter, or one of those that `make test-pythons` has made; `None` if none has it."""
    made = sorted(map(str, ROOT.glob(".cache/python-3.*/bin/python")))
    for python in (sys.executable, *made):
        found = subprocess.run([python, "-c", HAS_DJANGO_6], capture_output=True, check=False)
        if found.returncode == 0:
            return python
    return None
