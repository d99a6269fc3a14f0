"""An application without annotations, in both forms of the API: nothing is wrong with it."""

import wallaroo


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode("utf-8")


@wallaroo.computation(name="tidy")
def tidy(line):
    return line.strip() or None


@wallaroo.computation_multi(name="split")
def split(line):
    return line.split()


@wallaroo.partition
def whole(word):
    return word


class Votes:
    def __init__(self):
        self.count = 0


@wallaroo.state_computation(name="count")
def count(word, votes):
    votes.count += 1
    return (word, votes.count), True


@wallaroo.state_computation_multi(name="count twice")
def count_twice(word, votes):
    counted, changed = count(word, votes)
    return [counted] * 2, changed


@wallaroo.encoder
def encode(counted):
    return f"{counted}\n"


class Decoder:
    def header_length(self):
        return 4

    def payload_length(self, header):
        return int.from_bytes(header, "big")

    def decode(self, payload):
        return payload.decode("utf-8")


class Split:
    def name(self):
        return "split"

    def compute_multi(self, line):
        return line.split()


class Whole:
    def partition(self, word):
        return word


class VotesBuilder:
    def build(self):
        return Votes()


class Count:
    def name(self):
        return "count"

    def compute(self, word, votes):
        votes.count += 1
        return (word, votes.count), True


class CountTwice:
    def name(self):
        return "count twice"

    def compute_multi(self, word, votes):
        return [word, word], False


class Encoder:
    def encode(self, counted):
        return f"{counted}\n"


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    ab = wallaroo.ApplicationBuilder("Votes")
    ab.new_pipeline("decorated", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    ab.to(tidy)
    ab.to_parallel(split)
    ab.to_stateful(count, Votes, "votes")
    ab.to_stateful(count_twice, dict, "others")
    ab.to_state_partition(count, Votes, "by word", whole, ["a", 1])
    ab.to_state_partition_u64(count, Votes, "by number", whole)
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    ab.new_pipeline("classes", wallaroo.TCPSourceConfig(in_host, 0, Decoder))
    ab.to(Split)
    ab.to_parallel(Split())
    ab.to_stateful(Count(), VotesBuilder(), "votes of classes")
    ab.to_state_partition(CountTwice(), VotesBuilder(), "by word, of classes", Whole)
    ab.to_sinks([wallaroo.TCPSinkConfig(out_host, out_port, Encoder)])
    return ab.build()
