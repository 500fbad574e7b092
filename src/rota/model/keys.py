"""Keys of jobs: text made of their args, by which they are told apart, limited or kept fair.

A template such as `"tenant:{tenant}"` names parameters of the task. They are replaced by what the
stored JSON says, so that SQL can make the same key: text as it is, numbers and `true` and `false`
as JSON writes them, and nothing for `null`. A parameter that was not given counts with its default.
"""

import inspect
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import repeat
from typing import Final

import msgspec

from rota.args.provided import is_provided
from rota.args.strict import all_fine
from rota.errors import ArgsError, ConfigError
from rota.model.job import Keys
from rota.model.options import JobOptions
from rota.model.unique import OnConflict, Unique

SLICE = 1000
"""Jobs whose args are read at once."""

LONGEST_KEY = 500
"""Characters a key may have."""

_TEXT: Final = frozenset({str})

_UNSTORABLE = "which no database can hold; remove it"


class KeyTemplate:
    """Makes the keys of one task's jobs.

    Args:
        text: With the names of parameters in braces; `{{` is a brace.
        function: The task's function.
        what: Which option it is, for messages.
        context: The parameter that is no argument of its jobs, if there is one.
        exact: Different values always make different keys: text that could be mistaken for
            something else is written as JSON.

    Raises:
        ConfigError: It is empty, cannot be read or stored, or names something that is no single
            argument.
    """

    __slots__ = ("_defaults", "_exact", "_parts", "names", "text", "what")

    def __init__(
        self,
        text: str,
        function: Callable[..., object],
        what: str,
        *,
        context: str | None = None,
        exact: bool = False,
    ) -> None:
        if not isinstance(text, str) or not text.strip():
            message = f"{what}: must be a key such as 'tenant:{{tenant}}', not {text!r}"
            raise ConfigError(message)
        if not storable(text):
            message = f"{what}: {text!r} contains a NUL or a lone surrogate, {_UNSTORABLE}"
            raise ConfigError(message)
        self.text = text
        self.what = what
        self._exact = exact
        self._parts = _parts(text, what)
        self.names = tuple(dict.fromkeys(name for _, name in self._parts if name is not None))
        single = _single(function, context)
        for name in self.names:
            if name not in single:
                known = ", ".join(single) or "none"
                message = (
                    f"{what}: {text!r} names {name!r}, which is not an argument of the task "
                    f"(its arguments: {known})"
                )
                raise ConfigError(message)
        self._defaults = {
            name: _plain(parameter.default)
            for name, parameter in single.items()
            if name in self.names and parameter.default is not parameter.empty
        }

    def key(self, args: str) -> str:
        """The key of a job with these args (JSON text).

        Raises:
            ArgsError: A named argument is a list or an object, or the key is empty, too long or
                cannot be stored.
        """
        if not self.names:
            return self._checked("".join(fixed for fixed, _ in self._parts))
        values: Mapping[str, object] = self._defaults | msgspec.json.decode(args)
        key = "".join(
            fixed if name is None else fixed + self._text(name, values.get(name))
            for fixed, name in self._parts
        )
        return self._checked(key)

    def keys(self, args: Sequence[str]) -> list[str] | None:
        """The keys of many jobs with these args, or None if one of them cannot be made.

        It is `key` for each, with as much as possible done for all at once.
        """
        if not self.names:
            return [self.key("")] * len(args)
        keys: list[str] = []
        for start in range(0, len(args), SLICE):
            found = self._slice(args[start : start + SLICE])
            if not all_fine(found, _TEXT) or not min(map(len, found)) > 0:
                return None
            if max(map(len, found)) > LONGEST_KEY:
                return None
            keys += found
        return keys

    def _slice(self, args: Sequence[str]) -> list[str]:
        rows: list[dict[str, object]] = msgspec.json.decode(f"[{','.join(args)}]")
        parts: list[Iterable[str]] = []
        for fixed, name in self._parts:
            parts.append(repeat(fixed))
            if name is not None:
                default = self._defaults.get(name)
                values = [row.get(name, default) for row in rows]
                # As `_text` does for each.
                whole = set(map(type, values)) == {int}
                parts.append(
                    map(str, values) if whole else [self._text(name, value) for value in values]
                )
        return list(map("".join, zip(*parts, strict=False)))

    def _text(self, name: str, value: object) -> str:
        match value:
            case str():
                return _quoted(value) if self._exact else value
            case None:
                return "null" if self._exact else ""
            case bool() | int() | float():
                return msgspec.json.encode(value).decode()
            case _:
                message = (
                    f"{self.what}: {name!r} is a {type(value).__name__}; only text, numbers, "
                    "true and false can be part of a key"
                )
                raise ArgsError(message)

    def _checked(self, key: str) -> str:
        if not 0 < len(key) <= LONGEST_KEY:
            message = (
                f"{self.what}: the key made of {self.text!r} has {len(key)} characters; "
                f"it must have 1 to {LONGEST_KEY}"
            )
            raise ArgsError(message)
        if not storable(key):
            message = (
                f"{self.what}: the key {key!r} contains a NUL or a lone surrogate, {_UNSTORABLE}"
            )
            raise ArgsError(message)
        return key


def storable(text: str) -> bool:
    """Whether every database can hold this text: without NUL, and without lone surrogates."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _quoted(value: str) -> str:
    """Text as it is, or as JSON where it could be mistaken: `a,b=1`, `7`, `null`."""
    plain = value and not set(value) & {",", '"', "\\"}
    try:
        msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value if plain else msgspec.json.encode(value).decode()
    return msgspec.json.encode(value).decode()


def _parts(text: str, what: str) -> list[tuple[str, str | None]]:
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        message = f"{what}: {text!r} cannot be read ({error}); write {{{{ for a brace"
        raise ConfigError(message) from error
    for _, name, format_spec, conversion in parts:
        if name is not None and (format_spec or conversion or not name.isidentifier()):
            message = (
                f"{what}: {text!r} may only have names of arguments between braces; "
                "write {{ for a brace"
            )
            raise ConfigError(message)
    return [(fixed, name) for fixed, name, _, _ in parts]


def _single(function: Callable[..., object], context: str | None) -> dict[str, inspect.Parameter]:
    """The parameters that hold one argument each."""
    several = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    parameters = inspect.signature(function).parameters
    return {
        name: one
        for name, one in parameters.items()
        if one.kind not in several and name != context and not is_provided(one)
    }


def _plain(value: object) -> object:
    try:
        return msgspec.to_builtins(value)
    except (TypeError, NotImplementedError):
        return value


class Keying:
    """Makes the keys of a task's jobs, for those options that ask for some.

    Raises:
        ConfigError: A template names something that is no argument of the task.
    """

    __slots__ = ("_fair", "_fault", "_limit", "_unique")

    def __init__(
        self,
        options: JobOptions,
        function: Callable[..., object],
        task: str,
        context: str | None = None,
    ) -> None:
        unique, limit = options.unique, options.limit
        self._fault: str | None = None
        self._unique: KeyTemplate | None = None
        if isinstance(unique, Unique):
            what = f"unique of task {task!r}"
            self._unique = KeyTemplate(
                unique.template, function, what, context=context, exact=unique.key is None
            )
            if unique.on_conflict == OnConflict.DEBOUNCE and not options.delay:
                self._fault = (
                    f"{what}: debounce needs to know how long to wait for the next enqueue; "
                    "give it with .using(delay=30)"
                )
        # A task's own limit has the task's name; braces in it mean nothing.
        own = f"task:{task}".replace("{", "{{").replace("}", "}}")
        self._limit = (
            KeyTemplate(
                own if limit.key is None else limit.key,
                function,
                f"limit of task {task!r}",
                context=context,
            )
            if limit is not None
            else None
        )
        self._fair = (
            KeyTemplate(options.fair, function, f"fair of task {task!r}", context=context)
            if options.fair is not None
            else None
        )

    @property
    def templates(self) -> tuple[KeyTemplate, ...]:
        """The templates of the keys that its jobs have."""
        return tuple(one for one in (self._unique, self._limit, self._fair) if one is not None)

    def keys(self, args: Sequence[str]) -> Keys:
        """The keys of jobs with these args (JSON texts).

        Raises:
            ArgsError: A key cannot be made; the message says of which job, if there are several.
            ConfigError: An option is missing that the keys' use needs.
        """
        if self._fault is not None:
            raise ConfigError(self._fault)
        return Keys(*(_keys(one, args) for one in (self._unique, self._limit, self._fair)))


def _keys(template: KeyTemplate | None, args: Sequence[str]) -> list[str] | None:
    if template is None:
        return None
    if len(args) > 1:
        with suppress(ArgsError):
            if (made := template.keys(args)) is not None:
                return made
    keys: list[str] = []
    for number, text in enumerate(args):
        try:
            keys.append(template.key(text))
        except ArgsError as error:
            if len(args) == 1:
                raise
            message = f"job {number} of enqueue_many: {error}"
            raise ArgsError(message) from None
    return keys
