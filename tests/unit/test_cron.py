"""When cron entries are due."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rota.cron.entry import CronEntry, Missed, check_missed
from rota.cron.jobs import CronOptions, delay, job, options_of, spec_of, with_options
from rota.cron.plan import ON_TIME, Plan, in_zone, next_due, plan
from rota.cron.times import NICKNAMES, check_expression, check_timezone, due_times
from rota.errors import ConfigError
from rota.model.job import Keys
from rota.model.limit import Limit
from rota.model.unique import Unique

ROME = "Europe/Rome"
NEW_YORK = "America/New_York"
LORD_HOWE = "Australia/Lord_Howe"

MANY = 10_000


def at(text: str) -> datetime:
    """A moment."""
    return datetime.fromisoformat(text)


def due(expression: str, timezone: str, after: str, count: int = 4) -> list[str]:
    """The next due times, as texts with their offsets."""
    found = due_times(expression, timezone, at(after))
    return [moment.isoformat() for moment in itertools.islice(found, count)]


def entry(expression: str, **options: object) -> CronEntry:
    return CronEntry(**{"name": "e", "task": "t", "expression": expression, **options})  # type: ignore[arg-type]


# Expressions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/20 * * * *", ["2026-01-01T00:20:00+00:00", "2026-01-01T00:40:00+00:00"]),
        ("0 9 * * MON-FRI", ["2026-01-01T09:00:00+00:00", "2026-01-02T09:00:00+00:00",
                             "2026-01-05T09:00:00+00:00"]),
        ("*/30 0 12 * * *", ["2026-01-01T12:00:00+00:00", "2026-01-01T12:00:30+00:00",
                             "2026-01-02T12:00:00+00:00"]),
        ("0 0 L * *", ["2026-01-31T00:00:00+00:00", "2026-02-28T00:00:00+00:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00:00+00:00", "2032-02-29T00:00:00+00:00"]),
        ("0 0 31 * *", ["2026-01-31T00:00:00+00:00", "2026-03-31T00:00:00+00:00"]),
    ],
)  # fmt: skip
def test_expressions(expression: str, expected: list[str]) -> None:
    """Five fields, six fields, names, last days, leap days."""
    assert check_expression(expression) == expression
    assert due(expression, "UTC", "2026-01-01T00:00:00+00:00", len(expected)) == expected


@pytest.mark.parametrize("word", sorted(NICKNAMES))
def test_words(word: str) -> None:
    """A word means the expression it stands for, however it is written."""
    start = "2026-05-05T05:05:05+00:00"
    assert due(word.upper(), ROME, start, 3) == due(NICKNAMES[word], ROME, start, 3)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("0 0 30 2 *", "bad day-of-month"),
        ("0 0 */30 2 MON#5", "never comes"),
        ("60 * * * *", "bad minute"),
        ("* 24 * * *", "bad hour"),
        ("* * * * FRI-MON", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("* * * *", "five fields"),
        ("* * * * * * *", "five fields"),
        ("", "five fields"),
        ("@noon", "@daily"),
        ("@reboot", "@daily"),
        ("9" * 5000 + " * * * *", "characters"),
        (7, "must be a str"),
    ],
)
def test_impossible_expressions(expression: str, said: str) -> None:
    """The message says what is wrong."""
    with pytest.raises(ConfigError, match="expression: ") as refused:
        check_expression(expression)
    assert said in str(refused.value)


@given(st.text(alphabet="0123456789*/-,#LWMONJA @", max_size=30))
@example("0 0 * * MON#1/2")
@example("1#1 * * * *")
def test_anything_that_is_no_expression(text: str) -> None:
    """Any text is an expression or a clear error, and nothing else."""
    try:
        check_expression(text)
    except ConfigError as error:
        assert str(error).startswith("expression: ")  # noqa: PT017 - most texts are refused


@pytest.mark.parametrize(
    ("timezone", "said"),
    [("Europe/Roma", "Europe/Rome"), ("europe/rome", "Europe/Rome"), ("Europe", "Europe/"),
     ("../etc/passwd", "such as"), ("", "such as"), ("CEST", "timezone"), ("a\0b", "timezone")],
)  # fmt: skip
def test_unknown_zones(timezone: str, said: str) -> None:
    """The message has a name that exists."""
    with pytest.raises(ConfigError, match=said):
        check_timezone(timezone)


def test_a_naive_moment() -> None:
    """A moment without a time zone is refused at the call, before the first due time is taken."""
    with pytest.raises(ConfigError, match="after: this datetime has no time zone"):
        due_times("@daily", ROME, at("2026-01-01T00:00"))


def test_an_unknown_zone_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers ask at each try to make its jobs: the answer is not computed anew."""
    with pytest.raises(ConfigError, match="Rome"):
        check_timezone("Europe/Rom")
    monkeypatch.delattr("rota.cron.times.available_timezones")
    with pytest.raises(ConfigError, match="Rome"):
        check_timezone("Europe/Rom")


@pytest.mark.parametrize("timezone", [None, 1, ["UTC"], ZoneInfo("UTC")])
def test_a_zone_is_a_name(timezone: Any) -> None:
    """Anything else is refused, even a `ZoneInfo`."""
    with pytest.raises(ConfigError, match="timezone: must be a str"):
        check_timezone(timezone)


def test_missed_is_one_of_three_words() -> None:
    """Another word is refused."""
    assert check_missed("all") is Missed.ALL
    with pytest.raises(ConfigError, match="skip, latest, all"):
        check_missed("some")


# Clocks that are moved ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timezone", "expression", "after", "expected"),
    [
        # The hour from 2 to 3 does not exist: at its end, once.
        (ROME, "30 2 * * *", "2026-03-28T12:00:00+01:00",
         ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]),
        (NEW_YORK, "30 2 * * *", "2026-03-07T12:00:00-05:00",
         ["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"]),
        (LORD_HOWE, "15 2 * * *", "2026-10-03T12:00:00+10:30",
         ["2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"]),
        # Six fields alike.
        (ROME, "10 30 2 * * *", "2026-03-28T12:00:00+01:00",
         ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:10+02:00"]),
        # Two of its times are in the gap, and a third one at its end.
        (ROME, "0,30 2,3 * * *", "2026-03-29T00:00:00+01:00",
         ["2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00", "2026-03-30T02:00:00+02:00"]),
        # An expression with a star has nothing to catch up.
        (ROME, "*/30 * * * *", "2026-03-29T01:00:00+01:00",
         ["2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"]),
        (ROME, "15 * * * *", "2026-03-29T01:00:00+01:00",
         ["2026-03-29T01:15:00+01:00", "2026-03-29T03:15:00+02:00"]),
        (LORD_HOWE, "*/10 3 * * *", "2026-10-03T12:00:00+10:30",
         ["2026-10-04T03:00:00+11:00", "2026-10-04T03:10:00+11:00"]),
        # Midnight itself does not exist.
        ("Africa/Cairo", "@daily", "2026-04-23T12:00:00+02:00",
         ["2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"]),
        ("Africa/Cairo", "*/30 0 * * *", "2026-04-23T12:00:00+02:00",
         ["2026-04-25T00:00:00+03:00", "2026-04-25T00:30:00+03:00"]),
    ],
)  # fmt: skip
def test_the_clock_is_put_forward(
    timezone: str, expression: str, after: str, expected: list[str]
) -> None:
    """Named times in the gap are due at its end, once; the rest goes on."""
    assert due(expression, timezone, after, len(expected)) == expected


@pytest.mark.parametrize(
    ("timezone", "expression", "after", "expected"),
    [
        # The hour from 2 to 3 comes twice: the first time counts.
        (ROME, "30 2 * * *", "2026-10-24T12:00:00+02:00",
         ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
        (ROME, "30 2 * * *", "2026-10-25T02:40:00+02:00", ["2026-10-26T02:30:00+01:00"]),
        (ROME, "30 2 * * *", "2026-10-25T02:10:00+01:00", ["2026-10-26T02:30:00+01:00"]),
        (ROME, "0 30 2 * * *", "2026-10-25T02:30:00+02:00", ["2026-10-26T02:30:00+01:00"]),
        (NEW_YORK, "30 1 * * *", "2026-10-31T12:00:00-04:00",
         ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"]),
        (LORD_HOWE, "45 1 * * *", "2026-04-04T12:00:00+11:00",
         ["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"]),
        # An expression with a star is due both times.
        (ROME, "*/30 * * * *", "2026-10-25T01:40:00+02:00",
         ["2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00",
          "2026-10-25T02:30:00+01:00", "2026-10-25T03:00:00+01:00"]),
        (ROME, "*/30 * * * *", "2026-10-25T02:59:59+02:00",
         ["2026-10-25T02:00:00+01:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:00:00+01:00"]),
        (ROME, "*/30 * * * *", "2026-10-25T02:10:00+01:00",
         ["2026-10-25T02:30:00+01:00", "2026-10-25T03:00:00+01:00"]),
        (LORD_HOWE, "*/15 * * * *", "2026-04-05T01:40:00+11:00",
         ["2026-04-05T01:45:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-05T01:45:00+10:30",
          "2026-04-05T02:00:00+10:30"]),
    ],
)  # fmt: skip
def test_the_clock_is_put_back(
    timezone: str, expression: str, after: str, expected: list[str]
) -> None:
    """Named times are due the first time; expressions with a star are due both times."""
    assert due(expression, timezone, after, len(expected)) == expected


EXPRESSIONS = [
    "* * * * * *", "*/7 * * * *", "15 * * * *", "30 2 * * *", "5,35 1-3 * * *", "0 0 2 * * *",
    "*/10 2 * * *", "@daily", "0 0 1 * *", "0 3 * * SUN",
]  # fmt: skip
ZONES = ["UTC", ROME, NEW_YORK, LORD_HOWE, "Africa/Cairo", "America/Havana", "Asia/Kathmandu"]
CHANGES = [
    at("2026-03-29T01:00:00+00:00"), at("2026-10-25T01:00:00+00:00"),
    at("2026-03-08T07:00:00+00:00"), at("2026-11-01T06:00:00+00:00"),
    at("2026-10-03T15:30:00+00:00"), at("2026-04-04T15:00:00+00:00"),
    at("2026-04-23T22:00:00+00:00"), at("2026-03-08T05:00:00+00:00"),
]  # fmt: skip
"""When the clocks of these zones are moved."""

moments = st.one_of(
    st.builds(lambda change, offset: change + timedelta(seconds=offset),
              st.sampled_from(CHANGES), st.integers(-3 * 3600, 3 * 3600)),
    st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)  # fmt: skip
expressions, zones = st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES)


@given(expressions, zones, moments)
def test_due_times_rise(expression: str, timezone: str, after: datetime) -> None:
    """Each due time is later than the one before, and none is left out on the way to it."""
    found = list(itertools.islice(due_times(expression, timezone, after), 20))
    instants = [after.astimezone(UTC), *(moment.astimezone(UTC) for moment in found)]
    assert all(earlier < later for earlier, later in itertools.pairwise(instants))
    # From any due time on the rest is the same, wherever the search began.
    for number, start in enumerate(instants[1:], 1):
        rest = itertools.islice(due_times(expression, timezone, start), 20 - number)
        assert [moment.astimezone(UTC) for moment in rest] == instants[number + 1 :]


@given(st.sampled_from([text for text in EXPRESSIONS if text.startswith("*")]), zones, moments)
def test_an_expression_with_a_star_is_due_as_the_wall_clock_says(
    expression: str, timezone: str, after: datetime
) -> None:
    """Every minute of three hours is due if, and only if, the wall clock matches."""
    assume(len(expression.split()) == 5)
    zone = ZoneInfo(timezone)
    start = after.astimezone(UTC).replace(second=0, microsecond=0)
    minutes = [start + timedelta(minutes=number) for number in range(1, 180)]
    minute, hour = expression.split()[:2]
    step = int(minute.partition("/")[2])
    expected = [
        moment for moment in minutes
        if moment.astimezone(zone).minute % step == 0
        and hour in {"*", str(moment.astimezone(zone).hour)}
    ]  # fmt: skip
    found = itertools.takewhile(
        lambda moment: moment <= minutes[-1], due_times(expression, timezone, start)
    )
    assert [moment.astimezone(UTC) for moment in found] == expected


# Missed runs -------------------------------------------------------------------------------------

NOON = at("2026-01-01T12:00:00+00:00")


def hours(*numbers: float) -> tuple[datetime, ...]:
    """So many hours after noon."""
    return tuple(NOON + timedelta(hours=number) for number in numbers)


@pytest.mark.parametrize("missed", Missed)
def test_what_is_on_time_is_made(missed: Missed) -> None:
    """A few seconds late is on time, whatever `missed` says."""
    hourly = entry("@hourly", missed=missed)
    now = NOON + timedelta(hours=1, seconds=ON_TIME)
    assert plan(hourly, NOON, now, MANY) == Plan(hours(1), None, now, *hours(2))


@pytest.mark.parametrize(
    ("missed", "make", "first"),
    [("skip", (), 1), ("latest", (3,), 1), ("all", (1, 2, 3), None)],
)
def test_missed_runs(missed: str, make: tuple[float, ...], first: float | None) -> None:
    """No job, one for all, or each its own; the first due time without a job is told."""
    hourly = entry("@hourly", missed=Missed(missed))
    [now] = hours(3.5)
    expected = Plan(hours(*make), None if first is None else hours(first)[0], now, *hours(4))
    assert plan(hourly, NOON, now, MANY) == expected


@pytest.mark.parametrize(("missed", "first"), [("skip", 1), ("latest", 1), ("all", None)])
def test_missed_runs_before_one_that_is_on_time(missed: str, first: float | None) -> None:
    """A run that is on time stands for the missed ones, but for `all`."""
    [now] = hours(3)
    planned = plan(entry("@hourly", missed=Missed(missed)), NOON, now, MANY)
    assert planned.make == hours(1, 2, 3)[-3 if missed == "all" else -1 :]
    assert planned.missed == (None if first is None else hours(first)[0])


def test_nothing_is_due() -> None:
    """Before the next due time nothing happens."""
    [later] = hours(0.5)
    assert plan(entry("@hourly"), NOON, later, MANY) == Plan((), None, NOON, *hours(1))


def test_all_of_many() -> None:
    """Many missed runs are made in several steps, each once and in their order."""
    each = entry("@hourly", missed=Missed.ALL)
    [now] = hours(100.5)
    since = NOON
    made: list[datetime] = []
    while (planned := plan(each, since, now, 7)).make:
        assert len(planned.make) <= 7
        made += planned.make
        since = planned.since
        assert planned.due == NOON + timedelta(hours=len(made) + 1)
    assert tuple(made) == hours(*range(1, 101))


@pytest.mark.parametrize("expression", ["* * * * * *", "*/7 * * * *", "0 0 29 2 *"])
@pytest.mark.parametrize("missed", [Missed.SKIP, Missed.LATEST])
def test_a_worker_that_was_away_for_years(expression: str, missed: Missed) -> None:
    """Millions of missed runs are not counted through."""
    each = entry(expression, missed=missed)
    now = at("2031-05-05T00:00:03+00:00")
    planned = plan(each, at("2021-01-01T00:00:00+00:00"), now, MANY)
    assert planned.since == now
    assert planned.missed == next_due(each, at("2021-01-01T00:00:00+00:00"))
    newest = {"* * * * * *": now, "*/7 * * * *": at("2031-05-05T00:00:00+00:00"),
              "0 0 29 2 *": at("2028-02-29T00:00:00+00:00")}[expression]  # fmt: skip
    late = expression == "0 0 29 2 *"
    assert planned.make[-1:] == (() if late and missed is Missed.SKIP else (newest,))


@given(
    expression=expressions, timezone=zones, start=moments, missed=st.sampled_from(Missed),
    waits=st.lists(st.integers(0, 5000), min_size=1, max_size=4), most=st.integers(1, 20),
)  # fmt: skip
@settings(max_examples=50)
def test_however_often_a_worker_looks(
    *,
    expression: str,
    timezone: str,
    start: datetime,
    missed: Missed,
    waits: list[int],
    most: int,
) -> None:
    """No due time gets two jobs; under `all` none is left out; the next due time is right."""
    each = entry(expression, timezone=timezone, missed=missed)
    since, now = start, start
    made: list[datetime] = []
    for wait in waits:
        now += timedelta(seconds=wait)
        for _ in range(20):
            planned = plan(each, since, now, most)
            made += planned.make
            assert since <= planned.since <= now
            since = planned.since
            assert planned.due == next_due(each, since)
            if not planned.make:
                break
    assert all(earlier < later for earlier, later in itertools.pairwise(made))
    all_of_them = itertools.takewhile(
        lambda moment: moment <= since, due_times(expression, timezone, start)
    )
    expected = [moment.astimezone(UTC) for moment in all_of_them]
    if missed is Missed.ALL:
        assert made == expected
    assert set(made) <= set(expected)


# Jobs --------------------------------------------------------------------------------------------


def test_a_job_has_what_the_entry_says() -> None:
    """Options and args, unchanged."""
    each = entry("@daily", queue="mail", priority=3, max_attempts=2, timeout=9.0, args='{"n":1.50}')
    spec, args = job(each, NOON, NOON)
    assert (spec.task, spec.queue, spec.priority, spec.max_attempts) == ("t", "mail", 3, 2)
    assert (spec.timeout, spec.at, spec.delay, args) == (9.0, None, None, '{"n":1.50}')


def test_a_job_may_know_its_due_time() -> None:
    """The due time is by the entry's clock; the other args stay as they were written."""
    each = entry("@daily", timezone=ROME, due="when", args='{"n":1.50,"big":12345678901234567890}')
    _, args = job(each, NOON, NOON)
    assert args == '{"n":1.50,"big":12345678901234567890,"when":"2026-01-01T13:00:00+01:00"}'


@given(st.floats(0, 1e6), moments)
def test_jitter(jitter: float, when: datetime) -> None:
    """Jitter is below its bound, and the same in every time zone."""
    each = entry("@daily", jitter=jitter)
    waits = delay(each, when)
    assert 0 <= waits <= jitter
    assert delay(each, when.astimezone(ZoneInfo(ROME))) == waits


def test_jitter_spreads() -> None:
    """Entries and due times differ."""
    days = [NOON + timedelta(days=number) for number in range(200)]
    names = [entry("@daily", name=f"e{number}", jitter=60.0) for number in range(200)]
    for waits in ([delay(names[0], day) for day in days], [delay(name, NOON) for name in names]):
        assert len({round(wait, 6) for wait in waits}) == 200
        assert min(waits) < 6
        assert max(waits) > 54


def test_jitter_delays_a_job() -> None:
    """A job that would have started by now starts at once."""
    each = entry("@daily", jitter=60.0)
    start = NOON + timedelta(seconds=delay(each, NOON))
    assert job(each, NOON, NOON)[0].at == start
    assert job(each, NOON, start)[0].at is None


def test_a_zone_that_this_machine_does_not_know() -> None:
    """Its moments are shown in UTC."""
    assert in_zone(NOON, entry("@daily", timezone="Mars/Base")) == NOON
    assert in_zone(NOON, entry("@daily", timezone=ROME)).isoformat() == "2026-01-01T13:00:00+01:00"


def test_a_declaration_is_the_whole_entry() -> None:
    """Entries that differ in anything have different declarations."""
    daily = entry("@daily")
    assert daily.declaration == entry("@daily").declaration
    assert daily.declaration != entry("@daily", jitter=1.0).declaration
    other = entry("@daily", options="{}")
    assert set(msgspec.json.decode(other.declaration)) == set(CronEntry.__dataclass_fields__)
    # An entry without options is declared as it was before there were options.
    assert set(msgspec.json.decode(daily.declaration)) == {*CronEntry.__dataclass_fields__} - {
        "options"
    }


# Options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "given"),
    [({}, (False, False)), ({"max_attempts": 3}, (True, False)), ({"timeout": 2.0}, (False, True))],
)
def test_what_goes_without_saying(fields: dict[str, object], given: tuple[bool, bool]) -> None:
    """An entry has no options where its fields tell what was given; else it says so."""
    plain = entry("@daily", **fields)
    attempts, timeout = given
    options = CronOptions(attempts_given=attempts, timeout_given=timeout)
    assert options_of(plain) == options
    assert with_options(plain, options) == plain
    other = CronOptions(attempts_given=not attempts, timeout_given=timeout)
    assert options_of(with_options(plain, other)) == other
    assert with_options(with_options(plain, other), options) == plain
    spec = spec_of(with_options(plain, other))
    assert (spec.max_attempts is not None, spec.timeout is not None) == (not attempts, timeout)
    assert (spec.fallback_attempts, spec.fallback_timeout) == (plain.max_attempts, plain.timeout)


@pytest.mark.parametrize("period", [None, 3600, 0.5, timedelta(days=1, microseconds=7)])
def test_options_are_read_as_they_were_written(period: float | timedelta | None) -> None:
    """With every kind of value, and the spec has them."""
    options = CronOptions(
        attempts_given=True, timeout_given=False,
        unique=Unique(by=("n",), while_=("waiting",), period=period), unique_key="n=1",
        limit=Limit("é{n}", running=1, per_hour=5), limit_key="é1", fair="{n}", fair_key='\0"',
    )  # fmt: skip
    keyed = with_options(entry("@daily"), options)
    assert options_of(keyed) == options
    spec, _ = job(keyed, NOON, NOON)
    assert (spec.unique, spec.limit) == (options.unique, options.limit)
    assert options.keys(2) == Keys(["n=1"] * 2, ["é1"] * 2, ['\0"'] * 2)
    assert CronOptions(attempts_given=True, timeout_given=True).keys(2) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"attempts_given":1,"timeout_given":true}'])
def test_options_of_a_newer_rota(text: str) -> None:
    """Options that cannot be read are an error that names their entry, and says what to do."""
    with pytest.raises(ConfigError, match="cron entry 'e' cannot be read; upgrade Rota"):
        job(entry("@daily", options=text), NOON, NOON)
