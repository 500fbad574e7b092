"""The licences of all in `requirements.lock`: `python -m tests.package.licences` or `make licences`.

What a distribution says of itself becomes an SPDX expression, and each licence in it must be in
`FREE`. What is locked for other systems or Pythons is not installed here, and is not looked at.
"""

import re
import sys
from importlib.metadata import distributions
from typing import TYPE_CHECKING

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.utils import NormalizedName, canonicalize_name

from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from email.message import Message

FREE = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "LGPL-3.0-only",
    "LGPL-3.0-or-later", "MIT", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib",
}  # fmt: skip
"""Those that leave Rota's users free. LGPL and MPL ask something only of who changes that library."""

WORDS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL-3.0-or-later",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Words older than SPDX expressions: a classifier's last part or the field License. No BSD kind."""

LOOKED_AT = {
    # In the public domain; the GPL is that of a mode for Emacs, which the wheel does not have.
    "docutils": "BSD-3-Clause",
}
"""What a person found where metadata say less."""


def locked() -> set[NormalizedName]:
    """The names in the lock file."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    return {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}


def said(fields: "Message[str, str]") -> str:
    """What metadata say of the licence: an expression, else classifiers, else a text's first line."""
    if expression := fields.get("License-Expression"):
        return expression
    kinds = [kind for kind in fields.get_all("Classifier", []) if kind.startswith("License :: OSI")]
    words = [kind.rpartition(" :: ")[2] for kind in kinds]
    words = words or fields.get("License", "").strip().splitlines()[:1]
    return " AND ".join(WORDS.get(word, word) for word in words) or "nothing"


def is_free(expression: str) -> bool:
    """Whether one may choose licences in `FREE` alone."""
    try:
        choices = canonicalize_license_expression(expression).split(" OR ")
    except InvalidLicenseExpression:
        return False
    # Of an expression with parentheses no part is in the list: a person has to look.
    return any(FREE.issuperset(choice.split(" AND ")) for choice in choices)


def licences() -> dict[str, str]:
    """From each locked distribution that is installed here to what it says."""
    found = {
        canonicalize_name(one.metadata["Name"]): said(one.metadata)  # type: ignore[arg-type]
        for one in distributions()
    }
    return {name: LOOKED_AT.get(name, found[name]) for name in sorted(locked() & found.keys())}


def main() -> None:
    """Print them all; the exit status is 1 if one of them is not free."""
    found = licences()
    refused = [name for name, expression in found.items() if not is_free(expression)]
    lines = [
        f"{'NOT FREE' if name in refused else '':9}{name:40}{expression}"
        for name, expression in found.items()
    ]
    others = len(locked()) - len(found)
    lines.append(f"{len(found)} distributions; {others} are for other systems or Pythons")
    sys.stdout.write("\n".join([*lines, ""]))
    sys.exit(bool(refused))


if __name__ == "__main__":
    main()
