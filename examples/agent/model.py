"""A language model, played by three rules, so that the example needs no key and no network."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Call:
    """A tool that the model wants to use."""

    tool: Literal["look_up", "refund"]
    order: int
    cents: int = 0


@dataclass(frozen=True)
class Message:
    """One turn of a conversation: what a customer, the model or a tool has said."""

    role: Literal["customer", "model", "tool"]
    text: str
    call: Call | None = None


thoughts: list[str] = []
"""What the model has said in this process; with a real model each of these costs money."""


async def think(messages: list[Message]) -> Message:
    """The next turn of the model."""
    last = messages[-1]
    if last.role == "customer":
        said = Message("model", "I look the order up.", Call("look_up", order=42))
    elif "lamp" in last.text:
        said = Message("model", "It is broken: I refund it.", Call("refund", order=42, cents=4900))
    elif last.text.startswith("refunded"):
        said = Message("model", "We are sorry for the broken lamp. Your money is on its way.")
    else:
        said = Message("model", "We are sorry, and cannot refund the lamp.")
    thoughts.append(said.text)
    return said
