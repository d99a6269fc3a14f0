// Graphs, keys and tumbling windows in JavaScript: see docs/engine-protocol.md, docs/spec and
// `wallaroo conform --catalogue`. It takes the form of pipelines only, and refuses much else. Run it by
//   wallaroo conform --no-live --engine-command 'node conformance/adapters/windows.mjs'
import { createInterface } from "node:readline";
const NAMES = ["first", "first way", "first_way"];
const say = (m) => process.stdout.write(JSON.stringify(m).replace(/[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")) + "\n");
class Refusal { constructor(rule, step, why) { Object.assign(this, { rule, step, why }); } }
class Dead { constructor(reason, errorType) { this.reason = reason; this.errorType = errorType; } }
const ERRORS = ["ValueError", "TypeError", "StopIteration", "KeyError"];
const fail = (text) => { throw new Dead("raised", ERRORS[Number(BigInt(/^\d*/.exec(text)[0] || 0) % 4n)]); };
// What Python writes of numbers that are words; none of them is an event time.
const WORDS = { yes: "True", one: "1.0", half: "0.5", below: "-1" };
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
function decode(payload) {
  let text;
  try { text = utf8.decode(payload); } catch { throw new Dead("decode", "UnicodeDecodeError"); }
  const parts = text.split(" ");
  if (parts.length !== 3) throw new Dead("decode", "ValueError");
  const [letter, number, rest] = parts;
  if (rest === "") return null;
  if (/^\d{16,}$/.test(number)) throw new Refusal("time-2", "message", "large numbers");
  const message = [letter, /^\d+$/.test(number) ? Number(number) : (WORDS[number] ?? number), rest];
  message.tuple = rest.includes("t");
  return message;
}
const computations = {
  same: (m) => [m],
  drop: (m) => [m[2].includes("d") ? null : [m[0], m[1], m[2] + "'"]],
  doubled: (m) => [m, null, ["b", m[1], m[2] + '"']],
};
const keys = { by_letter: (m) => { if (m[2].includes("k")) fail(m[2]); if (m[2].includes("f")) throw new Dead("bad-key", null); return m[0]; } };
function run(form, records) {
  if (form.form !== "pipelines") throw new Refusal("graph-1", "case", "pipelines only");
  if (!records.every((one) => Number.isSafeInteger(one.at))) throw new Refusal("time-1", "records", "times beyond 2^53");
  if (form.sources.some((s) => s.decoder !== "triple")) throw new Refusal("decode-1", "source", "one decoder only");
  if (form.sinks.some((s) => s.encoder !== "triple_line")) throw new Refusal("sink-1", "sink", "one encoder only");
  if (form.codec) throw new Refusal("key-5", "case", "no codec");
  if (form.on_error !== "skip") throw new Refusal("dead-4", "case", "no stop");
  form.sources.forEach((s) => { if (s.idle_after !== null || s.max_ahead || s.generator || !["own_time", null].includes(s.event_time)) throw new Refusal("time-3", "source", "plain sources only"); });
  // Nodes by their numbers; consumers in the order of the calls: a node's sinks, then steps behind it.
  const nodes = {};
  const windows = [], sinks = [], count = {};
  const add = (id, node) => {
    nodes[id] = node;
    const outs = form.sinks.filter((sink) => sink.origin === id).map(() => {
      const at = count[node.pipeline] ?? 0;
      count[node.pipeline] = at + 1;
      return { pipeline: node.pipeline, sink: at, outputs: [] };
    });
    sinks.push(...outs);
    if (outs.length) node.to.push({ outs });
  };
  form.sources.forEach(({ id }) => add(id, { source: NAMES[id], pipeline: NAMES[id], position: -1, keyed: false, to: [], ways: { [id]: 0 } }));
  form.steps.forEach((step) => {
    const origin = nodes[step.origins[0]], name = `${step.operator} ${step.id}`;
    const node = { name, op: step.operator, pipeline: origin.pipeline, keyed: origin.keyed, to: [], ways: { ...origin.ways } };
    if (step.operator === "merge") {
      const other = nodes[step.origins[1]];
      for (const [k, d] of Object.entries(other.ways)) node.ways[k] = Math.max(node.ways[k] ?? 0, d);
      node.keyed = origin.keyed || other.keyed;
      for (const side of [origin, other]) side.to.push(node.keyed && !side.keyed ? { bare: true, node } : { node });
    } else {
      if (keys[step.operator]) node.keyed = true;
      else if (step.operator === "collect") node.keyed = true;
      else if (step.operator === "texts") {
        const w = step.window;
        if (w.kind !== "range" || (w.slide !== null && w.slide !== w.size)) throw new Refusal("window-1", name, "tumbling only");
        if (!["dead-letter", "drop"].includes(w.late)) throw new Refusal("window-6", name, "no such policy");
        Object.assign(node, { window: w, keyed: true, open: new Map(), mark: -Infinity, own: { ...node.ways } });
        for (const k of Object.keys(node.ways)) node.ways[k] += w.delay;
        windows.push(node);
      } else if (!computations[step.operator]) throw new Refusal("compute-1", name, "not known");
      origin.to.push({ node });
    }
    add(step.id, node);
  });
  const letters = [], late = {};
  const state = Object.fromEntries(form.sources.map((s) => [s.id, { timed: s.event_time !== null, mark: -Infinity, ended: false }]));
  let now = 0, record, sequence;
  const b64 = (b) => Buffer.from(b, "utf8").toString("base64");
  function dead(context, step, pipeline, sink, key, error) {
    if (!(error instanceof Dead)) throw error;
    letters.push({ lineage: context.lineage, source: record.source ?? null, pipeline, step, sink, key: key === undefined ? null : tagged(key), reason: error.reason, error_type: error.errorType, payload: context.given ? null : (record.payload ?? null), at: 0 });
  }
  const tagged = (key) => (Array.isArray(key) ? { tuple: key.map(tagged) } : { str: key });
  function follow(node, message, c) {
    node.to.forEach((way, i) => {
      const context = node.to.length > 1 ? { ...c, lineage: [...c.lineage, i] } : c;
      for (const out of way.outs ?? []) {
        try {
          if (message[2].includes("w")) { try { fail(message[2]); } catch (e) { throw new Dead("encode", e.errorType); } }
          const line = message.join(" ");
          out.outputs.push(b64(message.tuple ? `(${line})\n` : `${line}\n`));
        } catch (e) { dead(context, null, out.pipeline, out.sink, undefined, e); }
      }
      if (way.node) take(way.node, Object.assign([...message], { tuple: message.tuple }), way.bare ? { ...context, key: [] } : context);
    });
  }
  function take(node, message, c) {
    if (node.window) return put(node, message, c);
    if (node.op === "merge") return follow(node, message, c);
    if (node.op === "collect") return follow(node, message, { ...c, key: [] });
    let given;
    try {
      if (keys[node.op]) return follow(node, message, { ...c, key: keys[node.op](message) });
      given = computations[node.op](message);
    } catch (e) { return dead(c, node.name, node.pipeline, null, undefined, e); }
    given.forEach((one, i) => one !== null && follow(node, one, node.op === "doubled" ? { ...c, lineage: [...c.lineage, i] } : c));
  }
  function put(node, message, c) {
    const w = node.window, start = Math.floor(c.time / w.size) * w.size, key = c.key ?? [];
    try {
      if (start + w.size + w.delay <= node.mark) {
        if (w.late === "dead-letter") throw new Dead("late", null);
        late[node.name] = (late[node.name] ?? 0) + 1;
        return;
      }
      if (message[2].includes("u")) fail(message[2]);
    } catch (e) { return dead(c, node.name, node.pipeline, null, key, e); }
    const id = JSON.stringify([start, key]);
    if (!node.open.has(id)) node.open.set(id, { key, start, texts: [] });
    node.open.get(id).texts.push(message[2]);
  }
  const encoded = (key) => JSON.stringify(key); // keys are letters, or () alone
  function turns() {
    windows.forEach((node, number) => {
      const marks = Object.entries(node.own).map(([k, d]) => { const s = state[k]; return s.ended ? Infinity : (s.timed ? s.mark : now) - d; });
      node.mark = Math.max(node.mark, Math.min(...marks));
      const due = [...node.open.entries()].filter(([, one]) => one.start + node.window.size + node.window.delay <= node.mark);
      due.sort(([, a], [, b]) => a.start - b.start || (encoded(a.key) < encoded(b.key) ? -1 : 1));
      due.forEach(([id, one], i) => {
        node.open.delete(id);
        const end = one.start + node.window.size, text = one.texts.join("+");
        const c = { lineage: [sequence, number - windows.length, i], given: true, key: one.key, time: end - 1 };
        try {
          if (text.includes("o")) fail(text);
          if (text.includes("n")) return;
        } catch (e) { return dead(c, node.name, node.pipeline, null, one.key, e); }
        follow(node, [Array.isArray(one.key) ? "-" : one.key, end, `${text}@${one.start}-${end}`], c);
      });
    });
  }
  records.forEach((one, at) => {
    record = one; sequence = at; now = Math.max(now, one.at);
    const index = NAMES.indexOf(one.source), c = { lineage: [at], given: false, time: now };
    if (one.what === "tick") return turns();
    if (one.what === "end") {
      state[index].ended = true;
      turns();
      if (one.error_type) dead({ ...c, given: true }, null, NAMES[index], null, undefined, new Dead("raised", one.error_type));
      return;
    }
    let message = null, error = null;
    try {
      message = decode(Buffer.from(one.payload, "base64"));
      if (message !== null && state[index].timed) {
        if (message[2].includes("e")) fail(message[2]);
        if (typeof message[1] !== "number") throw new Dead("bad-time", null);
        c.time = message[1];
        state[index].mark = Math.max(state[index].mark, c.time);
      }
    } catch (e) { if (e instanceof Refusal) throw e; error = e; }
    turns();
    if (error) dead(c, null, NAMES[index], null, undefined, error);
    else if (message !== null) follow(nodes[index], message, c);
  });
  const order = (l) => [...l, 0];
  const cmp = (a, b) => { for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return a[i] - b[i]; return a.length - b.length; };
  letters.sort((a, b) => cmp(order(a.lineage), order(b.lineage)));
  const open = windows.flatMap((node) => [...node.open.values()].map((one) => ({ step: node.name, key: tagged(one.key), start: one.start, end: one.start + node.window.size, accumulator: ["list", one.texts.map((t) => ["str", t])] })));
  const pair = (key) => JSON.stringify(key);
  open.sort((a, b) => (a.step < b.step ? -1 : a.step > b.step ? 1 : pair(a.key) < pair(b.key) ? -1 : pair(a.key) > pair(b.key) ? 1 : a.start - b.start));
  return { type: "trace", trace: { outputs: sinks, dead_letters: letters, entities: [], windows: open, late: Object.entries(late).map(([s, n]) => [s, "dropped", n]), ended: null } };
}
for await (const line of createInterface({ input: process.stdin })) {
  const m = JSON.parse(line);
  if (m.type === "hello") say({ type: "hello", protocol: "wallaroo-engine/1", name: "windows.mjs", version: "1", capabilities: { isolation: ["isolated"], stop: "none", unsupported_rules: ["route-4"] } });
  else if (m.type === "job") {
    for (const one of m.cases) {
      let answer;
      try { answer = run(one.case, one.records); } catch (e) {
        answer = e instanceof Refusal ? { type: "refusal", ...e } : { type: "crash", error: String(e), traceback: e.stack };
      }
      say({ job: m.job, id: one.id, ...answer });
    }
    say({ type: "done", job: m.job });
  }
}
