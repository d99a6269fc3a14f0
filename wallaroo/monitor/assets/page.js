// Shows the figures that /events sends every second. Texts are set as text, never as markup: names,
// keys and errors come from users.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const PLACES = 16;  // partitions of a topic that are shown, those with the greatest lag
const KEPT = 900;  // values of a line, as the server keeps them
const byId = (id) => document.getElementById(id);

// -- texts ---------------------------------------------------------------------------------------

function number(value) {
  if (value == null) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toPrecision(3) + " G";
  if (size >= 1e6) return (value / 1e6).toPrecision(3) + " M";
  if (size >= 1e4) return (value / 1e3).toPrecision(3) + " k";
  return size >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en")
    : String(+value.toPrecision(3));
}

function whole(value) { return value == null ? "–" : Math.round(value).toLocaleString("en"); }
function rate(value) { return value == null ? "–" : number(value) + "/s"; }
function share(value) { return value == null ? "–" : (100 * value).toFixed(value < 0.0995 ? 1 : 0) + " %"; }

function bytes(value) {
  if (value == null) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) { value /= 1000; at += 1; }
  return (at ? value.toPrecision(3) : value) + " " + units[at];
}

function duration(seconds) {
  if (seconds == null) return "–";
  if (seconds <= 0) return seconds ? "-" + duration(-seconds) : "0 s";
  for (const [size, unit, part, name] of [[86400, "days", 86400, ""], [3600, "h", 60, "min"], [60, "min", 1, "s"]])
    if (seconds >= 2 * size) {
      const parts = Math.round(seconds / part), whole = Math.floor(parts / (size / part)), rest = parts % (size / part);
      return `${whole.toLocaleString("en")} ${unit}` + (rest ? ` ${rest} ${name}` : "");
    }
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]])
    if (seconds >= size) return +(seconds / size).toPrecision(3) + " " + unit;
  return +(seconds / 1e-9).toPrecision(3) + " ns";
}

function long(seconds) { return duration(Math.round(seconds)); }

// Dates are written in one way, whatever the browser's language: 2026-03-02 16:45:00.
function date(time) { return new Date(1000 * time).toLocaleString("sv-SE"); }
function clock(time) { return new Date(1000 * time).toLocaleTimeString("sv-SE"); }

// As wallaroo.text.escaped: on one line, and nothing that a screen would obey.
function shown(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu,
    (one) => "\\u{" + one.codePointAt(0).toString(16) + "}");
}

// -- elements ------------------------------------------------------------------------------------

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text != null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function drawn(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text != null) made.textContent = text;
  return made;
}

function fill(id, heads, rows) {
  const table = byId(id), head = element("thead"), body = element("tbody");
  const first = element("tr");
  for (const one of heads) first.append(element("th", one, {scope: "col"}));
  head.append(first);
  for (const {cells, slow, id: row} of rows) {
    const line = element("tr", null, row ? {id: row} : {});
    if (slow) line.className = "slow";
    for (const one of cells) line.append(element("td", one));
    body.append(line);
  }
  table.replaceChildren(head, body);
}

// -- the picture ---------------------------------------------------------------------------------

const picture = document.querySelector("#picture svg");
const parts = new Map();  // of the picture: what was added, by name

function part(name, parent, tag, attributes) {
  if (!parts.has(name)) {
    const made = drawn(tag, attributes);
    parent.append(made);
    parts.set(name, made);
  }
  return parts.get(name);
}

function showPicture(figures) {
  const nodes = new Map([...figures.sources, ...figures.steps, ...figures.sinks].map((n) => [n.node, n]));
  for (const group of picture.querySelectorAll("[data-node]")) {
    const index = Number(group.dataset.node), node = nodes.get(index);
    const box = group.querySelector(".box").getBBox();
    group.classList.toggle("slow", figures.verdict.node === index);
    const bar = part("bar" + index, group, "rect",
      {class: "bar", x: box.x + 10, y: box.y + box.height - 7, height: 4, rx: 2, width: 0});
    bar.setAttribute("width", Math.max(0, Math.min(1, node.load)) * (box.width - 20));
    const text = part("text" + index, group, "text",
      {class: "live", x: box.x + box.width / 2, y: box.y + box.height + 13});
    const words = [];
    if (node.time.count) words.push(duration(node.time.mean), share(node.load));
    if (node.waiting) words.push(number(node.waiting) + " wait");
    if (node.kind === "sink" && !node.connected) words.push("away");
    text.textContent = words.join(" · ");
    const dead = Object.values(node.dead_letters).reduce((sum, one) => sum + one, 0);
    part("dead" + index, group, "text", {class: "dead", x: box.x + box.width - 10, y: box.y + 15})
      .textContent = dead ? "✕ " + number(dead) : "";
  }
  for (const flow of picture.querySelectorAll("[data-from]")) {
    const from = nodes.get(Number(flow.dataset.from)), name = flow.dataset.from + ">" + flow.dataset.to;
    const length = flow.getTotalLength(), end = flow.getPointAtLength(Math.max(0, length - 18));
    part(name, picture, "text", {class: "rate", x: end.x, y: end.y - 8}).textContent =
      from && from.sent_rate ? number(from.sent_rate) + "/s" : "";
  }
  for (const group of picture.querySelectorAll("[data-partition]")) {
    const found = figures.partitions.find((one) => shown(one.name) === shown(group.dataset.partition));
    if (!found) continue;
    const box = group.querySelector(".box").getBBox(), most = found.busiest.length ? found.busiest[0].share : 0;
    group.querySelector(".box").style.fill =
      `color-mix(in srgb, var(--c) ${Math.round(100 * Math.min(0.6, most))}%, var(--paper))`;
    part("state" + found.name, group, "text", {class: "live", x: box.x + box.width / 2, y: box.y + box.height + 13})
      .textContent = whole(found.entities) + " entities" + (most > 0.2 ? " · busiest " + share(most) : "");
  }
}

picture.addEventListener("click", (event) => {
  const group = event.target.closest("[data-node]");
  if (!group) return;
  const row = byId("node" + group.dataset.node);
  if (row) row.scrollIntoView({behavior: "smooth", block: "center"});
});

function keysOf(one) { return one.busiest.map((key) => `${shown(key.key)} ${share(key.share)}`).join(", ") || "–"; }
function skewOf(spread) { return spread.skew == null ? "–" : spread.skew.toFixed(2); }

// -- tiles and tables ----------------------------------------------------------------------------

function showTiles(figures) {
  const sum = (items, name) => items.reduce((total, one) => total + one[name], 0);
  const busiest = figures.sources.reduce((best, one) =>
    one.latency.recent.count > best.latency.recent.count ? one : best, figures.sources[0]);
  const latency = busiest ? busiest.latency.recent : {};
  const tiles = [
    ["in", rate(sum(figures.sources, "frame_rate"))], ["processed", rate(figures.processed_rate)], ["out", rate(sum(figures.sinks, "write_rate"))],
    ["latency p50", duration(latency.p50)], ["latency p99", duration(latency.p99)],
    ["backlog", number(figures.backlog)], ["outputs waiting", number(sum(figures.sinks, "waiting"))],
    ["dead letters", whole(figures.dead_letters)], ["busy", share(figures.busy)],
    ["processor", share(figures.process.cpu)], ["memory", bytes(figures.process.memory_bytes)],
  ];
  const list = byId("tiles");
  if (list.children.length !== tiles.length)
    list.replaceChildren(...tiles.map(([name]) => {
      const tile = element("div");
      tile.append(element("dt", name), element("dd"));
      return tile;
    }));
  tiles.forEach(([, value], index) => { list.children[index].lastChild.textContent = value; });
}

function letters(counts) {
  return Object.entries(counts).map(([why, count]) => whole(count) + " " + why).join(", ") || "0";
}

function showTables(figures) {
  const slow = (one) => figures.verdict.node === one.node;
  fill("sources", ["source", "frames", "rate", "bytes", "backlog", "connections", "refused", "dropped", "decode p50", "latency p50", "p99", "p99.9", "max", "dead letters"],
    figures.sources.map((one) => ({id: "node" + one.node, slow: slow(one), cells: [shown(one.name),
      whole(one.frames), rate(one.frame_rate), bytes(one.bytes), whole(one.backlog), whole(one.connections),
      whole(one.refused_connections), whole(one.dropped_frames), duration(one.time.p50),
      ...["p50", "p99", "p99.9", "max"].map((name) => duration(one.latency.recent[name])), letters(one.dead_letters)]})));
  const topics = figures.sources.filter((one) => Object.keys(one.position).length);
  byId("topics-section").hidden = !topics.length;
  fill("topics", ["source", "from", "partition", "position", "lag"], topics.flatMap((one) =>
    Object.entries(one.lag).sort(([, a], [, b]) => b - a).slice(0, PLACES).map(([partition, lag]) =>
      ({cells: [shown(one.name), shown(one.address), partition, whole(one.position[partition]), whole(lag)]}))));
  fill("steps", ["step", "pipeline", "in", "out", "rate", "load", "mean", "p50", "p99", "max", "dead letters"],
    figures.steps.map((one) => ({id: "node" + one.node, slow: slow(one), cells: [shown(one.label), shown(one.pipeline),
      whole(one.received), whole(one.sent), rate(one.received_rate), share(one.load), duration(one.time.mean),
      duration(one.time.p50), duration(one.time.p99), duration(one.time.max), letters(one.dead_letters)]})));
  fill("sinks", ["sink", "to", "delivered", "rate", "bytes", "waiting", "oldest", "connection", "reconnects", "committed", "latency p50", "p99", "max", "dead letters"],
    figures.sinks.map((one) => ({id: "node" + one.node, slow: slow(one), cells: [shown(one.name), shown(one.address),
      whole(one.written), rate(one.write_rate), bytes(one.bytes), whole(one.waiting), duration(one.waiting_for),
      one.connected ? (one.full ? "full" : "up") : "away", whole(one.reconnects), whole(one.committed),
      ...["p50", "p99", "max"].map((name) => duration(one.latency.recent[name])), letters(one.dead_letters)]})));
  const windows = figures.steps.filter((one) => one.windows);
  byId("windows-section").hidden = !windows.length;
  fill("windows", ["window", "open", "fired", "late, dead letters", "late, dropped", "partly late", "watermark behind", "partitions", "skew", "busiest keys"],
    windows.map((one) => ({cells: [shown(one.label), whole(one.windows.open), whole(one.windows.fired),
      whole(one.dead_letters.late ?? 0), whole(one.windows.late.dropped ?? 0), whole(one.windows.late.partly ?? 0), duration(one.windows.watermark_lag),
      whole(one.windows.numbers), skewOf(one.windows), keysOf({busiest: one.windows.busiest.slice(0, 5)})]})));
  const spreads = [...figures.partitions.map((one) => [one.name, one]), ...windows.map((one) => [one.label, one.windows])];
  const numbers = spreads.flatMap(([name, spread]) => spread.busiest_numbers.map((one) => [name, one]));
  byId("numbers-section").hidden = !numbers.length;
  fill("numbers", ["partition number", "of", "visits", "share", "busiest keys"], numbers.map(([name, one]) => ({cells: [
    String(one.number), shown(name), whole(one.visits), share(one.share),
    keysOf(one)]})));
  const phases = Object.entries(figures.phases);
  byId("phases-section").hidden = !phases.length;
  fill("phases", ["phase", "time"], phases.map(([name, seconds]) => ({cells: [shown(name), duration(seconds)]})));
  const kept = figures.kept;
  const ago = (time) => time == null ? "never" : long(Math.max(0, figures.time - time)) + " ago";
  byId("kept-section").hidden = !kept;
  fill("kept", ["input log", "records", "written", "checkpoint", "written", "restarts"], kept ? [{cells: [
    bytes(kept.log_bytes), whole(kept.log_records), ago(kept.log_written), bytes(kept.checkpoint_bytes),
    ago(kept.checkpoint_written), whole(kept.restarts)]}] : []);
  byId("executors-section").hidden = !figures.executors.length && !figures.hosts.length;
  fill("executors", ["executor", "host", "cores", "running", "tasks", "failed", "time in tasks", "collections"],
    figures.executors.map((one) => ({cells: [shown(one.executor), shown(one.host), whole(one.cores), whole(one.running),
      whole(one.tasks), whole(one.failed), duration(one.seconds), duration(one.gc_seconds)]})));
  fill("hosts", ["host", "records", "time in Python"],
    figures.hosts.map((one) => ({cells: [shown(one.host), whole(one.records), duration(one.seconds)]})));
  const process = figures.process;
  fill("process", ["process", "up", "processor", "memory", "threads", "collections", "time in them"],
    [{cells: [String(process.pid ?? "–"), long(figures.uptime), share(process.cpu), bytes(process.memory_bytes),
      whole(process.threads), whole(process.gc_runs), duration(process.gc_seconds)]}]);
}

function showPartitions(figures) {
  byId("partitions-section").hidden = !figures.partitions.length;
  byId("partitions").replaceChildren(...figures.partitions.map((one) => {
    const made = element("div");
    made.append(element("h3", shown(one.name)),
      element("p", `${whole(one.entities)} entities, ${whole(one.visits)} visits, ${whole(one.numbers)} partitions, skew ${skewOf(one)}`, {class: "hint"}));
    const visits = Object.entries(one.visits_by_number), most = Math.max(...visits.map(([, n]) => n), 1);
    if (visits.length > 1) {
      const numbers = element("div", null, {class: "numbers"});
      for (const [name, count] of visits) {
        const place = element("span", null, {title: `partition ${name}: ${whole(count)} visits`});
        place.style.opacity = String(0.1 + 0.9 * count / most);
        numbers.append(place);
      }
      made.append(numbers);
    }
    const table = element("table");
    for (const key of one.busiest.slice(0, 10)) {
      const row = element("tr"), cell = element("td", shown(key.key)), bar = element("span", null, {class: "share"});
      bar.style.width = share(key.share).replace(" ", "");
      cell.append(bar);
      row.append(cell, element("td", whole(key.visits)), element("td", share(key.share)));
      table.append(row);
    }
    made.append(table);
    return made;
  }));
}

let shownLetters = "";

function showLetters(figures) {
  const last = figures.last_dead_letters, now = JSON.stringify(last);
  const list = byId("letters");
  // What somebody reads, or has reached by keyboard, stays where it is.
  if (now === shownLetters || list.contains(document.activeElement) || list.querySelector("[open]")) return;
  shownLetters = now;
  byId("no-letters").hidden = last.length > 0;
  list.replaceChildren(...last.map((one) => {
    const made = element("details");
    const where = one.step ?? (one.sink == null ? "decoder" : `encoder of sink ${one.sink}`);
    made.append(element("summary", `${date(one.time)} · ${shown(one.pipeline)}, ` +
      `${shown(where)} · ${one.reason}${one.error_type ? " (" + shown(one.error_type) + ")" : ""}: ${shown(one.error).slice(0, 160)}`));
    const facts = [`message  ${one.lineage.join(".")}${one.source == null ? "" : ` of source ${shown(one.source)}`}`,
      one.key == null ? "" : `key      ${shown(one.key)}`, `error    ${shown(one.error)}`,
      ...one.where.map((line) => `at       ${shown(line)}`),
      one.payload == null ? "" : `payload  ${one.payload}${one.payload_bytes > 512 ? " …" : ""} (${whole(one.payload_bytes)} bytes)`];
    made.append(element("pre", facts.filter(Boolean).join("\n")));
    return made;
  }));
}

// -- lines ---------------------------------------------------------------------------------------

const COLOURS = ["--a", "--c", "--b", "--d", "--e"];
const PLOTS = [
  {title: "Messages a second", pick: (name) => /^(in|out) /.test(name), show: rate},
  {title: "Latency, arrival to delivery", pick: (name) => name.startsWith("latency"), log: true, show: (ms) => duration(ms == null ? null : ms / 1000)},
  {title: "Waiting", pick: (name) => /^(backlog|waiting outputs|lag .*)$/.test(name), show: number},
  {title: "Dead letters a second", pick: (name) => name === "dead letters", grown: true, show: rate},
];
let lines = {times: [], values: {}};

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

function dataOf(plot, names) {
  return [lines.times, ...names.map((name) => {
    const line = lines.values[name];
    if (!plot.grown) return plot.log ? line.map((one) => one > 0 ? one : null) : line;
    return line.map((one, at) => at && one != null && line[at - 1] != null
      ? Math.max(0, one - line[at - 1]) / Math.max(0.001, lines.times[at] - lines.times[at - 1]) : null);
  })];
}

function makePlots() {
  // All of them stand there before any is drawn: a figure by itself would be as wide as the page.
  const figures = PLOTS.map((plot) => {
    const figure = element("figure");
    figure.append(element("figcaption", plot.title));
    return figure;
  });
  byId("plots").replaceChildren(...figures);
  for (const [at, plot] of PLOTS.entries()) {
    const figure = figures[at];
    plot.names = Object.keys(lines.values).filter(plot.pick);
    const axis = {stroke: () => colour("--quiet"), grid: {stroke: () => colour("--line"), width: 1},
                  ticks: {stroke: () => colour("--line")}, font: "11px system-ui"};
    plot.drawn = new uPlot({
      width: Math.max(240, figure.clientWidth), height: 170, legend: {live: true}, cursor: {drag: {x: false, y: false}},
      scales: {y: plot.log ? {distr: 3} : {range: (u, low, high) => [0, high > 0 ? high * 1.05 : 1]}},
      series: [{value: (u, time) => time == null ? "–" : date(time)},
        ...plot.names.map((name, at) => ({label: shown(name), stroke: () => colour(COLOURS[at % COLOURS.length]),
          width: 1.6, points: {show: false}, value: (u, value) => plot.show(value)}))],
      axes: [{...axis, space: 70, incrs: [1, 5, 15, 30, 60, 120, 300, 900], values: (u, splits) => splits.map(clock)}, {...axis, size: 64, values: (u, splits) => splits.map((one) => one == null ? "" : plot.show(one))}],
    }, dataOf(plot, plot.names), figure);
  }
}

function updatePlots() {
  const names = Object.keys(lines.values).length;
  if (!PLOTS[0].drawn || updatePlots.names !== names) { updatePlots.names = names; makePlots(); return; }
  for (const plot of PLOTS) plot.drawn.setData(dataOf(plot, plot.names));
}

function add({time, values}) {
  if (lines.times.at(-1) === time) return;
  lines.times.push(time);
  for (const name of Object.keys(values))
    if (!lines.values[name]) lines.values[name] = new Array(lines.times.length - 1).fill(null);
  for (const [name, line] of Object.entries(lines.values)) line.push(values[name] ?? null);
  if (lines.times.length > KEPT) {
    lines.times.shift();
    for (const line of Object.values(lines.values)) line.shift();
  }
}

function showsAll() {
  const around = byId("picture");
  byId("more").hidden = around.scrollWidth <= around.clientWidth + 1;
}

addEventListener("resize", () => {
  showsAll();
  for (const plot of PLOTS)
    if (plot.drawn) plot.drawn.setSize({width: Math.max(240, plot.drawn.root.parentNode.clientWidth), height: 170});
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (PLOTS[0].drawn) makePlots();
});

// -- what comes ----------------------------------------------------------------------------------

function show(figures) {
  const verdict = byId("verdict");
  if (verdict.textContent !== figures.verdict.text) verdict.textContent = figures.verdict.text;
  verdict.dataset.level = figures.verdict.level;
  document.title = (figures.verdict.level === "good" ? "" : "▲ ") + shown(figures.application) + " · Wallaroo";
  byId("about").textContent = `on the ${figures.engine} engine, ${figures.state}, up ${long(figures.uptime)}`;
  byId("sampling").textContent = figures.sampling.estimate
    ? "Messages, times and visits of steps are estimated: some reads are looked at, and stand for the others. Frames, outputs and dead letters are exact."
    : "All figures are exact: every message is looked at.";
  showTiles(figures);
  showPicture(figures);
  showTables(figures);
  showPartitions(figures);
  showLetters(figures);
  updatePlots();
}

// The picture is made smaller to fit, as long as it can be read.
picture.style.minWidth = 0.7 * picture.width.baseVal.value + "px";
showsAll();

const events = new EventSource("/events");
let last = 0;
events.addEventListener("history", (event) => {
  const figures = JSON.parse(event.data);
  lines = figures.history;
  last = Date.now();
  show(figures);
});
events.addEventListener("message", (event) => {
  const figures = JSON.parse(event.data);
  last = Date.now();
  add(figures.last);
  if (!document.hidden) show(figures);
});
setInterval(() => {
  const lost = !last || Date.now() - last > 4000, connection = byId("connection");
  connection.toggleAttribute("data-lost", lost);
  const words = lost ? (last ? `no answer for ${long((Date.now() - last) / 1000)}; the figures are old` : "connecting …") : "live";
  if (connection.textContent !== words) connection.textContent = words;
}, 500);
