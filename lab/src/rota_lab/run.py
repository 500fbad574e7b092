"""Running an experiment on strategies and databases, to a report."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rota.errors import ConfigError, RotaError, StoreUnavailable
from rota.measure.processes import ProcessEnded
from rota.measure.reports.report import Report, Result, report
from rota.measure.reports.surroundings import surroundings
from rota.terminal.progress import Progress
from rota_lab.databases import Database
from rota_lab.experiment import Experiment
from rota_lab.queue import Trial
from rota_lab.servers import Servers
from rota_lab.strategy import Strategy, strategies, strategy


@dataclass(slots=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        result: Figures, series and charts.
        report: The result with its surroundings.
        left_out: Strategies that could not take part, and why.
        error: What ended the run early; None if it is complete.
    """

    result: Result
    report: Report
    left_out: Mapping[str, str] = field(default_factory=dict)
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """How an experiment is run: "quick" or "full", and with which settings."""

    name: str
    settings: Mapping[str, float]


def form(
    experiment: Experiment[Any],
    names: Sequence[str],
    *,
    quick: bool,
    given: Mapping[str, float],
) -> Form:
    """The form of a run; `given` are settings of the experiment, or of strategies in it.

    Raises:
        ConfigError: A strategy or a setting is unknown.
    """
    chosen = [strategy(name) for name in names] or list(strategies().values())
    known = {*experiment.full, *(name for design in chosen for name in design.defaults)}
    if unknown := sorted(given.keys() - known):
        raise ConfigError(
            f"there is no setting {unknown[0]!r} here; --set knows: {', '.join(sorted(known))}"
        )
    settings = {**experiment.full, **(experiment.quick if quick else {}), **given}
    return Form("quick" if quick else "full", settings)


def choose(
    experiment: Experiment[Any], names: Sequence[str], databases: frozenset[Database]
) -> list[tuple[type[Strategy], Database]]:
    """The strategies that take part, each with a database.

    Args:
        experiment: The question.
        names: The strategies of the command line; empty for all that suit.
        databases: The kinds that may be used.

    Raises:
        ConfigError: A strategy is unknown or does not suit, or none is left.
    """
    if names:
        chosen = [strategy(name) for name in dict.fromkeys(names)]
    else:
        chosen = [
            design
            for design in strategies().values()
            if experiment.suits(design)
            and (not design.variant or design.name in experiment.variants)
            and (not experiment.usual or design.name in experiment.usual)
        ]
    found = []
    for design in chosen:
        common = [kind for kind in design.databases if kind in experiment.databases]
        usable = [kind for kind in common if kind in databases]
        if names and not (usable and experiment.suits(design)):
            raise ConfigError(_unsuited(experiment, design, common))
        found += [(design, kind) for kind in usable]
    if not found:
        kinds = " or ".join(kind.title for kind in experiment.databases)
        raise ConfigError(f"no strategy is left: {experiment.name} runs on {kinds}; see --database")
    return found


def _unsuited(
    experiment: Experiment[Any], design: type[Strategy], common: Sequence[Database]
) -> str:
    if not common or not experiment.suits(design):
        return f"the experiment {experiment.name} does not suit {design.name}; leave it out"
    kinds = " or ".join(kind.title for kind in common)
    return f"{design.name} runs on {kinds} in {experiment.name}; name such a --database"


def run(
    experiment: Experiment[Any],
    names: Sequence[str],
    servers: Servers,
    form: Form,
    progress: Progress,
) -> Outcome:
    """Run an experiment. An interruption, or the loss of a server, keeps what was measured by then.

    Raises:
        ConfigError: It cannot be run in this form.
        StoreUnavailable: A server cannot be reached at the beginning.
    """
    settings = form.settings
    trials, left_out = _trials(experiment, names, servers, settings)
    taken: dict[str, list[Any]] = {}
    error: BaseException | None = None
    try:
        for trial in trials:
            samples = taken.setdefault(trial.label, [])
            progress.begin(trial.label, experiment.samples(settings))
            with contextlib.closing(experiment.measure(trial)) as measured:
                for sample in measured:
                    samples.append(sample)
                    progress.at(len(samples))
    except (KeyboardInterrupt, StoreUnavailable, ProcessEnded) as ended:
        error = ended
    result = experiment.result(taken, settings)
    notes = [*result.notes, *(f"{name} is left out: {why}" for name, why in left_out.items())]
    if isinstance(error, RotaError):
        notes.append(f"The run ended early: {error}")
    stopped_by = None if error is None else str(error) or "Ctrl-C"
    result = replace(result, notes=tuple(notes), stopped_by=stopped_by)
    made = report(
        experiment.name,
        experiment.question,
        {"form": form.name, "strategies": ", ".join(taken), **settings},
        result,
        surroundings(*servers.facts()),
    )
    return Outcome(result, made, left_out, error)


def _trials(
    experiment: Experiment[Any],
    names: Sequence[str],
    servers: Servers,
    settings: Mapping[str, float],
) -> tuple[list[Trial], dict[str, str]]:
    """The trials, and the strategies that cannot run, with the reason; starts private servers."""
    trials: list[Trial] = []
    left_out: dict[str, str] = {}
    for design, database in choose(experiment, names, servers.databases):
        trial = Trial(design, database, settings, servers)
        missing = servers.missing(database, redis=design.redis) or design.lacking(
            partial(servers.connect, database)
        )
        if missing is None:
            trials.append(trial)
        elif names:
            raise ConfigError(f"{trial.label} cannot run: {missing}")
        else:
            left_out[trial.label] = missing
    if not trials:
        raise ConfigError("no strategy can run here: " + "; ".join({*left_out.values()}))
    return trials, left_out
