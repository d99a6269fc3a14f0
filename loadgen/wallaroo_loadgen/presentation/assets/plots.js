// Draws the figures of presentation/plots.py with uPlot: `drawPlot(element, figure)` for one, and
// those that stand in the page when it is loaded. Drag over a plot to look closer; double click to
// see all of it again.
"use strict";

const HEIGHT = 320;
const SIDE = 82;  // of an axis with its label
const GRID = {stroke: "#eef0f3", width: 1};
const FONT = "12px system-ui, sans-serif";

function brief(value) {
  if (value == null) return "–";
  return value >= 1000 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(3));
}

function position(axis, value) {
  return axis.inverse ? "p" + +(100 * (1 - 1 / value)).toFixed(4) : brief(value);
}

// An axis without ends is fitted to the data. The data's own range means "all of it"; anything else
// was chosen with the mouse.
function scaleOf(axis, isX) {
  const {low, high, log} = axis;
  const range = (plot, min, max) => {
    const [first, last] = isX ? [plot.data[0][0], plot.data[0].at(-1)] : [min, max];
    if (min == null || (min <= first && max >= last)) {
      min = low ?? (log ? (min ?? 0.2) / 1.5 : min ?? 0);
      max = high ?? (log ? (max ?? 5) * 1.5 : (max || 1) * 1.05);
    }
    return min < max ? [min, max] : log ? [min / 2, min * 2] : [min, min + 1];
  };
  return {time: false, distr: log ? 3 : 1, range};
}

function axisOf(axis, scale, side) {
  const drawn = {scale, side, label: axis.label, font: FONT, labelFont: FONT, stroke: "#374151",
                 grid: GRID, ticks: {...GRID, size: 5}, size: side % 2 ? SIDE - 22 : 36, labelSize: 22};
  if (axis.ticks) {
    const words = new Map(axis.ticks);
    drawn.splits = () => [...words.keys()];
    drawn.values = (plot, splits) => splits.map((split) => words.get(split));
    drawn.filter = (plot, splits) => splits;
  } else {
    drawn.values = (plot, splits) => splits.map((split) => split == null ? "" : brief(split));
  }
  return drawn;
}

function seriesOf(line) {
  const series = {label: line.name, scale: line.right ? "right" : "y", stroke: line.colour,
                  width: line.filled ? 1 : 1.75, dash: line.dash.length ? line.dash : undefined,
                  points: {show: false}, value: (plot, value) => brief(value)};
  if (line.filled) series.fill = line.colour + "33";
  if (line.steps) series.paths = uPlot.paths.stepped({align: 1});
  series.marks = new Map(line.marks.map((good, index) => [line.x[index], good]));
  return series;
}

function inside(plot, draw) {
  const {ctx, bbox} = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw(ctx, (value, scale = "x") => plot.valToPos(value, scale, true));
  ctx.restore();
}

function shade(part) {  // 0 to 1: from light to dark, without a hue: hues belong to lines
  const tone = Math.round(232 - 122 * part);
  return `rgb(${tone},${tone},${tone + 6})`;
}

function drawHeat(plot, heat) {
  const most = Math.log(heat.most + 1);
  inside(plot, (ctx, at) => {
    for (const [column, row, count] of heat.cells) {
      const left = at(heat.x[column]), right = at(heat.x[column + 1]);
      const top = at(heat.y[row + 1], "y"), bottom = at(heat.y[row], "y");
      ctx.fillStyle = shade(Math.log(count + 1) / most);
      ctx.fillRect(left, top, right - left + 0.5, bottom - top + 0.5);
    }
  });
}

function drawSpan(plot, [from, to, name]) {
  inside(plot, (ctx, at) => {
    ctx.fillStyle = "#f5f6f8";
    ctx.fillRect(at(from), plot.bbox.top, at(to) - at(from), plot.bbox.height);
    ctx.fillStyle = "#6b7280";
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "top";
    ctx.fillText(name, at(from) + 6, plot.bbox.top + 4);
  });
}

function drawMarks(plot, figure) {
  const size = 4.5 * devicePixelRatio;
  inside(plot, (ctx, at) => {
    ctx.lineWidth = 2 * devicePixelRatio;
    for (const [value, colour] of figure.at) {
      ctx.strokeStyle = colour;
      ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(at(value), plot.bbox.top);
      ctx.lineTo(at(value), plot.bbox.top + plot.bbox.height);
      ctx.stroke();
    }
    ctx.setLineDash([]);
    plot.series.forEach((series, index) => {
      if (!series.marks || !series.show) return;
      ctx.strokeStyle = ctx.fillStyle = series.stroke(plot, index);
      series.marks.forEach((good, value) => {
        const place = plot.data[0].indexOf(value), height = plot.data[index][place];
        if (height == null) return;
        const x = at(value), y = at(height, series.scale);
        ctx.beginPath();
        if (good) {
          ctx.arc(x, y, size, 0, 2 * Math.PI);
          ctx.fill();
        } else {
          for (const way of [-1, 1]) {
            ctx.moveTo(x - size, y - way * size);
            ctx.lineTo(x + size, y + way * size);
          }
          ctx.stroke();
        }
      });
    });
  });
}

// The heat's own entry in the legend: the cell under the mouse.
function underMouse(plot, heat) {
  const {left, top} = plot.cursor;
  if (!(left >= 0 && top >= 0)) return "–";
  const x = plot.posToVal(left, "x"), y = plot.posToVal(top, "y");
  const column = heat.x.findLastIndex((edge) => edge <= x);
  const row = heat.y.findLastIndex((edge) => edge <= y);
  const cell = heat.cells.find((cell) => cell[0] === column && cell[1] === row);
  return brief(cell ? cell[2] : 0);
}

function dataOf(figure) {
  const tables = figure.lines.map((line) => [line.x, line.y]);
  if (figure.heat) {
    figure.heat.most = Math.max(1, ...figure.heat.cells.map((cell) => cell[2]));
    const middles = figure.heat.x.slice(1).map((edge, index) => (edge + figure.heat.x[index]) / 2);
    tables.push([middles, middles.map(() => null)]);
  }
  return tables.length ? uPlot.join(tables) : [[0, 1]];
}

function drawPlot(element, figure) {
  const data = dataOf(figure);
  if (element.plot) element.plot.destroy();
  const x = {label: figure.x.label, value: (plot, value) => value == null ? "–" : position(figure.x, value)};
  const series = [x, ...figure.lines.map((line) => seriesOf(line))];
  const {heat} = figure;
  if (heat) {
    series.push({label: `${heat.name} (1 light, ${brief(heat.most)} dark)`, scale: "y", width: 0,
                 stroke: "#555", fill: "#888", value: (plot) => underMouse(plot, heat)});
  }
  const scales = {x: scaleOf(figure.x, true), y: scaleOf(figure.y)};
  const axes = [axisOf(figure.x, "x", 2), axisOf(figure.y, "y", 3)];
  if (figure.right) {
    scales.right = scaleOf(figure.right);
    axes.push({...axisOf(figure.right, "right", 1), grid: {show: false}});
  }
  const cursor = {y: false, points: {size: 7}};
  if (figure.together) cursor.sync = {key: figure.together, scales: ["x", null]};
  const width = () => Math.max(300, element.clientWidth);
  const colour = (plot, index) => {
    const line = figure.lines[index - 1];
    return line ? (line.dash.length ? "transparent" : line.colour) : shade(0.7);
  };
  const plot = new uPlot({
    width: width(), height: HEIGHT, series, scales, axes, cursor,
    padding: [12, figure.right ? 0 : SIDE, 0, 0],  // plots one above the other stay in line
    legend: {markers: {fill: colour}},
    hooks: {
      drawClear: [(plot) => {
        if (figure.span) drawSpan(plot, figure.span);
      }],
      drawAxes: [(plot) => {
        if (heat) drawHeat(plot, heat);
      }],
      draw: [(plot) => drawMarks(plot, figure)],
    },
  }, data, element);
  element.plot = plot;
  if (!element.resizing) {
    element.resizing = new ResizeObserver(
      () => element.plot.setSize({width: width(), height: HEIGHT}));
    element.resizing.observe(element);
  }
}

for (const element of document.querySelectorAll("figure.plot")) {
  drawPlot(element, JSON.parse(element.querySelector("script").textContent));
}
