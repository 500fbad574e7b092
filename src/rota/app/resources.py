"""Resources: what lifespans have made, by name, and which of them a parameter means."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from rota.args.provided import Need
from rota.errors import ConfigError

OF_WORKER = ("no lifespan of the worker yields it", "add one with @rota.lifespan")
OF_CHILDREN = (
    "no lifespan of child processes yields it",
    "add one with @rota.lifespan(executor='process')",
)
OF_CLUSTER = (
    "a node of a cluster has no lifespans",
    "open what the handler needs in its own module, when it is first used",
)
OF_TEST = ("this test provides none", "give it with rota_test.provide(name=value)")
"""What is said where a resource is missing, and what to do."""


class Needy(Protocol):
    """What is known of a task here."""

    @property
    def name(self) -> str:
        """The task's name."""
        ...

    @property
    def needs(self) -> tuple[Need, ...]:
        """The parameters that are given resources."""
        ...


class Resources:
    """The resources of one process; those of a worker and of its child processes are others."""

    __slots__ = ("_given", "_missing", "_values")

    def __init__(self, missing: tuple[str, str] = OF_WORKER) -> None:
        self._missing = missing
        self._values: dict[str, object] = {}
        self._given: dict[str, Mapping[str, object]] = {}

    def add(self, name: str, value: object) -> None:
        """Add what a lifespan yields; nothing, where it yields nothing."""
        if value is not None:
            self._values[name] = value
            self._given.clear()

    def of(self, task: Needy) -> Mapping[str, object]:
        """What a task's handler is given, by parameter.

        Raises:
            ConfigError: No resource is meant, or several may be.
        """
        if task.name not in self._given:
            self._given[task.name] = self.given(task.needs, f"task {task.name!r}")
        return self._given[task.name]

    def given(self, needs: Iterable[Need], subject: str) -> dict[str, object]:
        """The resource of each need, by parameter.

        Raises:
            ConfigError: As `of`; the message begins with the `subject`.
        """
        return {
            need.name: self._find(need, f"{subject}: parameter `{need}`", "name the parameter")
            for need in needs
        }

    def find(self, need: Need, subject: str) -> Any:
        """The resource that is asked for by its type, or by its name.

        Raises:
            ConfigError: There is none, or several may be meant.
        """
        return self._find(need, subject, "give its name instead of the type")

    def _find(self, need: Need, subject: str, cure: str) -> object:
        """By the exact type, else by a subclass of it; where several are of it, by the name."""
        values = self._values
        if need.kinds:
            exact = {name: each for name, each in values.items() if type(each) in need.kinds}
            values = exact or {
                name: each for name, each in values.items() if isinstance(each, need.kinds)
            }
            if len(values) == 1:
                [value] = values.values()
                return value
        if need.name in values:
            return values[need.name]
        if need.kinds and values:
            names = " or ".join(values)
            message = f"{subject}: several resources are of that type; {cure}: {names}"
        else:
            missing, cure = self._missing
            message = f"{subject}: {missing}; {self._there()}; {cure}"
        raise ConfigError(message)

    def _there(self) -> str:
        there = ", ".join(f"{name} ({type(each).__name__})" for name, each in self._values.items())
        return f"there are: {there}" if there else "there are none"
