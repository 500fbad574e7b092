"""Which args of a task are shown to nobody."""

from collections.abc import Collection

from rota.args import ArgsCodec
from rota.errors import ConfigError
from rota.model.keys import Keying


def hidden_args(task: str, codec: ArgsCodec, named: Collection[str]) -> tuple[str, ...]:
    """Those that are named in `redact=`, and those that are annotated with `Secret`.

    Raises:
        ConfigError: A name is of no arg.
    """
    if isinstance(named, str) or not set(named) <= set(codec.names):
        message = (
            f"task {task!r}: redact: must be a tuple of names of its args (there are "
            f"{', '.join(codec.names) or 'none'}), not {named!r}"
        )
        raise ConfigError(message)
    return tuple(name for name in codec.names if name in {*named, *codec.secrets})


def check_keys(keying: Keying, hidden: Collection[str]) -> Keying:
    """Check that no key has a hidden arg in it: keys are shown, and are in other tables.

    Raises:
        ConfigError: One has.
    """
    for template in keying.templates:
        if found := [name for name in template.names if name in hidden]:
            message = (
                f"{template.what}: {template.text!r} has {found[0]!r} in it, which is redacted; make the key "
                "from other args"
            )
            raise ConfigError(message)
    return keying
