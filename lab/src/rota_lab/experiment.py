"""What an experiment is: one question, asked of every strategy that suits.

An experiment is a class in a file of its own in `experiments/`. `measure` runs one strategy on one
database and gives samples as it takes them, so that an interruption loses none; `result` makes
figures and charts of all samples.
"""

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Generic, TypeVar

from rota.errors import ConfigError
from rota.measure.reports.report import Result
from rota_lab.databases import Database
from rota_lab.queue import Trial
from rota_lab.strategy import Strategy

S = TypeVar("S")
"""A sample."""


class Experiment(ABC, Generic[S]):
    """One question."""

    name: ClassVar[str]
    """Its name on the command line."""

    question: ClassVar[str]

    summary: ClassVar[str]
    """Two sentences: what is done, and what is drawn."""

    see: ClassVar[str]
    """A paragraph: what to see in the charts, and why."""

    article: ClassVar[int]

    said: ClassVar[str]
    """The article's own figures, in words and numbers."""

    databases: ClassVar[tuple[Database, ...]] = tuple(Database)

    variants: ClassVar[tuple[str, ...]] = ()
    """The variants of strategies that take part by default."""

    usual: ClassVar[tuple[str, ...]] = ()
    """The strategies that take part by default; if empty, all that suit."""

    full: ClassVar[Mapping[str, float]]
    """The settings of the full form."""

    quick: ClassVar[Mapping[str, float]]
    """The quick form's settings, where they differ; it takes a few seconds for each strategy."""

    def suits(self, strategy: type[Strategy]) -> bool:
        """Whether the question makes sense for a strategy, on a database that both know."""
        return not set(self.databases).isdisjoint(strategy.databases)

    def beforehand(self, settings: Mapping[str, float]) -> str | None:
        """A warning before it begins, such as how long it takes."""
        del settings
        return None

    @abstractmethod
    def samples(self, settings: Mapping[str, float]) -> int:
        """How many samples `measure` gives, about; for the progress bar."""

    @abstractmethod
    def measure(self, trial: Trial) -> Generator[S, None, None]:
        """Run one strategy on one database; a sample is given as soon as it is taken."""

    @abstractmethod
    def result(self, taken: Mapping[str, Sequence[S]], settings: Mapping[str, float]) -> Result:
        """Figures, series and charts of what was measured, by trial; some may have no sample."""


@cache
def experiments() -> Mapping[str, Experiment[Any]]:
    """All experiments by their names, in the order of the articles."""
    from rota_lab import experiments as folder

    found: list[Experiment[Any]] = []
    for module in pkgutil.iter_modules(folder.__path__):
        inside = importlib.import_module(f"{folder.__name__}.{module.name}")
        found += [
            member()
            for _, member in inspect.getmembers(inside, inspect.isclass)
            if member.__module__ == inside.__name__ and issubclass(member, Experiment)
        ]
    found.sort(key=attrgetter("article", "name"))
    return {experiment.name: experiment for experiment in found}


def experiment(name: str) -> Experiment[Any]:
    """The experiment of that name.

    Raises:
        ConfigError: There is none.
    """
    if (found := experiments().get(name)) is None:
        known = ", ".join(experiments())
        raise ConfigError(f"there is no experiment {name!r}; `rota lab list` knows: {known}")
    return found
