"""Every benchmark in a small form, on both databases: shape, counts that must agree, cleaning up."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rota.measure.bench import idle
from tests.cli.calling import rota
from tests.fixtures.stores import empty_database


def left(url: str) -> list[Path]:
    """Folders of benchmarks that were left beside a SQLite file."""
    return list(Path(url.partition("///")[2]).parent.glob("rota-bench-*"))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.large)])
def where(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where to measure; nothing must be left there. PostgreSQL: see test_interrupt.py."""
    url = empty_database(request)
    yield url
    if url.startswith("sqlite"):
        assert left(url) == []


def bench(url: str, *args: object) -> Any:
    """The report of a benchmark, with the parts that all reports have."""
    result = rota("bench", *args, "--json", url=url)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    report = json.loads(result.stdout)
    assert list(report) == [
        "name", "question", "when", "partial", "machine", "versions", "commit", "settings",
        "parameters", "figures", "series", "notes",
    ]  # fmt: skip
    assert report["name"] == args[0]
    assert report["question"].endswith("?")
    assert not report["partial"]
    assert report["machine"]["cores"] >= 1
    assert {"rota", "python"} < set(report["versions"])
    assert report["settings"]
    if url.startswith("postgres"):
        assert re.fullmatch(r"\d+[kMG]B", report["settings"]["shared_buffers"])
        assert re.fullmatch(r"\d+(s|min|h)", report["settings"]["checkpoint_timeout"])
    for name, series in report["series"].items():
        assert len(series["x"]) == len(series["y"]) > 0, name
    assert report["figures"]
    return report


def test_drain(where: str) -> None:
    """Every combination is run and compared with the first; tenths of each."""
    report = bench(where, "drain", "--jobs=300", "--held", "--not-held", "--workers=2")
    runs = report["figures"]["runs"]
    assert list(runs) == ["2 workers, loop, kept, held", "2 workers, loop, kept"]
    for name, run in runs.items():
        assert run["settled"] == run["jobs"] == 300
        assert run["rate"] > 0
        assert 0 < run["slowest_to_fastest_tenth"] <= 1
        assert len(report["series"][name]["y"]) == 10
        machine = report["series"][f"machine: {name}"]["y"]
        assert len(machine) == 10
        known = run["machine_slowest_to_fastest_tenth"]
        assert (known is None) is (None in machine)
        assert known is None or 0 < known <= 1
        if where.startswith("postgres"):
            assert (run["oldest_transaction_s"] is not None) is run["horizon_held"]
            assert run["run_blocks_per_job"] > 1
            assert run["blocks_from"] == "pg_statio_all_tables"
            assert run["enqueue_wal_bytes_per_job"] > 10
            assert run["run_wal_bytes_per_job"] > 0
            assert run["wal_bytes_per_job"] == pytest.approx(
                run["enqueue_wal_bytes_per_job"] + run["run_wal_bytes_per_job"], abs=0.2
            )
            assert 0 <= run["run_full_page_share"] <= 1
    assert report["parameters"]["held"] == "true, false"
    assert report["parameters"]["jobs"] == 300
    first, second = runs.values()
    assert first["ratio_to_first_run"] == 1.0
    assert second["ratio_to_first_run"] == pytest.approx(second["rate"] / first["rate"], abs=1e-3)


@pytest.mark.large
def test_drain_with_instruments(tmp_path: Path) -> None:
    """The same jobs, with what users instrument their workers by."""
    names = ("nothing", "prometheus", "otel", "sentry", "logging")
    report = bench(
        f"sqlite:///{tmp_path}/rota.db", "drain", "--jobs=40", *(f"--with={name}" for name in names)
    )
    runs = report["figures"]["runs"]
    assert [run["with"] for run in runs.values()] == [*names]
    assert {run["settled"] for run in runs.values()} == {40}


@pytest.mark.large
@pytest.mark.parametrize("executor", ["thread", "process"])
def test_drain_in_executors(executor: str, tmp_path: Path) -> None:
    """Threads and child processes; the args have the size that was asked for."""
    report = bench(
        f"sqlite:///{tmp_path}/rota.db", "drain", "--jobs=40", f"--executor={executor}",
        "--args=1000",
    )  # fmt: skip
    [run] = report["figures"]["runs"].values()
    assert run["settled"] == 40
    assert run["args_bytes"] == 1000
    assert run["executor"] == executor


@pytest.mark.large
def test_enqueue(where: str) -> None:
    """One by one next to a bare INSERT, many, and several producers."""
    report = bench(
        where, "enqueue", "--jobs=1000", "--singles=100", "--seconds=0.3", "--producers=1",
        "--producers=2",
    )  # fmt: skip
    figures = report["figures"]
    assert figures["one_by_one"]["ratio_to_bare_insert"] > 0
    assert figures["enqueue_many"]["rate"] > 0
    one, two = figures["producers"].values()
    assert one["jobs"] > 0
    assert two["ratio_to_first"] == pytest.approx(two["rate"] / one["rate"], abs=1e-3)


@pytest.mark.large
def test_bulk(where: str) -> None:
    """All ways take their turn in each round; half of the keys are taken."""
    report = bench(where, "bulk", "--jobs=1000", "--rounds=2")
    figures = report["figures"]
    assert list(figures) == ["bare", "no_keys", "skip", "replace"]
    bare = figures.pop("bare")
    assert bare["ratio_to_bare"] == bare["least_ratio"] == 1
    for kind, found in figures.items():
        ratio = found["ratio_to_bare" if kind == "no_keys" else "ratio_to_no_keys"]
        assert 0 < found["least_ratio"] <= ratio
        assert found["rate"] > 0
        assert found["client_us_per_job"] > 0
        assert found["taken"] == (None if kind == "no_keys" else 500)
    assert (bare["server_us_per_job"] is None) is where.startswith("sqlite")


@pytest.mark.large
def test_latency(where: str) -> None:
    """Every job that was enqueued has a delay; the load is half of what was measured."""
    report = bench(where, "latency", "--jobs=5", "--seconds=2", "--flood=300", "--batch=50")
    figures = report["figures"]
    assert figures["idle"]["jobs"] == 5
    assert 0 < figures["idle"]["p50_ms"] <= figures["idle"]["p99_ms"]
    assert figures["idle_after_call"]["p50_ms"] < figures["idle"]["p50_ms"]
    assert figures["loaded"]["offered_rate"] == pytest.approx(figures["flood"]["rate"] / 2, abs=1)
    assert figures["loaded"]["jobs"] > 0
    assert figures["loaded"]["p99_ms"] > 0
    assert {"idle", "idle, after the call", "under load"} == set(report["series"])


@pytest.mark.large
def test_trickle(where: str) -> None:
    """What a job costs with each number of workers, and which of the server's connections it costs."""
    report = bench(where, "trickle", "--rate=50", "--workers=1", "--workers=2", "--seconds=2")
    runs = report["figures"]["runs"]
    assert list(runs) == ["1 worker", "2 workers"]
    for run in runs.values():
        assert run["jobs"] >= 90
        assert run["jobs_left_over"] == 0
        assert 0 < run["p50_ms"] <= run["p99_ms"]
        assert run["workers_ms_per_job"] > 0
        if where.startswith("postgres"):
            parts = [value for name, value in run.items() if name.startswith("server_ms_per_job_")]
            assert run["server_ms_per_job"] == pytest.approx(sum(parts), abs=0.01)
            assert run["server_ms_per_job_settler"] > 0
        else:
            assert run["server_ms_per_job"] is None
    assert runs["1 worker"]["p50_to_first_run"] == 1.0


@pytest.mark.large
def test_hold(where: str) -> None:
    """A load while the horizon is held: nothing is lost, and each second has a sample."""
    report = bench(where, "hold", "--seconds=3", "--warm-up=1", "--rate=200")
    load, series = report["figures"]["load"], report["series"]
    assert load["jobs_settled"] == load["jobs_enqueued"] > 600
    assert load["jobs_left_over"] == 0
    assert load["enqueued_to_offered"] == pytest.approx(1.0, abs=0.3)
    assert len(series["completed"]["x"]) == 3
    first, last = report["figures"]["parts"].values()
    assert first["throughput"] > 0
    assert report["figures"]["last_to_first"]["throughput"] == pytest.approx(
        last["throughput"] / first["throughput"], abs=1e-3
    )
    ratios = report["figures"]["last_to_first"]
    assert min(first["machine_ms"], last["machine_ms"]) > 0
    assert ratios["machine_ms"] == pytest.approx(last["machine_ms"] / first["machine_ms"], abs=1e-3)
    assert ratios["p95_ratio_corrected"] == pytest.approx(
        ratios["latency_p95_ms"] / ratios["machine_ms"], abs=1e-3
    )
    assert any(series["machine"]["y"])
    if where.startswith("sqlite"):
        assert first["blocks_per_job"] is None
        assert "blocks_from" not in load
    else:
        assert load["blocks_from"] == "pg_statio_all_tables"
        assert ratios["blocks_per_job"] == pytest.approx(
            last["blocks_per_job"] / first["blocks_per_job"], abs=1e-2
        )
        # The holder was there before the load, and stayed.
        ages = series["oldest transaction"]["y"]
        assert ages == sorted(ages)
        assert ages[0] > 1
        dead = report["figures"]["dead_rows"]
        assert dead["job_log_made"] == dead["job_log_now"] == 0
        # Each claim's lease was deleted, and vacuum could not take it away.
        assert dead["all_tables_made"] > 10
        assert dead["all_tables_made_per_1000_jobs"] == pytest.approx(
            1000 * dead["all_tables_made"] / load["jobs_settled"], abs=1e-2
        )


@pytest.mark.large
def test_hold_without_a_holder(postgres_url: str) -> None:
    """`--no-holder`: the same load, and no transaction gets old."""
    report = bench(postgres_url, "hold", "--seconds=2", "--warm-up=0", "--rate=100", "--no-holder")
    assert all(age is None or age < 1 for age in report["series"]["oldest transaction"]["y"])


@pytest.mark.large
def test_hold_by_a_producer(postgres_url: str) -> None:
    """The open producer's jobs run when it commits, and no other producer waited for it."""
    report = bench(postgres_url, "hold", "--producer", "--seconds=2", "--warm-up=0", "--rate=100")
    figures = report["figures"]
    assert figures["open_producer"] == {"jobs": 100, "started_after_its_commit": 100}
    assert figures["load"]["jobs_left_over"] == 0
    beside, alone = figures["another_producer"].values()
    assert beside["enqueues"] == alone["enqueues"] == 600
    assert figures["beside_open_to_alone"]["p50"] == pytest.approx(
        beside["p50_ms"] / alone["p50_ms"], rel=0.02
    )


@pytest.mark.large
def test_a_producer_that_falls_behind(tmp_path: Path) -> None:
    """A rate that cannot be kept shows as such."""
    report = bench(
        f"sqlite:///{tmp_path}/rota.db", "hold", "--seconds=2", "--warm-up=0", "--rate=1000000",
        "--batch=1",
    )  # fmt: skip
    load = report["figures"]["load"]
    assert load["offered_rate"] == pytest.approx(1_000_000, rel=0.1)
    assert load["enqueued_to_offered"] < 0.5


@pytest.mark.large
def test_delayed(where: str) -> None:
    """All delayed jobs start, none of them early."""
    report = bench(where, "delayed", "--jobs=200", "--seconds=1", "--burst=100")
    spread, burst = report["figures"]["spread"], report["figures"]["burst"]
    assert spread["started"] == spread["jobs"] == 200
    assert burst["started"] == burst["jobs"] == 100
    assert 0 <= spread["lateness_p50_ms"] <= spread["lateness_p99_ms"]
    assert burst["staging_rate"] > 0
    assert sum(report["series"]["settled"]["y"]) == 200


@pytest.mark.large
def test_retries(where: str) -> None:
    """Every failure is one more attempt, and none comes back too early."""
    figures = bench(where, "retries", "--jobs=100", "--share=0.1", "--failures=1")["figures"]
    assert figures["jobs_that_fail"] == 10
    assert figures["jobs_started"] == 100
    assert figures["attempts"] == figures["attempts_expected"] == 110
    assert figures["lateness_p50_ms"] > 0
    assert figures["rate"] > 0


@pytest.mark.large
def test_relay(where: str, redis_url: str) -> None:
    """Each size of a batch; every message is there once, and in the order of its key."""
    del redis_url  # skips where there is no Redis
    report = bench(where, "relay", "--jobs=300", "--keys=7", "--batch=50", "--batch=300")
    runs = report["figures"]["runs"]
    assert list(runs) == ["batch of 50", "batch of 300"]
    assert all(run["rate"] > 0 and run["in_order"] for run in runs.values())


@pytest.mark.large
def test_shards(where: str) -> None:
    """Each number of databases has its turn, and all of its jobs run."""
    report = bench(where, "shards", "--jobs=1000", "--databases=1", "--databases=2", "--turns=1")
    runs = report["figures"]["runs"]
    assert list(runs) == ["1 database, turn 1", "2 databases, turn 1"]
    assert all(run["rate"] > 0 and run["jobs"] == 1000 for run in runs.values())


@pytest.mark.large
def test_steps(where: str) -> None:
    """Steps next to bare INSERTs, and idle workers beside jobs that sleep and are signalled."""
    report = bench(
        where, "steps", "--steps=20", "--asleep=0", "--asleep=4", "--seconds=0.2", "--rest=0"
    )
    figures = report["figures"]
    assert figures["ratio"] > 0
    assert figures["signals"]["p50_ms"] > 0
    assert list(figures["asleep"]) == ["0", "4"]


@pytest.mark.large
def test_flow(where: str) -> None:
    """Maps with what waits for them beside bare jobs, at each size, and a chain.

    They also run under a held snapshot.
    """
    sizes = ("--sizes=200", "--sizes=20", "--sizes=200")
    report = bench(where, "flow", *sizes, "--links=5", "--turns=1", "--held", "--not-held")
    runs = report["figures"]["runs"]
    assert list(runs) == ["held", "not held"]
    for run in runs.values():
        kinds = ("bare", "stored", "after", "results")
        assert list(run["fans"]) == [f"{size} jobs, {kind}" for kind in kinds for size in (20, 200)]
        for name, fan in run["fans"].items():
            assert fan["us_per_job"] > 0
            assert fan["build_us_per_job"] > 0
            if name.startswith("20 "):
                assert fan["us_per_further_job"] == fan["us_per_job"]
            assert (fan["fan_in_ms"] is None) is name.endswith(("bare", "stored"))
        assert run["chain"]["links_per_s"] > 0


@pytest.mark.large
def test_limits(where: str) -> None:
    """The same jobs with limits and without, also under a held snapshot."""
    report = bench(
        where, "limits", "--jobs=200", "--keys=20", "--running=1", "--held", "--not-held"
    )
    runs = report["figures"]["runs"]
    assert list(runs) == ["unlimited, held", "limited, held", "unlimited", "limited"]
    assert runs["limited"]["ratio_to_unlimited"] > 0
    assert runs["unlimited"]["ratio_to_unlimited"] == 1


@pytest.mark.large
def test_spread(where: str) -> None:
    """Rota's jobs and bare tasks, in turns on one Dask cluster.

    The bare tasks are those of one call, and as many as a bundle has.
    """
    report = bench(
        where, "spread", "--engine=dask", "--jobs=100", "--takes=0", "--takes=5", "--turns=1"
    )
    runs = report["figures"]["runs"]
    assert [(name, run["jobs"]) for name, run in runs.items()] == [
        ("dask, 0 ms, turn 1", 100),
        ("dask, 5 ms, turn 1", 100),
    ]
    for run in runs.values():
        assert run["ratio_to_bare"] == pytest.approx(run["rate"] / run["bare_rate"], rel=0.02)
        assert run["ratio_to_bundled"] == pytest.approx(run["rate"] / run["bundled_rate"], rel=0.02)


@pytest.mark.large
def test_soak(where: str) -> None:
    """Memory, disk and depth of the first quarter next to the last."""
    report = bench(where, "soak", "--seconds=2", "--every=0.5", "--rate=100")
    growth = report["figures"]["growth"]
    assert growth["workers_memory_mb"]["first_quarter"] > 5
    assert growth["tables_mb"]["last_quarter"] > 0
    assert len(report["series"]["workers' memory"]["y"]) == 4


@pytest.mark.large
def test_scale(where: str) -> None:
    """Workers by lanes, busy and idle."""
    report = bench(
        where, "scale", "--workers=1", "--workers=2", "--lanes=40", "--jobs=80",
        "--seconds=0.5", "--rest=0",
    )  # fmt: skip
    runs = report["figures"]["runs"]
    assert list(runs) == ["40 lanes, 1 worker", "40 lanes, 2 workers"]
    for run in runs.values():
        assert run["jobs"] == 80
        assert run["rate"] > 0
        assert run["processor_percent_per_worker"] >= 0
        # So soon it is unknown, which is no zero.
        assert run["transactions_per_second"] is None
    assert runs["40 lanes, 1 worker"]["ratio_to_fewest_workers"] == 1.0


@pytest.mark.large
def test_idle(where: str) -> None:
    """What idle workers cost; transactions of which the sessions have not told yet are no zero."""
    figures = bench(where, "idle", "--seconds=0.5", "--rest=0", "--workers=2", "--lanes=3")[
        "figures"
    ]
    assert figures["queues"] == 3
    assert 0 <= figures["processor_percent_per_worker"] < 100
    assert figures["memory_mb_per_worker"] > 5
    assert figures["transactions_per_second"] is None
    assert figures["transactions_per_second_per_worker"] is None


@pytest.mark.large
@pytest.mark.parametrize(
    ("seconds", "rest", "known"), [(2.5, 0.2, True), (2.5, 0.1, False), (1.9, 0.2, False)]
)
def test_idle_transactions(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, seconds: float, rest: float, *, known: bool
) -> None:
    """They are counted after the rest that they need, if for long enough."""
    monkeypatch.setattr(idle, "REPORTED", 0.2)
    figures = bench(postgres_url, "idle", f"--seconds={seconds}", f"--rest={rest}")["figures"]
    assert ((figures["transactions_per_second"] or 0) > 0) is known


@pytest.mark.large
@pytest.mark.parametrize("finished", [(), ("--finished",)])
def test_counts(where: str, finished: tuple[str, ...]) -> None:
    """At each size the operation has counted every job."""
    report = bench(where, "counts", "--sizes=100", "--sizes=1000", *finished)
    small, large = report["figures"]["sizes"].values()
    assert (small["counted"], large["counted"]) == (100, 1000)
    for size in (small, large):
        assert size["ratio_to_count"] == pytest.approx(
            size["queues_ms"] / size["count_ms"], rel=0.02
        )


@pytest.mark.large
def test_dashboard(where: str) -> None:
    """Each page at each size, and what open overviews cost."""
    sizes = ("--sizes=1000", "--sizes=2000")
    report = bench(where, "dashboard", *sizes, "--requests=1", "--rate=200", "--seconds=0.2")
    pages = report["figures"]["pages"]
    assert list(pages) == ["1,000 jobs", "2,000 jobs"]
    small = pages["1,000 jobs"]
    assert {
        "overview", "jobs, scheduled, deep", "one job, running", "doctor", "jobs, JSON", "audit",
        "history of a queue, a week", "how many in a group",
    } <= set(small)  # fmt: skip
    assert all(page["max_ms"] >= page["p50_ms"] > 0 for page in small.values())
    assert all(
        page["over"] == (page["p50_ms"] > 50) for page in small.values() if page["p50_ms"] != 50
    )
    opened = report["figures"]["open_overviews"]
    assert [
        opened[f"1,000 jobs, {viewers} open"]["events"] >= viewers for viewers in (0, 1, 10)
    ] == [True] * 3
    assert opened["1,000 jobs, 0 open"]["events"] == 0


def test_tables_for_people(tmp_path: Path) -> None:
    """Without `--json` the same figures are tables; with a file they are both."""
    file = tmp_path / "counts.json"
    result = rota(
        "bench", "counts", "--sizes=100", "--json", file, url=f"sqlite:///{tmp_path}/rota.db"
    )
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    report = json.loads(file.read_bytes())
    for word in (report["question"], "queues ms", "processor", report["versions"]["sqlite"]):
        assert word in result.stdout
