"""The codecs: binding and writing when a job is enqueued, reading when it runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeVar

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from rota.args import fault, signature, strict
from rota.args.alike import AlikeCodec, Row
from rota.args.fault import Fault
from rota.args.provided import Need
from rota.args.text import args_decoder, changed, reader, written
from rota.errors import ArgsError

T = TypeVar("T")

MAX_ARGS_BYTES: Final = 1_000_000
"""The default limit of a job's args as JSON: a queue is no store for files."""

_OTHER = (
    "; another version of the task may have stored it: keep old parameters, with defaults, "
    "until their jobs are done, and deploy workers before the code that enqueues"
)


class ArgsCodec:
    """How the args of one task become JSON text and come back.

    Attributes:
        context_parameter: The parameter annotated with the context class; it is no arg, and the
            worker passes it by name.
        needs: The parameters that are given resources, likewise by name.
        more: Whether the worker passes more than args: a context, or resources.
        secrets: The parameters that are annotated with `Secret`.
    """

    __slots__ = (
        "_alike", "_by_name", "_declared", "_decode", "_direct", "_extra", "_lead", "_names", "_plain", "_positional",
        "_positional_only", "_required", "_rest", "_shapes", "_subject", "context_parameter", "more",
        "needs", "secrets",
    )  # fmt: skip

    context_parameter: str | None
    needs: tuple[Need, ...]
    more: bool
    secrets: tuple[str, ...]

    def __init__(
        self,
        function: Callable[..., object],
        task: str,
        *,
        context: type | None = None,
        element: bool = False,
    ) -> None:
        """Read the signature and prepare everything that can be prepared.

        Args:
            function: What runs the jobs.
            task: The task's name, for messages.
            context: The class that marks the parameter for the job's context; `context | None`
                does so too.
            element: Whether the function takes a list, and each job has one element of it.

        Raises:
            ArgsError: The signature cannot be served.
        """
        read = signature.read(function, task, context)
        if element:
            read = signature.element(read, task)
        self.context_parameter = read.context
        self.needs = read.needs
        self.more = read.context is not None or bool(read.needs)
        parameters = read.parameters
        self.secrets = tuple(each.name for each in parameters if each.secret)
        variadic = {each.kind: each.name for each in parameters}
        self._subject = f"args of task {task!r}"
        self._lead = read.lead
        self._names = tuple(each.name for each in parameters)
        self._positional = tuple(each.name for each in parameters if each.positional)
        self._by_name = frozenset(each.name for each in parameters if each.by_name)
        self._positional_only = tuple(n for n in self._positional if n not in self._by_name)
        self._required = tuple(each.name for each in parameters if each.required)
        self._rest = variadic.get(signature.VAR_POSITIONAL)
        self._extra = variadic.get(signature.VAR_KEYWORD)
        self._declared = {each.name: each.declared for each in parameters}
        self._shapes = {each.name: each.shape for each in parameters}
        self._plain = {each.name: each.shape.plain for each in parameters}
        decoder = args_decoder(parameters)
        self._alike = AlikeCodec(parameters, decoder.decode_lines)
        self._decode = decoder.decode
        # All args are required and positional: a running job has nothing to sort out.
        plain = self._rest is None and self._extra is None
        self._direct = plain and self._lead == len(self._required) == len(self._names)

    def encode(
        self,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        *,
        limit: int | None = MAX_ARGS_BYTES,
    ) -> str:
        """Write the args of one job as a JSON object, keyed by parameter name.

        `*args` and `**kwargs` appear under their own names as a list and an object. Parameters
        that are not given are left out: the default counts that holds when the job runs.

        Args:
            args: Positional arguments, without the context.
            kwargs: Keyword arguments, without the context.
            limit: The most bytes of UTF-8 that are possible; None for no limit.

        Raises:
            ArgsError: The args do not fit the signature, would arrive changed, or are too large.
        """
        return self._write(self._bind(args, kwargs), limit, self._read)

    def encode_around(
        self,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        kind: type[T],
        *,
        limit: int | None = MAX_ARGS_BYTES,
    ) -> tuple[str, dict[str, T]]:
        """What `encode` writes but for args of this kind; and these, by parameter.

        They stand for what comes later.

        Raises:
            ArgsError: As of `encode`.
        """
        given = self._bind(args, kwargs)
        later = {name: value for name, value in given.items() if isinstance(value, kind)}
        now = {name: value for name, value in given.items() if name not in later}
        return self._write(now, limit, self._read_some if later else self._read), later

    def _write(
        self,
        given: dict[str, object],
        limit: int | None,
        read: Callable[[bytes], dict[str, object]],
    ) -> str:
        data = written(given, self._find)
        if isinstance(data, Fault):
            raise ArgsError(data.told(self._subject))
        for name, value in given.items():
            kind = type(value)
            # The hot path: scalars that the annotation names need no round trip.
            if kind not in self._plain[name] or strict.REASONS[kind](value) is not None:
                found = changed(data, given, read, self._find)
                if found is not None:
                    raise ArgsError(found.told(self._subject))
                break
        if limit is not None and len(data) > limit:
            raise ArgsError(
                f"{self._subject} are {len(data):,} bytes, the limit is {limit:,}; store the data "
                "elsewhere and pass a reference, or raise max_args_bytes"
            )
        return data.decode()

    def encode_alike(
        self, rows: Sequence[Row], *, limit: int | None = MAX_ARGS_BYTES
    ) -> list[str] | None:
        """What `encode` writes for each of many jobs, or None if one needs a closer look.

        Args:
            rows: All tuples of positional arguments, or all dicts of keyword arguments.
            limit: As of `encode`.
        """
        return self._alike.encode(rows, limit)

    @property
    def open(self) -> bool:
        """Whether a job may have args of other names, too: the function has a `**parameter`."""
        return self._extra is not None

    @property
    def required(self) -> tuple[str, ...]:
        """The parameters that every job must have an arg for."""
        return self._required

    @property
    def positional(self) -> tuple[str, ...]:
        """The parameters that can be given by position."""
        return self._positional

    def annotation(self, name: str) -> object:
        """How a parameter is annotated."""
        return self._shapes[name].annotation

    def given_as(self, name: str) -> object:
        """How a parameter is annotated in the code, `*args` and `**kwargs` apart."""
        return self._declared.get(name, Any)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that are args, in the order of declaration."""
        return self._names

    def decode(self, text: str | bytes) -> tuple[list[object], dict[str, object]]:
        """Read stored args: the positional and the keyword arguments to call the function with.

        Raises:
            ArgsError: The text is not what this version of the task would have stored.
        """
        try:
            values = astuple(self._decode(text))
        except Exception as error:  # noqa: BLE001 - validators are the user's code, and raise anything
            found = fault.of_reading(error)
        else:
            if self._direct:
                return list(values), {}
            positional: list[object] = []
            named: dict[str, object] = {}
            lead = self._lead
            for name, value in zip(self._names, values):  # noqa: B905 - hot, and equally long
                if value is UNSET:
                    lead = 0  # args behind the first gap have to go by name
                elif len(positional) < lead:
                    positional.append(value)
                else:
                    named[name] = value
            if self._rest or self._extra or self._positional_only:
                self._spread(positional, named)
            return positional, named
        raise ArgsError(found.told(self._subject) + _OTHER)

    def _bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        given: dict[str, object] = dict(zip(self._positional, args))  # noqa: B905 - hot
        if len(args) > len(given):
            if self._rest is None:
                raise ArgsError(
                    f"{self._subject}: at most {len(self._positional)} can be positional, "
                    f"{len(args)} were given; leave some out, or pass them by name{self._not_given}"
                )
            given[self._rest] = list(args[len(given) :])
        if kwargs:
            extra: dict[str, object] = {}
            for name, value in kwargs.items():
                if name in self._by_name and name not in given:
                    given[name] = value
                else:
                    self._check_extra(name)
                    extra[name] = value
            if extra and self._extra is not None:
                given[self._extra] = extra
        for name in self._required:
            if name not in given:
                raise ArgsError(
                    f"{self._subject}: `{name}` is missing; pass it, or give it a default"
                )
        return given

    @property
    def _not_given(self) -> str:
        names = ", ".join(f"`{need.name}`" for need in self.needs)
        return f" ({names}: passed by the worker)" if names else ""

    def _check_extra(self, name: str) -> None:
        if name == self.context_parameter:
            reason = "is the context, which Rota passes; leave it out"
        elif any(name == need.name for need in self.needs):
            reason = "is a resource, which the worker passes and no database stores; leave it out"
        elif name in self._by_name:
            reason = "is given twice, by position and by name; leave one out"
        elif self._extra is not None:
            return
        elif name in self._positional_only:
            reason = "is positional-only; pass it by position"
        else:
            known = ", ".join(self._names) or "none"
            reason = (
                f"is not a parameter; leave it out, or write using({name}=…) for an option of the job "
                f"(parameters: {known})"
            )
        raise ArgsError(f"{self._subject}: `{name}` {reason}")

    def _read(self, text: bytes) -> dict[str, object]:
        return dict(zip(self._names, msgspec.structs.astuple(self._decode(text)), strict=True))

    def _read_some(self, text: bytes) -> dict[str, object]:
        """Read args of which some are still to come."""
        raw = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        return {name: reader(self._shapes[name].annotation)(value) for name, value in raw.items()}

    def _find(self, given: dict[str, object], arrived: dict[str, object]) -> Fault | None:
        for name, value in given.items():
            found = self._shapes[name].comparison.fault(value, arrived[name])
            if found is not None:
                return found.below(f".{name}")
        return None

    def _spread(self, positional: list[object], named: dict[str, object]) -> None:
        """Spread `*args` and `**kwargs`, which is impossible with some text written by hand."""
        rest = named.pop(self._rest, None) if self._rest else None
        if rest:
            if len(positional) < len(self._positional):
                self._refuse(f"`{self._rest}` is given, but not all parameters before it")
            positional.extend(rest)  # type: ignore[arg-type]
        for name in self._positional_only[len(positional) :]:
            if name in named:
                self._refuse(f"`{name}` is positional-only, and a parameter before it is missing")
        extra = named.pop(self._extra, None) if self._extra else None
        if extra:
            for name in extra:  # type: ignore[attr-defined]
                taken = (self.context_parameter, *(need.name for need in self.needs))
                if name in self._by_name or name in taken:
                    self._refuse(f"`{self._extra}` holds the name of another parameter")
            named.update(extra)  # type: ignore[call-overload]

    def _refuse(self, reason: str) -> NoReturn:
        raise ArgsError(f"{self._subject}: {reason}{_OTHER}")


class ResultCodec:
    """How the result of a task, or another value, becomes JSON text and comes back."""

    __slots__ = ("_comparison", "_decode", "_subject")

    def __init__(self, annotation: object, task: str | None = None) -> None:
        """Prepare for one return annotation.

        Args:
            annotation: Resolved, not a string; `inspect.Signature.empty` counts as `Any`.
            task: The task's name, for messages; without it, the caller says what they are about.

        Raises:
            ArgsError: Results of that type cannot be stored.
        """
        self._subject = "" if task is None else f"result of task {task!r}"
        shape = signature.shape_of(annotation, self._subject or "the result of a step")
        self._comparison = shape.comparison
        self._decode = reader(shape.annotation)

    def encode(self, value: object) -> str:
        """Write a result as JSON text.

        Raises:
            ArgsError: It does not fit the annotation, or would come back changed.
        """
        compare = self._comparison.fault
        data = written(value, compare)
        if isinstance(data, Fault):
            raise ArgsError(data.told(self._subject))
        found = changed(data, value, self._decode, compare)
        if found is not None:
            raise ArgsError(found.told(self._subject))
        return data.decode()

    def decode(self, text: str | bytes) -> object:
        """Read a stored result.

        Raises:
            ArgsError: The text is not what this version of the task would have stored.
        """
        try:
            return self._decode(text)
        except Exception as error:  # noqa: BLE001 - as in ArgsCodec.decode
            found = fault.of_reading(error)
        raise ArgsError(
            f"{found.told(self._subject)}; another version of the task may have stored it"
        )
