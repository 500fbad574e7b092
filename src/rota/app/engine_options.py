"""What a task's jobs need of a cluster, in the words of its engine."""

from collections.abc import Mapping

from rota.app.executor import Executor
from rota.errors import ConfigError

KNOWN = {
    Executor.DASK: ("resources",),
    Executor.RAY: ("num_cpus", "num_gpus", "memory", "resources", "runtime_env"),
}
"""The words that are passed on. How often a job is tried, and where, is no affair of the engine's."""


def engine_options(
    executor: Executor | None, **given: Mapping[str, object] | None
) -> Mapping[str, object]:
    """What is said for the executor's engine, which goes by its name.

    Raises:
        ConfigError: Something is said for another one, or is not known.
    """
    said: Mapping[str, object] = {}
    for name, options in given.items():
        if options is None:
            continue
        if executor is None or executor.value != name:
            message = f"{name}={options!r} needs executor={name!r}"
            raise ConfigError(message)
        for word in options:
            if word not in KNOWN[executor]:
                known = ", ".join(KNOWN[executor])
                message = f"{name}: {word!r} is not supported; the options are: {known}"
                raise ConfigError(message)
        said = dict(options)
    return said
