"""Args and results: Python values on one side, JSON text in the database on the other.

The model. A task's signature is read once; from it come a binder (names for positional args), a
msgspec decoder, and for each parameter the rules its values are compared by. To enqueue, the args
are bound, written as JSON, read back exactly as the worker will read them, and compared with what
was given. A value that does not come back the same is refused while the caller can still change it.
Values of plain scalar types cannot change on the way, so they skip the round trip. The args of many
jobs are checked together, as long as nothing about them needs a closer look (`rota.args.alike`).

What can fail: a signature that cannot be served, args that do not fit it, values that JSON or a
database would change silently (NaN, NUL, integers beyond 64 bits, naive datetimes, a tuple without
an annotation), and stored text that an older version of the task wrote. Each is an `ArgsError`,
naming task, parameter and path. Messages never hold a value: args may be secrets, and
messages end up in logs. For the same reason an `ArgsError` about a value has no `__cause__`.

Known weaknesses. A zone's name is not kept: `datetime`s arrive with the same instant and a fixed
offset. Private attributes and `model_fields_set` of pydantic models are not kept. Identity is not
kept: one list given twice arrives as two.
"""

from rota.args.encoding import MAX_ARGS_BYTES, ArgsCodec, ResultCodec

__all__ = ["MAX_ARGS_BYTES", "ArgsCodec", "ResultCodec"]
