"""The positions of all parts of the picture, in pixels. `svg` draws it.

Each pipeline is a lane, left to right; the branches of a pipeline are rows of its lane. A flow runs
along its node's row and changes rows and lanes in the gap before the node that it leads to, so that
it crosses no box. A state partition is placed below the first lane that uses it, with a line, a
*tie*, to every step that uses it.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from wallaroo.drawing.labels import Label, ends_open, node_label, partition_label, users
from wallaroo.operations import Branch
from wallaroo.topology import Application, Source, Step

MARGIN = 24
TITLE = 44  # height of the application's name
HEIGHT = 66  # of a node
PARTITION_HEIGHT = 82
NAME_SIZE = 15.5  # as wide as bold text of 14 pixels is
SMALL_SIZE = 11.5
_GAP = 52  # between columns: room for arrows and for ties
_ROW_GAP = 18  # between the rows of one lane
_LANE_TITLE = 34
_LANE_PADDING = 20
_LANE_GAP = 28
_NARROWEST, _WIDEST = 132, 400
_TURN = 22  # before a column, where flows change rows and lanes
_TRACKS = 4  # ties that run side by side in one gap between columns

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A node's or partition's rectangle and its label."""

    x: float
    y: float
    width: float
    height: float
    label: Label

    @property
    def right(self) -> float:
        """The right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.y + self.height

    @property
    def middle(self) -> Point:
        """The centre."""
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(frozen=True)
class Lane:
    """A pipeline's background."""

    pipeline: str
    y: float
    height: float


def text_width(text: str, size: float) -> float:
    """Return the approximate width of `text` in a proportional font of `size` pixels."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return size * (0.56 * (len(text) - wide) + 1.0 * wide)


class Layout:
    """The whole picture.

    Attributes:
        width: of the picture.
        height: of the picture.
        lanes: the pipelines.
        nodes: a box per node of the application.
        partitions: a box per state partition.
        flows: for each flow from a node to the next its corners.
        dones: for each end by `done()` the corners of the flow to it; the last is its place.
        ties: for each tie between a step and its partition its corners.
    """

    def __init__(self, application: Application) -> None:
        self.application = application
        nodes = application.nodes
        self.lane_of = {name: index for index, name in enumerate(application.sources)}
        self.users: list[list[int]] = [
            users(application, partition) for partition in application.partitions
        ]
        self.labels = [node_label(application, node) for node in nodes]
        self.partition_labels = [partition_label(application, p) for p in application.partitions]
        self.columns = self._columns()
        self.ends = ends_open(application)
        self.rows, self.depths = self._rows_of_lanes()
        self.x, self.widths = self._places()
        self._place_boxes()
        self.flows = [
            self._flow(self.nodes[origin], self.nodes[index], self.columns[index])
            for index, node in enumerate(nodes)
            if not isinstance(node, Source)
            for origin in node.inputs
        ]
        self.dones = [self._done(self.nodes[index], self.columns[index]) for index in self.ends]
        self.ties = self._ties()

    def _columns(self) -> list[int]:
        """Return each node's column, counted from 0: that behind all its inputs."""
        columns: list[int] = []
        for node in self.application.nodes:
            inputs = () if isinstance(node, Source) else node.inputs
            columns.append(max([columns[origin] + 1 for origin in inputs], default=0))
        return columns

    def _rows_of_lanes(self) -> tuple[list[int], list[int]]:
        """Return each node's row in its lane, and the number of rows of each lane."""
        nodes = self.application.nodes
        taken: set[tuple[int, int, int]] = set()  # lane, row, column
        rows = [0] * len(nodes)
        depths = [1] * len(self.lane_of)
        for index, node in enumerate(nodes):
            lane = self._lane(index)
            inputs = () if isinstance(node, Source) else node.inputs
            row = next((rows[origin] for origin in inputs if self._lane(origin) == lane), 0)
            if (
                isinstance(node, Step)
                and isinstance(node.operation, Branch)
                and node.operation.number
            ):
                row = depths[lane]  # below everything that earlier branches lead to
            # The node that it leads to may stand further right: the cells up to there are its own.
            furthest = [self.columns[consumer] for consumer in self.application.consumers[index]]
            last = max(furthest, default=self.columns[index] + (2 if index in self.ends else 1))
            wanted = range(self.columns[index], max(last, self.columns[index] + 1))
            while any((lane, row, column) in taken for column in wanted):
                row += 1
            taken.update((lane, row, column) for column in wanted)
            rows[index] = row
            depths[lane] = max(depths[lane], row + 1)
        return rows, depths

    def _places(self) -> tuple[list[float], list[float]]:
        """Return each column's left edge and width; the last is the right edge of all."""
        widths = [float(_NARROWEST)] * (max(self.columns) + 2)
        homes = [self._home(partition) for partition in range(len(self.users))]
        boxes = list(zip(self.columns, self.labels, strict=True))
        boxes += zip(homes, self.partition_labels, strict=True)
        for column, label in boxes:
            widest = max(
                text_width(label.name, NAME_SIZE),
                text_width(label.detail, SMALL_SIZE),
                text_width(label.kind, SMALL_SIZE),
            )
            widths[column] = max(widths[column], min(widest + 28, _WIDEST))
        x = [float(MARGIN + _LANE_PADDING)]
        for width in widths:
            x.append(x[-1] + width + _GAP)
        return x, widths

    def _first_lane(self, partition: int) -> int:
        return min(self._lane(user) for user in self.users[partition])

    def _home(self, partition: int) -> int:
        """Return the partition's column: that of its first step in its first lane."""
        lane = self._first_lane(partition)
        return min(self.columns[u] for u in self.users[partition] if self._lane(u) == lane)

    def _lane(self, node: int) -> int:
        return self.lane_of[self.application.nodes[node].pipeline]

    def _rows(self, lane: int) -> list[list[int]]:
        """Return the partitions below `lane`, those in one row side by side without overlap."""
        rows: list[list[int]] = []
        for partition in range(len(self.users)):
            if self._first_lane(partition) != lane:
                continue
            span = self._span(partition)
            for row in rows:
                if all(_apart(span, self._span(other)) for other in row):
                    row.append(partition)
                    break
            else:
                rows.append([partition])
        return rows

    def _span(self, partition: int) -> tuple[int, int]:
        columns = [self.columns[user] for user in self.users[partition]]
        return min(columns), max(columns)

    def _place_boxes(self) -> None:
        """Set the lanes, the boxes and the size of the picture, lane by lane."""
        nodes = self.application.nodes
        y = float(MARGIN + TITLE)
        boxes: dict[int, Box] = {}
        partitions: dict[int, Box] = {}
        self.lanes: list[Lane] = []
        last_column = max(self.columns)
        for name, lane in self.lane_of.items():
            members = [i for i, node in enumerate(nodes) if node.pipeline == name]
            top = y + _LANE_TITLE
            for index in members:
                column = self.columns[index]
                own_y = top + self.rows[index] * (HEIGHT + _ROW_GAP)
                boxes[index] = Box(
                    self.x[column], own_y, self.widths[column], HEIGHT, self.labels[index]
                )
                if index in self.ends:
                    last_column = max(last_column, column + 1)
            inside = self.depths[lane] * (HEIGHT + _ROW_GAP) - _ROW_GAP
            height = _LANE_TITLE + inside + _LANE_PADDING
            self.lanes.append(Lane(name, y, height))
            y += height + _LANE_GAP
            for row in self._rows(lane):
                for partition in row:
                    column = self._home(partition)
                    width, label = self.widths[column], self.partition_labels[partition]
                    partitions[partition] = Box(self.x[column], y, width, PARTITION_HEIGHT, label)
                y += PARTITION_HEIGHT + _LANE_GAP
        right = self.x[last_column] + self.widths[last_column] + _LANE_PADDING + MARGIN
        title = text_width(self.application.name, 20) + 2 * MARGIN
        self.width = max(right, min(title, 2 * _WIDEST))
        self.height = y - _LANE_GAP + MARGIN
        self.nodes = [boxes[index] for index in range(len(nodes))]
        self.partitions = [partitions[index] for index in range(len(self.users))]

    def _flow(self, origin: Box, end: Box, column: int) -> list[Point]:
        """Return the corners of a flow, which changes its height in the gap before `column`."""
        (_, from_y), (_, to_y) = origin.middle, end.middle
        if from_y == to_y:
            return [(origin.right, from_y), (end.x, to_y)]
        turn = self.x[column] - _TURN
        return [(origin.right, from_y), (turn, from_y), (turn, to_y), (end.x, to_y)]

    def _done(self, box: Box, column: int) -> list[Point]:
        """Return the corners of the flow to a `done()`, which stands in the next column."""
        y = box.middle[1]
        return [(box.right, y), (self.x[column + 1] + 12, y)]

    def _free(self, node: int, rows: range) -> bool:
        """Return whether no box stands in these rows of a node's lane and column."""
        place = self._lane(node), self.columns[node]
        return not any(
            (self._lane(other), self.columns[other]) == place and self.rows[other] in rows
            for other in range(len(self.rows))
        )

    def _ties(self) -> list[list[Point]]:
        ties: list[list[Point]] = []
        tracks = 0
        for partition, box in enumerate(self.partitions):
            first, home = self._first_lane(partition), self._home(partition)
            level = box.middle[1] - 18  # where the next tie meets the partition's side
            for user in self.users[partition]:
                step, column, lane = self.nodes[user], self.columns[user], self._lane(user)
                x = step.middle[0]
                below = self._free(user, range(self.rows[user] + 1, self.depths[lane]))
                above = self._free(user, range(self.rows[user]))
                if lane == first and column == home and below:
                    ties.append([(x, step.bottom), (x, box.y)])
                    continue
                if lane == first + 1 and column == home and above:
                    ties.append([(x, step.y), (x, box.bottom)])
                    continue
                # Through the gap beside the step's column, so that it crosses no box.
                side = box.x if column < home else box.right
                track = step.right + 12 + 9 * (tracks % _TRACKS)
                tracks += 1
                start = step.right - 18
                edge, beside = (
                    (step.bottom, step.bottom + 9) if lane == first else (step.y, step.y - 9)
                )
                way = [(start, edge), (start, beside), (track, beside), (track, level)]
                ties.append([*way, (side, level)])
                level = min(level + 9, box.bottom - 14)
        return ties


def _apart(first: tuple[int, int], second: tuple[int, int]) -> bool:
    return first[1] < second[0] or second[1] < first[0]
