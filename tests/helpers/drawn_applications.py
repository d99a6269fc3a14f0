"""Applications of the builder and their input, drawn by Hypothesis from a few steps."""

from __future__ import annotations

from hypothesis import strategies as st

import wallaroo

LETTERS = "abdeiknprsuxz \u00e9\u20ac"
"""What messages are made of; several letters make a step of the catalogue misbehave."""


def decorated(decorator):
    return lambda function: decorator(name=function.__name__)(function)


stateless = decorated(wallaroo.computation)
stateless_multi = decorated(wallaroo.computation_multi)
stateful = decorated(wallaroo.state_computation)
stateful_multi = decorated(wallaroo.state_computation_multi)


@stateless
def same(text):
    return text


@stateless
def shout(text):
    return text.upper() if "p" in text else text


@stateless
def drop(text):
    return None if "d" in text else text


@stateless
def refuse(text):
    if "r" in text:
        raise LookupError(text)
    return text


@stateless
def leave(text):
    if text.endswith("x"):
        raise SystemExit(3)
    return text[1:] + "y"


@stateless_multi
def halves(text):
    return [text[:2], text[2:]]


@stateless_multi
def gaps(text):
    return (None, text) if "s" in text else [text, None]


@stateless_multi
def lazily(text):
    for letter in text[:2]:
        if letter == "r":
            raise ValueError(text)
        yield letter + text[2:]


@stateless_multi
def ill_shaped(text):
    return {"b": text, "k": {text}, "e": None, "i": 5}.get(text[:1], [text])


class Seen:
    def __init__(self):
        self.items = []
        self.visits = 0


@stateful
def collect(text, state):
    state.items.append(text)
    state.visits += 1
    return "".join(state.items)[-4:], True


@stateful
def look(text, state):
    if "r" in text:
        raise ValueError(text)
    if "b" in text:
        return [text, True]
    if "i" in text:
        return text, 1
    return (text + str(state.visits))[-4:], False


@stateful
def keep_quietly(text, state):
    state.visits += 1
    return (None if "n" in text else text), True


@stateful_multi
def tell_all(text, state):
    state.items.append(text)
    return state.items[-2:], True


@stateful_multi
def tell_whole_list(text, state):
    state.items = [*state.items[-1:], text]
    return state.items, True


@stateful_multi
def tell_lazily(text, state):
    def items():
        for letter in text[:2]:
            state.visits += 1
            yield letter + str(state.visits % 3)

    return (None if "e" in text else items()), True


@stateful_multi
def tell_ill_shaped(text, state):
    return (text if "k" in text else (text, None)), "s" in text


@wallaroo.partition
def first(text):
    return text[0]


@wallaroo.partition
def shape(text):
    return (len(text), (text[:1], text.encode()[-1:]))


@wallaroo.partition
def odd(text):
    return {"k": None, "i": True, "b": b"b", "n": 7, "e": 1.0}.get(text[:1], text[:1])


@wallaroo.partition
def code(text):
    return ord(text[0]) - 101 if text else 2**64


class FailingBuilder:
    """Its attribute is the same for all, so that the pipelines that share its partition agree."""

    def build(self):
        return Seen()


PARTITIONS = {
    "any": (Seen, None, False),
    "listed": (Seen, ["a", "b", "", 7, b"b", "\u00e9"], False),
    "built": (FailingBuilder(), None, False),
    "tuples": (Seen, [(0, ("", b"")), (1, ("a", b"a")), (2, ("a", b"b"))], False),
    "numbers": (Seen, None, True),
    "few numbers": (Seen, [0, 9, 2**64 - 1], True),
}


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return None if payload[:1] == b"z" else payload.decode("utf-8")


@wallaroo.encoder
def plain(text):
    return text + ";"


@wallaroo.encoder
def picky(text):
    if "e" in text:
        raise KeyError(text)
    return {"n": None, "i": 5, "u": "\ud800", "b": text.encode()}.get(text[:1], text)


stateless_steps = st.builds(
    lambda method, computation: (method, computation),
    st.sampled_from(["to", "to_parallel"]),
    st.sampled_from([same, shout, drop, refuse, leave, halves, gaps, lazily, ill_shaped]),
)
state_computations = st.sampled_from(
    [collect, look, keep_quietly, tell_all, tell_whole_list, tell_lazily, tell_ill_shaped]
)
single_steps = st.builds(
    lambda computation, name: ("to_stateful", computation, Seen, name),
    state_computations,
    st.sampled_from(["one", "other"]),
)


@st.composite
def keyed_steps(draw):
    name = draw(st.sampled_from(sorted(PARTITIONS)))
    builder, keys, u64 = PARTITIONS[name]
    method = "to_state_partition_u64" if u64 else "to_state_partition"
    route = draw(st.sampled_from([code, odd] if u64 else [first, shape, odd]))
    return (method, draw(state_computations), builder, name, route, keys)


pipelines = st.tuples(
    st.lists(st.one_of(stateless_steps, single_steps, keyed_steps()), max_size=6),
    st.lists(st.sampled_from([plain, picky]), max_size=3),
)
payloads = st.one_of(
    st.text(LETTERS, max_size=4).map(str.encode), st.binary(max_size=2), st.just(b"")
)


def build(drawn):
    builder = wallaroo.ApplicationBuilder("drawn")
    for index, (steps, encoders) in enumerate(drawn):
        builder.new_pipeline(f"p{index}", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        for method, *arguments in steps:
            getattr(builder, method)(*arguments)
        if encoders:
            builder.to_sinks([wallaroo.TCPSinkConfig("127.0.0.1", 1, one) for one in encoders])
        else:
            builder.done()
    return builder.build()


@st.composite
def cases(draw):
    application = build(draw(st.lists(pipelines, min_size=1, max_size=3)))
    sources = st.sampled_from(sorted(application.sources))
    log = draw(st.lists(st.tuples(sources, payloads), max_size=8))
    return application, log, draw(st.sampled_from(["skip", "skip", "stop"]))
