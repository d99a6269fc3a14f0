// An engine in JavaScript, written from docs/engine-protocol.md and `wallaroo conform --catalogue`.
// It knows a few operators on texts, and refuses all else. Run it by
//   wallaroo conform --no-live --engine-command 'node conformance/adapters/small.mjs'
import { createInterface } from "node:readline";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const first = (text, count) => [...text].slice(0, count).join("");

const decoders = {
  text: (bytes) => {
    try {
      return utf8.decode(bytes);
    } catch {
      throw new DeadLetter("decode", "UnicodeDecodeError");
    }
  },
  latin: (bytes) => bytes.toString("latin1"),
};
const encoders = { line: (text) => Buffer.from(text + "\n", "utf8") };
const computations = {
  identity: { step: "identity", call: (text) => [text] },
  only_short: { step: "only short", call: (text) => [[...text].length <= 3 ? text : null] },
  one: { step: "one", multi: true, call: (text) => [text] },
  second: { step: "second", multi: true, call: (text) => [null, text] },
  fork: { step: "fork", multi: true, call: (text) => (text === "fork" ? [text] : [text, "fork"]) },
  both: { step: "both", multi: true, call: (text) => [text, "and"] },
};
const stateComputations = {
  count: {
    step: "count",
    call: (text, state) => {
      state.pages += 1;
      return [`${first(text, 12)}=${state.pages}`];
    },
  },
  note: {
    step: "note",
    call: (text, state) => {
      state.notes = [...state.notes, first(text, 8)].slice(-6);
      return [null];
    },
  },
};
const routes = { by_text: (text) => first(text, 6), hot: () => "hot" };
const builders = { Notebook: () => ({ pages: 0, notes: [], last: "nothing yet" }) };

const notebook = "wallaroo_conformance.cases.operators.states.Notebook";
const structure = (state) => [
  notebook,
  ["global", "copyreg.__newobj__"],
  [["global", notebook]],
  [
    "dict",
    [
      [["str", "last"], ["str", state.last]],
      [["str", "notes"], ["list", state.notes.map((one) => ["str", one])]],
      [["str", "pages"], ["int", "0x" + state.pages.toString(16)]],
    ],
  ],
  null,
  null,
];

class DeadLetter extends Error {
  constructor(reason, errorType) {
    super(errorType);
    Object.assign(this, { reason, errorType });
  }
}
class Refusal extends Error {
  constructor(rule, step, why) {
    super(why);
    Object.assign(this, { rule, step, why });
  }
}
const known = (table, name, rule) => {
  if (!Object.hasOwn(table, name)) throw new Refusal(rule, name, "this engine does not know it");
  return table[name];
};

const PIPELINES = ["first", "first way", "first_way"];
const PARTITIONS = ["north", "north sea", "north_sea", "North sea", "north sea ", "n\u00f6rth", "no\u0308rth",
  "north".repeat(50), "north".repeat(50) + "."];

function plan(form) {
  if (form.form !== "builder" || form.codec) throw new Refusal("graph-1", "case", "the builder's form only");
  return form.sources.map((source) => {
    const { event_time: time, generator } = source;
    if (time !== null || generator) throw new Refusal("time-2", "source", "plain sources only");
    const steps = [];
    let last = source.id;
    for (const step of form.steps) {
      if (step.origins[0] !== last) continue;
      steps.push(part(form, step));
      last = step.id;
    }
    const sinks = form.sinks.filter((sink) => sink.origin === last);
    const encode = sinks.map((sink) => known(encoders, sink.encoder, "sink-1"));
    return { name: PIPELINES[source.id], decode: known(decoders, source.decoder, "decode-1"), steps, encode };
  });
}

function part(form, step) {
  if (Object.hasOwn(computations, step.operator)) return computations[step.operator];
  const made = known(stateComputations, step.operator, "compute-1");
  const { shape, builder, keys, expire_after: expires } = form.partitions[step.partition];
  if (shape === "u64") throw new Refusal("route-5", step.operator, "no 64-bit keys");
  if (keys !== null && shape === "keyed") throw new Refusal("route-3", step.operator, "no lists");
  if (expires !== null) throw new Refusal("key-4", step.operator, "nothing expires");
  const route = shape === "single" ? null : known(routes, step.route, "route-1");
  const build = known(builders, builder, "state-1");
  return { ...made, partition: PARTITIONS[step.partition], route, build };
}

function run(form, records) {
  const pipelines = plan(form);
  const entities = new Map();
  const outputs = pipelines.flatMap((pipeline) =>
    pipeline.encode.map((_, sink) => ({ pipeline: pipeline.name, sink, outputs: [] })),
  );
  const letters = [];
  let ended = null;

  function follow(pipeline, position, message, lineage) {
    if (position === pipeline.steps.length) {
      pipeline.encode.forEach((encode, sink) => {
        const to = outputs.find((one) => one.pipeline === pipeline.name && one.sink === sink);
        to.outputs.push(encode(message).toString("base64"));
      });
      return;
    }
    const step = pipeline.steps[position];
    let given;
    if (step.partition) {
      const key = step.route === null ? { tuple: [] } : { str: step.route(message) };
      const known = JSON.stringify([step.partition, key]);
      if (!entities.has(known)) entities.set(known, { ...step, key, state: step.build() });
      given = step.call(message, entities.get(known).state);
    } else {
      given = step.call(message);
    }
    given.forEach((one, index) => {
      if (one !== null) follow(pipeline, position + 1, one, step.multi ? [...lineage, index] : lineage);
    });
  }

  for (const [sequence, { what, source, payload }] of records.entries()) {
    if (what !== "frame") continue; // nothing here depends on time
    const bytes = Buffer.from(payload, "base64");
    const pipeline = pipelines.find((one) => one.name === source);
    try {
      follow(pipeline, 0, pipeline.decode(bytes), [sequence]);
    } catch (error) {
      if (!(error instanceof DeadLetter)) throw error;
      const where = { lineage: [sequence], pipeline: source, step: null, sink: null };
      const letter = { reason: error.reason, error_type: error.errorType, key: null, source };
      letters.push({ ...where, ...letter, payload });
      if (form.on_error === "stop") {
        ended = { kind: "on-error", ...where, error_type: null };
        break;
      }
    }
  }
  const found = [...entities.values()].map(({ partition, key, state }) => {
    return { partition, key, number: 0, state: structure(state) };
  });
  found.sort((one, other) => Buffer.compare(order(one), order(other)));
  return { outputs, dead_letters: letters, entities: found, ended };
}

// Entities stand in the order of their partitions' names, then of their encoded keys.
function order({ partition, key }) {
  const text = Buffer.from(key.str ?? "", "utf8");
  const size = Buffer.alloc(4);
  size.writeUInt32BE(text.length);
  return Buffer.concat([Buffer.from(partition + "\0" + (key.str === undefined ? "t" : "s")), size, text]);
}

const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.type === "hello") {
    // Its partition numbers would need BLAKE2b with a digest of eight bytes, which Node has not.
    const capabilities = { isolation: ["isolated"], batches: true, unsupported_rules: ["route-4"] };
    const named = { name: "small.mjs", version: "1", protocol: "wallaroo-engine/1" };
    say({ type: "hello", ...named, capabilities });
  } else if (message.type === "job") {
    const { job } = message;
    for (const { id, case: form, records } of message.cases) {
      try {
        say({ type: "trace", job, id, trace: run(form, records) });
      } catch (error) {
        if (error instanceof Refusal) {
          const { rule, step, why } = error;
          say({ type: "refusal", job, id, rule, step, why });
        } else {
          say({ type: "crash", job, id, error: `${error.name}: ${error.message}`, traceback: error.stack });
        }
      }
    }
    say({ type: "done", job });
  }
}
