"""A run as if it had been measured."""

from benchmarks.peers.measurements import DRAIN, HELD, LATENCY, ONE, TRICKLES
from benchmarks.peers.report import QUESTION, Document, result
from benchmarks.peers.samples import Sample
from rota.measure.reports.report import Surroundings, report

LEFT_OUT = {"pgq": "the extension pgq is not installed"}


def samples() -> list[Sample]:
    """Two rounds of three peers; Celery has lost a job in one of them, and never held a snapshot."""
    found = []
    for number in (1, 2):
        for peer, speed in (("rota", 4.0), ("graphile", 2.0), ("celery", 1.0)):
            rate = {"jobs": 100.0, "per_second": 1000.0 * speed * number, "finished": True}
            found.append(Sample(round=number, measurement=ONE, peer=peer, figures=rate))
            if peer != "celery" or number == 2:
                found.append(Sample(round=number, measurement=DRAIN, peer=peer, figures=rate))
            if peer != "celery":
                slow = {**rate, "finished": False}
                found.append(Sample(round=number, measurement=HELD, peer=peer, figures=slow))
            late = {"p50_ms": 8 / speed, "p95_ms": 16 / speed, "server_ms_per_job": 0.25 * speed,
                    "workers_ms_per_job": 1.0, "kept_up": True}  # fmt: skip
            found += [
                Sample(round=number, measurement=measurement, peer=peer, figures=late)
                for measurement in (LATENCY, *TRICKLES.values())
            ]
    lost = Sample(round=1, measurement=DRAIN, peer="celery", failure="lost 1 of 3 jobs")
    return [*found, lost]


def document() -> Document:
    """What that run leaves behind."""
    where = Surroundings(
        machine={"processor": "Some", "cores": 2, "memory_gb": 8.0},
        versions={"postgresql": "15.1", "python": "3.11.2"}, commit="abc", settings={},
    )  # fmt: skip
    parameters = {"rounds": 2, "seconds": 1.0}
    return Document(
        report=report("the field", QUESTION, parameters, result(samples(), LEFT_OUT), where),
        samples=samples(), versions={"rota": "0.1", "graphile": "0.18.0"}, left_out=LEFT_OUT,
    )  # fmt: skip
