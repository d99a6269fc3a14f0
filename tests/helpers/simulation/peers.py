"""Senders and receivers: they do what the plan says and note what they are told."""

from __future__ import annotations

from collections.abc import Callable

from simulation.network import Address, Link, Network
from simulation.plans import Sending, Trouble
from simulation.world import Broken, World
from wallaroo.frames import frame
from wallaroo.transport.resumption import kept_line

_PIECE = 40  # bytes, at most, that arrive together; now and then ten times as many
_PAUSE = 0.002  # seconds, at most, between two pieces
_AGAIN = 0.02  # seconds until a sender tries to connect again
TOO_LARGE = b"\xff\xff\xff\xff"
"""A header that claims more than any source takes."""


class Sender:
    """A connection to the engine.

    Args:
        world: its time and its chances.
        network: on which it connects.
        plan: what it does.
        address: of the source.
        payloads: the payloads of its frames.
        ended: called when the connection is at its end.

    Attributes:
        connected: it has been connected.
        over: its connection is at its end, or it will not come to any.
        told: number of frames that the engine has said are taken; `None`: it has not.
        silent: it has said that nothing more comes.
        sent_at: when it last sent something, or was connected.
        paused: seconds before that in which it sent nothing.
    """

    def __init__(
        self,
        world: World,
        network: Network,
        plan: Sending,
        address: Address,
        payloads: list[bytes],
        ended: Callable[[Sender], None],
    ) -> None:
        self.plan = plan
        self.payloads = payloads
        self.life: int | None = None
        self.over = False
        self.told: int | None = None
        self.silent = False
        self.sent_at = 0.0
        self.paused = 0.0
        self._world = world
        self._network = network
        self._address = address
        self._ended = ended
        self._chance = world.chance("sender", plan.number)
        self._link: Link | None = None
        self._data = b"".join(map(frame, payloads)) + (TOO_LARGE if plan.too_large else b"")
        self._sent = 0

    @property
    def connected(self) -> bool:
        """Whether it has been connected."""
        return self._link is not None

    @property
    def done(self) -> bool:
        """Whether it has sent everything."""
        return self._sent == len(self._data)

    def start(self) -> None:
        """Connect, now or as soon as somebody listens."""
        if self._link is not None or self.over:
            return
        self._link = self._network.connect(self._address, self)
        if self._link is None:
            self._world.beside(_AGAIN, self.start)
        else:
            self.life = self._world.life
            self.sent_at = self._world.now
            self._world.beside(self._chance.uniform(0, _PAUSE), self._send)

    def got(self, data: bytes) -> None:
        """Take what a source never sends."""
        raise AssertionError(data)

    def ended(self, *, in_order: bool) -> None:
        """Notice the end."""
        self.over = True
        if in_order:
            self.told = self.whole()
        self._ended(self)

    def whole(self) -> int:
        """Return how many frames have been sent completely."""
        left, count = self._sent, 0
        for payload in self.payloads:
            left -= len(payload) + 4
            if left < 0:
                break
            count += 1
        return count

    def _send(self) -> None:
        link = self._link
        assert link is not None
        if self.over or link.gone:
            return
        stop = len(self._data) if self.plan.breaks_at is None else self.plan.breaks_at
        most = _PIECE if self._chance.random() < 0.8 else 10 * _PIECE
        size = min(self._chance.randint(1, most), stop - self._sent, link.room)
        if size > 0:
            link.send(self._data[self._sent : self._sent + size])
            self._sent += size
            self.paused = self._world.now - self.sent_at
            self.sent_at = self._world.now
        elif self._sent >= min(stop, len(self._data)):
            self._finish(link)
            return
        self._world.beside(self._chance.uniform(0, _PAUSE), self._send)

    def _finish(self, link: Link) -> None:
        if self.plan.breaks_at is not None:
            link.reset()
            self.over = True
        elif self.plan.half_closes:
            self.silent = True
            link.half_close()


class Receiver:
    """What a sink connects to.

    Attributes:
        connections: all of them, in the order in which they were made.
    """

    def __init__(
        self, world: World, network: Network, address: Address, troubles: list[Trouble]
    ) -> None:
        self.connections: list[Received] = []
        self.count = 0
        self._world = world
        self._away_until = 0.0
        self._troubles = sorted(troubles, key=lambda trouble: trouble.at)
        network.receivers[address] = self._take

    def _take(self) -> Received | None:
        if self._world.now < self._away_until:
            return None
        connection = Received(self, self._world.life)
        self.connections.append(connection)
        return connection

    def after(self, connection: Received) -> None:
        """Do what the plan says once so many bytes are there."""
        while self._troubles and self.count >= self._troubles[0].at:
            trouble = self._troubles.pop(0)
            if trouble.does == "half-close":
                connection.link.half_close()
            elif trouble.does == "stall":
                connection.link.stall(trouble.seconds)
            else:
                connection.cut = True
                connection.link.reset()
                if trouble.does == "go away":
                    self._away_until = self._world.now + trouble.seconds


class Received:
    """A connection of a sink.

    Attributes:
        data: what has arrived.
        life: number of the process that made it.
        cut: it may have ended inside an output.
    """

    link: Link

    def __init__(self, receiver: Receiver, life: int) -> None:
        self.data = bytearray()
        self.life = life
        self.cut = False
        self._receiver = receiver

    def got(self, data: bytes) -> None:
        """Take bytes."""
        self.data += data
        self._receiver.count += len(data)
        self._receiver.after(self)

    def ended(self, *, in_order: bool) -> None:
        """Notice the end."""
        self.cut = self.cut or not in_order


class Remembering(Receiver):
    """A receiver that keeps its stream, and says at each connection how much it has (sink-9).

    Attributes:
        kept: the stream.
    """

    def __init__(
        self, world: World, network: Network, address: Address, troubles: list[Trouble]
    ) -> None:
        super().__init__(world, network, address, troubles)
        self.kept = bytearray()
        self.told = 0  # it may not forget these bytes
        self.world = world
        self.chance = world.chance("remembering", address)
        self.tells = self.chance.choice((0.0, 0.5, 1.0))
        """Of its connections so many, during which it says again how much it has."""

    def _take(self) -> Received | None:
        if self._world.now < self._away_until:
            return None
        connection = Remembered(self, self.world.life)
        self.connections.append(connection)
        self.world.beside(0.0, connection.begin)
        return connection

    def forget_some(self) -> None:
        """Lose bytes of which it has not said that they are kept, as a process that is killed."""
        del self.kept[self.chance.randint(self.told, len(self.kept)) :]


class Remembered(Received):
    """A connection of a sink with a peer that remembers."""

    def __init__(self, receiver: Remembering, life: int) -> None:
        super().__init__(receiver, life)
        self._peer = receiver
        self._world = receiver.world
        self._begun = False
        self._tells = receiver.chance.random() < receiver.tells
        self._figures: list[int] = []  # which it will say together

    def begin(self) -> None:
        """Say how much is kept."""
        self._begun = True
        self._figures = [len(self._peer.kept)]
        self._tell()

    def got(self, data: bytes) -> None:
        """Keep bytes, unless there is a later connection."""
        if self._peer.connections[-1] is not self:
            return
        if not self._begun:
            raise Broken("sink-9: outputs came before the peer had said how much it has")
        self._peer.kept += data
        super().got(data)
        if self._tells:
            self._figures.append(len(self._peer.kept))
            if len(self._figures) == 1:
                self._world.beside(self._peer.chance.uniform(0, _PAUSE), self._tell)

    def ended(self, *, in_order: bool) -> None:
        """Notice the end; the peer may have been killed with it."""
        super().ended(in_order=in_order)
        lost = not in_order and self._peer.chance.random() < 0.3
        if lost and self._peer.connections[-1] is self:
            self._peer.forget_some()

    def _tell(self) -> None:
        figures, self._figures = self._figures, []
        if self._peer.connections[-1] is self and not self.link.gone:
            self._peer.told = figures[-1]
            self.link.send(b"".join(map(kept_line, figures)))
