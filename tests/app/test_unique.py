"""Unique keys as tasks declare them, and what enqueueing answers."""

from typing import Any

import pytest

from rota import (
    ArgsError,
    ConfigError,
    Context,
    Enqueued,
    JobExists,
    Limit,
    Placing,
    Rota,
    Unique,
)


def test_handles(app: Rota) -> None:
    """A handle says what the enqueue did."""

    @app.task(name="send", unique="order:{order}")
    def send(order: int, locale: str = "en") -> None: ...

    first, second = send.enqueue(1), send.enqueue(1, locale="it")
    assert (first.placing, first.duplicate) == (Placing.CREATED, False)
    assert (second.placing, second.duplicate, second.id) == (Placing.SKIPPED, True, first.id)
    replaced = send.using(unique=Unique(key="order:{order}", on_conflict="replace")).enqueue(1)
    assert (replaced.placing, replaced.duplicate, replaced.id) == (
        Placing.REPLACED,
        False,
        first.id,
    )
    assert first.record().unique_key == "order:1"


@pytest.mark.asyncio
async def test_async(app: Rota) -> None:
    """The async twins answer alike."""

    @app.task(name="send", unique=Unique(by=("order",)))
    def send(order: int) -> None: ...

    first = await send.aenqueue(1)
    many = await send.aenqueue_many([(1,), (2,)])
    assert isinstance(many, Enqueued)
    assert (many.skipped, many.created) == ([first.id], [many[1]])


def test_many(app: Rota) -> None:
    """Plain tasks give ids, all of them created; unique ones say which is which."""

    @app.task(name="plain")
    def plain(order: int) -> None: ...

    ids = plain.enqueue_many([(1,), (1,)])
    assert ids == list(ids) == ids.created
    assert (ids.replaced, ids.skipped) == ([], [])
    unique = plain.using(unique=Unique(by=("order",), on_conflict="replace"))
    ids = unique.enqueue_many([(1,), (2,), (1,)])
    assert (ids.created, ids.replaced) == (ids[:2], [ids[0]])


def test_keys_of_arguments_differ(app: Rota) -> None:
    """With `by`, different values always make different keys."""

    @app.task(name="send", unique=Unique(by=("one", "two")))
    def send(one: str | int | None = None, two: str = "x") -> None: ...

    values: list[dict[str, Any]] = [
        {}, {"one": ""}, {"one": "null"}, {"one": 1}, {"one": "1"}, {"one": "a,two=b"},
        {"one": "a", "two": "b"}, {"one": '"a"'}, {"one": "a"}, {"one": "\\"},
    ]  # fmt: skip
    assert len(send.enqueue_many(values).created) == len(values)
    assert send.enqueue(two="x").duplicate
    assert send.enqueue("example.org").record().unique_key == "one=example.org,two=x"


def test_the_context_is_no_argument(app: Rota) -> None:
    """A key cannot name it, and the message does not offer it."""

    def send(ctx: Context, order: int) -> None: ...

    with pytest.raises(
        ConfigError, match=r"'ctx', which is not an argument .*its arguments: order\)"
    ):
        app.task(name="a", unique="{ctx}")(send)


@pytest.mark.parametrize("text", ["a\0", "\ud800"])
@pytest.mark.parametrize("option", ["unique", "limit", "fair"])
def test_text_that_no_database_holds(app: Rota, option: str, text: str) -> None:
    """It is refused in a declaration, and where a default brings it into a key."""

    def send(order: str = text) -> None: ...

    def keyed(key: str) -> dict[str, Any]:
        return {option: Limit(key, running=1) if option == "limit" else key}

    with pytest.raises(ConfigError, match=f"^{option} of task 'send': .* no database can hold"):
        app.task(name="send", **keyed(text))(send)
    task = app.task(name="send", **keyed("{order}"))(send)
    with pytest.raises(ArgsError, match="no database can hold"):
        task.enqueue()


def test_bad_keys(app: Rota) -> None:
    """What cannot be a key is refused where it is enqueued, and nothing is stored."""

    @app.task(name="send", unique="{order}")
    def send(order: Any) -> None: ...

    for order, said in (
        ([1], "only text, numbers"),
        ("", "0 characters"),
        ("x" * 501, "501"),
        ("a\0", "NUL"),
    ):
        with pytest.raises(ArgsError, match=said):
            send.enqueue(order)
    with pytest.raises(ArgsError, match="job 1 of enqueue_many"):
        send.enqueue_many([(1,), ([],)])
    assert send.enqueue(1).placing is Placing.CREATED


def test_debouncing_needs_a_delay(app: Rota) -> None:
    """Without one the call says what is missing."""

    @app.task(name="send", unique=Unique(on_conflict="debounce"))
    def send() -> None: ...

    with pytest.raises(ConfigError, match=r"debounce .*\.using\(delay=30\)"):
        send.enqueue()
    assert send.using(delay=30).enqueue().placing is Placing.CREATED
    assert send.using(delay=30).enqueue().placing is Placing.REPLACED


def test_raising(app: Rota) -> None:
    """The error carries the job that is there."""

    @app.task(name="send", unique=Unique(on_conflict="raise"))
    def send() -> None: ...

    first = send.enqueue()
    with pytest.raises(JobExists) as caught:
        send.enqueue()
    assert caught.value.job == first.id


def test_in_a_transaction(app: Rota) -> None:
    """A rolled-back enqueue leaves its key free."""

    @app.task(name="send", unique="one")
    def send() -> None: ...

    send.enqueue().cancel()

    def fail() -> None:
        with app.transaction() as conn:
            assert send.using(conn=conn).enqueue().placing is Placing.CREATED
            assert send.using(conn=conn).enqueue().duplicate
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert send.enqueue().placing is Placing.CREATED
