"""`rota worker`, as a process of its own."""

import json
import re
import signal
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from rota import Rota, State
from rota.cli.options import ListenOn
from rota.model.job import Order
from rota.model.options import JobOptions
from tests.cli.calling import SHOP, finished, make_tables, read_until, rota, started
from tests.service.managers import listening
from tests.store.factories import until

SECRET = "hunter2"
ONE = '{"number":1}'


class Shop:
    """The application from outside: its jobs, without its code."""

    def __init__(self, url: str, folder: Path) -> None:
        (folder / "shop.py").write_text(SHOP)
        make_tables(url)
        self.url = url
        self.folder = folder
        self.app = Rota(url)

    def enqueue(self, task: str, queue: str, *args: str, **options: object) -> list[int]:
        """Jobs of a task; `args` are JSON."""
        spec = JobOptions(queue=queue).using(options).spec(f"shop.{task}")
        return list(self.app.database.run(self.app.database.store.enqueue(Order(spec, args))))

    def state(self, job: int) -> State:
        """The state of a job."""
        return self.app.job(job).status


@pytest.fixture
def shop(store_url: str, tmp_path: Path) -> Iterator[Shop]:
    """An application in a folder, and its database."""
    folder = tmp_path / "app"
    folder.mkdir()
    shop = Shop(store_url, folder)
    yield shop
    shop.app.close()


def test_draining(shop: Shop) -> None:
    """With `--drain` a worker does what there is, says so, and stops."""
    jobs = shop.enqueue("double", "default", *(f'{{"number":{n}}}' for n in range(20)))
    run = finished("worker", "shop:rota", "--drain", url=shop.url, cwd=shop.folder)
    assert run.returncode == 0, run.stderr
    assert [shop.app.job(job).record().result for job in jobs] == [str(2 * n) for n in range(20)]
    assert "worker started" in run.stderr
    assert "worker stopped" in run.stderr


def test_the_app_in_the_environment(shop: Shop) -> None:
    """The app may stand in ROTA_APP; the command line comes first."""
    [job] = shop.enqueue("double", "default", ONE)
    named = finished("worker", "nothing:app", url=shop.url, cwd=shop.folder, ROTA_APP="shop:rota")
    assert named.returncode == 1
    run = finished("worker", "--drain", url=shop.url, cwd=shop.folder, ROTA_APP="shop:rota")
    assert run.returncode == 0, run.stderr
    assert shop.state(job) is State.COMPLETED


def test_json_and_verbose(shop: Shop) -> None:
    """With `--json` the log is JSON, the counts come last; with `-v` each job has a line."""
    [good, _] = shop.enqueue("double", "default", '{"number":1}', '{"number":2}')
    [bad] = shop.enqueue("fail", "broken", f'{{"secret":"{SECRET}"}}', max_attempts=1)
    run = finished("worker", "shop", "--drain", "--json", "-v", url=shop.url, cwd=shop.folder)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {"settled": {"complete": 2, "discard": 1}}
    log = [json.loads(line) for line in run.stderr.splitlines()]
    assert all(line.keys() >= {"at", "level", "logger", "message"} for line in log)
    assert any(line["message"].startswith(f"job {good} (shop.double)") for line in log)
    assert not [line for line in log if line["level"] == "warning"]
    [error] = [line for line in log if line["level"] == "error"]
    fields = {"event": "JobDiscarded", "job": bad, "task": "shop.fail", "attempt": 1}
    assert error.items() >= fields.items()


def test_json_names_the_job_of_a_line(shop: Shop) -> None:
    """With `--json` a line that a handler logs has its job's id, wherever the handler runs."""
    ids = {
        task: shop.enqueue(task, "default", f'{{"word":"{task} here"}}')[0]
        for task in ("speak", "aspeak", "bspeak")
    }
    run = finished("worker", "shop", "--drain", "--json", url=shop.url, cwd=shop.folder)
    assert run.returncode == 0, run.stderr
    log = [json.loads(line) for line in run.stderr.splitlines()]
    said = {line["message"].split()[0]: line for line in log if line["logger"] == "shop"}
    for task in ("speak", "aspeak"):
        fields = {"job": ids[task], "task": f"shop.{task}", "queue": "default", "attempt": 1}
        assert said[task].items() >= fields.items()
    # A batch has many jobs.
    assert said["bspeak"]["task"] == "shop.bspeak"
    assert "job" not in said["bspeak"]
    assert not [line for line in log if line["logger"] == "rota" and "job" in line]


def test_args_are_not_logged(shop: Shop) -> None:
    """Whatever happens, the args of a job are in no line of the log."""
    [job] = shop.enqueue("fail", "broken", f'{{"secret":"{SECRET}"}}', max_attempts=1)
    run = finished("worker", "shop", "--drain", "-v", url=shop.url, cwd=shop.folder)
    assert f"job {job} (shop.fail)" in run.stderr
    assert SECRET not in run.stderr
    assert "\x1b" not in run.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it(shop: Shop, number: signal.Signals) -> None:
    """A worker that is asked to stop ends in order."""
    with started("worker", "shop", url=shop.url, cwd=shop.folder) as worker:
        read_until(worker.stderr, "worker started")
        worker.send_signal(number)
        assert worker.wait(30) == 0
        assert worker.stderr is not None
        assert "worker stopped" in worker.stderr.read()


def test_a_signal_before_it_has_begun(tmp_path: Path) -> None:
    """A worker that is asked to stop while it still imports its app ends in order, too."""
    text = "import pathlib, threading\npathlib.Path('mark').touch()\nthreading.Event().wait()"
    (tmp_path / "shop.py").write_text(text)
    with started("worker", "shop", url=f"sqlite:///{tmp_path}/rota.db", cwd=tmp_path) as worker:
        until(lambda: (tmp_path / "mark").exists() or None)
        worker.terminate()
        assert worker.wait(30) == 0
        assert worker.stderr is not None
        assert worker.stderr.read() == ""


def test_the_named_queues_only(shop: Shop) -> None:
    """`--queue` may be repeated, and other queues are left alone."""
    [other] = shop.enqueue("double", "other", ONE)
    done = [job for queue in ("one", "two") for job in shop.enqueue("double", queue, ONE)]
    args = ("worker", "shop", "--queue", "one", "--queue", "two", "--drain")
    run = finished(*args, url=shop.url, cwd=shop.folder)
    assert run.returncode == 0, run.stderr
    assert shop.state(other) is State.AVAILABLE
    assert [shop.state(job) for job in done] == [State.COMPLETED] * 2


def test_another_database(shop: Shop, tmp_path: Path) -> None:
    """`--url` goes before what the app says."""
    [job] = shop.enqueue("double", "default", ONE)
    elsewhere = f"sqlite:///{tmp_path}/elsewhere.db"
    args = ("worker", "shop", "--drain", "--url", shop.url)
    run = finished(*args, url=elsewhere, cwd=shop.folder)
    assert run.returncode == 0, run.stderr
    assert shop.state(job) is State.COMPLETED
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_handler_that_does_not_stop(shop: Shop, tmp_path: Path) -> None:
    """A thread that is stuck cannot keep the process; its job is given back."""
    mark = tmp_path / "mark"
    [job] = shop.enqueue("stuck", "stuck", json.dumps({"mark": str(mark)}))
    with started("worker", "shop", "--grace", "0.1", url=shop.url, cwd=shop.folder) as worker:
        until(lambda: mark.exists() or None)
        worker.terminate()
        assert worker.wait(30) == 0
        assert worker.stderr is not None
        assert "abandoned" in worker.stderr.read()
    assert shop.state(job) is State.AVAILABLE


def test_tied_to_the_program_that_started_it(shop: Shop) -> None:
    """A tied worker says when it claims, and stops when its standard input ends."""
    with started("worker", "shop", "--tied", url=shop.url, cwd=shop.folder) as worker:
        read_until(worker.stdout, "ready")
        assert worker.stdin is not None
        worker.stdin.close()
        assert worker.wait(30) == 0


# As a service ------------------------------------------------------------------------------------


@pytest.mark.parametrize("abstract", [False, True])
def test_it_speaks_to_systemd(shop: Shop, tmp_path: Path, *, abstract: bool) -> None:
    """It says when it claims, gives signs of life, and says when it stops; programs it starts do not."""
    mark = tmp_path / "mark"
    [job] = shop.enqueue("environ", "default", json.dumps({"mark": str(mark)}))
    with (
        listening(tmp_path, abstract=abstract) as manager,
        started(
            "worker", "shop", url=shop.url, cwd=shop.folder,
            NOTIFY_SOCKET=manager.name, WATCHDOG_USEC="200000",
        ) as worker,
    ):  # fmt: skip
        lines = manager.until("READY=1")
        lines += manager.until("WATCHDOG=1") + manager.until("WATCHDOG=1")
        assert any(line.startswith("STATUS=claiming, session ") for line in lines)
        until(lambda: shop.state(job) is State.COMPLETED)
        worker.terminate()
        manager.until("STOPPING=1")
        assert worker.wait(30) == 0
    assert mark.read_text() == "unset"


def test_it_answers_probes(shop: Shop) -> None:
    """With `--health` it says by HTTP that it lives and claims."""
    options = ("--health", "0", "--json")
    with started("worker", "shop", *options, url=shop.url, cwd=shop.folder) as worker:
        said = read_until(worker.stderr, "health: ")
        [address] = re.findall(r"http://(127\.0\.0\.1:\d+)/live and /ready", said)

        def answer() -> bytes | None:
            connection = HTTPConnection(address, timeout=20)
            connection.request("GET", "/ready")
            response = connection.getresponse()
            body = response.read()
            connection.close()
            return body if response.status == 200 else None

        document = json.loads(until(answer))
        assert document.items() >= {"live": True, "ready": True, "phase": "running"}.items()
        worker.terminate()
        assert worker.wait(30) == 0


@pytest.mark.parametrize(
    ("health", "words"),
    [
        ("", "is not HOST:PORT"),
        ("localhost", "is not HOST:PORT"),
        ("::1", "is not HOST:PORT"),
        (":8081", "is not HOST:PORT"),
        ("127.0.0.1:70000", "is not HOST:PORT"),
        ("127.0.0.1:-1", "is not HOST:PORT"),
        ("192.0.2.1:8081", "cannot listen on 192.0.2.1:8081"),
    ],
)
def test_an_address_that_cannot_be_used(shop: Shop, health: str, words: str) -> None:
    """An address that is none, or not this machine's, is a matter of usage."""
    run = finished("worker", "shop", "--health", health, url=shop.url, cwd=shop.folder)
    assert run.returncode == 2
    assert words in run.stderr


@pytest.mark.parametrize(
    ("health", "address"),
    [
        ("8081", ("127.0.0.1", 8081)),
        ("0.0.0.0:8081", ("0.0.0.0", 8081)),  # noqa: S104 - as is asked for
        ("[::1]:0", ("::1", 0)),
    ],
)
def test_addresses(health: str, address: tuple[str, int]) -> None:
    """A port alone is one of this machine's."""
    assert ListenOn().convert(health, None, None) == address


@pytest.mark.parametrize(
    ("task", "said"),
    [
        pytest.param("", {"message": "no tasks"}, id="refused"),
        pytest.param("import warnings\nwarnings.warn('old')", {"logger": "py.warnings"}, id="warning"),
        pytest.param(
            "import threading\none = threading.Thread(target=lambda: 1 / 0)\none.start()\none.join()",
            {"traceback": "ZeroDivisionError"}, id="thread",
        ),
        pytest.param("raise KeyboardInterrupt", {"message": "stopped by Ctrl-C"}, id="interrupted"),
        pytest.param("class Odd(BaseException): ...\nraise Odd", {"traceback": "Odd"}, id="uncaught"),
    ],
)  # fmt: skip
def test_with_json_all_is_json(tmp_path: Path, task: str, said: dict[str, str]) -> None:
    """With `--json` each line on stderr is an object, also what says why the worker does not start."""
    (tmp_path / "shop.py").write_text(f"from rota import Rota\nrota = Rota()\n{task}\n")
    run = finished("worker", "shop", "--json", url=f"sqlite:///{tmp_path}/rota.db", cwd=tmp_path)
    assert run.returncode
    log = [json.loads(line) for line in run.stderr.splitlines()]
    assert all(line.keys() >= {"at", "level", "logger", "message"} for line in log)
    assert [
        line for line in log
        if all(word in line.get(name, "") for name, word in said.items())
    ]  # fmt: skip


# What it refuses ------------------------------------------------------------------------------

Write = Callable[[str], None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the module `shop`."""

    def write(text: str) -> None:
        (tmp_path / "shop.py").write_text(text)

    return write


def refusal(folder: Path, target: str, code: int, *options: str) -> str:
    """Why a worker does not start: one line, without a traceback."""
    url = f"sqlite:///{folder}/rota.db"
    run = finished("worker", target, "--drain", *options, url=url, cwd=folder)
    assert run.returncode == code, run.stderr
    assert run.stderr.startswith("Error: ")
    assert len(run.stderr.splitlines()) == 1, run.stderr
    assert not (folder / "rota.db").exists()
    return run.stderr


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("nowhere:rota", 1, "no module 'nowhere'"),
        ("shop.py:rota", 1, "'shop.py' is a file, not a module; write shop"),
        ("src/shop.py", 1, "write src.shop"),
        ("shop.nowhere:rota", 1, "no module 'shop.nowhere'"),
        ("shop:nothing", 1, "has no 'nothing'; its apps are shop:rota"),
        ("shop:double", 1, "shop:double is a Task, not a rota.Rota"),
        (":rota", 2, "is not MODULE:APP"),
        ("shop:", 2, "is not MODULE:APP"),
        (".shop:rota", 2, "is not MODULE:APP"),
    ],
)
def test_an_app_that_is_not_there(
    tmp_path: Path, write: Write, target: str, code: int, words: str
) -> None:
    """What is missing is named, and what there is."""
    write(SHOP)
    assert words in refusal(tmp_path, target, code)


LIFESPANS = """
from rota import PROVIDED, Rota

rota = Rota()

@rota.task
def double(number: int, engine: dict = PROVIDED): ...
"""


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (
            "",
            2,
            "task 'shop.double': parameter `engine: dict`: no lifespan of the worker yields it",
        ),
        (
            "@rota.lifespan\ndef engine():\n    yield 1 / 0",
            1,
            "lifespan 'engine' failed: ZeroDivisionError: division by zero",
        ),
        ("@rota.lifespan\ndef engine(): ...", 2, "lifespan 'engine' gave NoneType"),
    ],
)
def test_lifespans(tmp_path: Path, write: Write, text: str, code: int, words: str) -> None:
    """What is wrong with lifespans and resources is one line, and nothing was claimed."""
    write(f"{LIFESPANS}\n{text}\n")
    url = f"sqlite:///{tmp_path}/rota.db"
    run = finished("worker", "shop", "--drain", url=url, cwd=tmp_path)
    assert (run.returncode, len(run.stderr.splitlines())) == (code, 1), run.stderr
    assert words in run.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--max-memory", "500"), "'--max-memory': 500 has no unit; write 500MB or 500GB"),
        (("--max-memory", "much"), "must be an amount such as 500MB or 2GB"),
        (("--max-jobs", "0"), "'--max-jobs': 0 is not in the range x>=1"),
    ],
)
def test_replacing_children(options: tuple[str, ...], words: str) -> None:
    """Amounts without a unit, and none at all, are refused with what to write."""
    result = rota("worker", "shop", *options)
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import rota", "shop has no app"),
        (
            "from rota import Rota\na, b = Rota(), Rota()",
            "several apps: say which; its apps are shop:a, shop:b",
        ),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("x = (", "SyntaxError"),
        ("import nonsuch", "No module named 'nonsuch'"),
    ],
)
def test_a_module_without_an_app(tmp_path: Path, write: Write, text: str, words: str) -> None:
    """A module that has no app, too many, or is broken is refused with the reason."""
    write(text)
    assert words in refusal(tmp_path, "shop", 1)


def test_an_app_without_tasks(tmp_path: Path, write: Write) -> None:
    """A worker that has nothing to run does not start."""
    write("from rota import Rota\nrota = Rota()")
    run = finished("worker", "shop", url=f"sqlite:///{tmp_path}/rota.db", cwd=tmp_path)
    assert run.returncode == 2
    assert "no tasks" in run.stderr


@pytest.mark.parametrize(
    "option",
    [
        ("--grace", "-1"),
        ("--session-timeout", "0.1"),
        ("--session-timeout", "nan"),
        ("--queue", ""),
    ],
    ids=" ".join,
)
def test_settings_that_cannot_be_used(tmp_path: Path, option: tuple[str, str]) -> None:
    """A setting outside of its range is a matter of usage."""
    (tmp_path / "shop.py").write_text(SHOP)
    name = option[0].removeprefix("--").replace("-", "_")
    assert name in refusal(tmp_path, "shop", 2, *option)


def test_a_server_that_is_not_there(tmp_path: Path, write: Write) -> None:
    """A database that cannot be used at the start is an error with its exit code."""
    write(SHOP)
    assert "127.0.0.1" in refusal(tmp_path, "shop", 3, "--url", "postgresql://x@127.0.0.1:1/y")
    refusal(tmp_path, "shop", 2, "--url", "nonsense")


def test_a_server_without_tables(postgres_url: str, tmp_path: Path, write: Write) -> None:
    """On PostgreSQL the user decides about tables, so a worker does not make them."""
    write(SHOP)
    assert "rota migrate" in refusal(tmp_path, "shop", 4, "--url", postgres_url)
