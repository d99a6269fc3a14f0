// An example that is open: its text in editors, and what it gives.

import { editor } from "./editor.js";
import { button, element, RESTARTED, results } from "./parts.js";
import { ask, start, stop, Stopped } from "./python.js";
import { download, packed, share, unpacked } from "./sharing.js";

const open_ = new Map();
const pages = new Map();

/** Open the example that begins at a mark, in the place of its blocks. */
export async function open(begin, { run = false, shared = null } = {}) {
  if (!open_.has(begin)) {
    const example = await found(begin.dataset);
    open_.set(begin, new Workbench(begin, example));
  }
  const bench = open_.get(begin);
  bench.show();
  if (shared) await bench.restore(shared);
  if (run) await bench.run();
}

async function found({ page, example }) {
  if (!pages.has(page)) {
    const response = await fetch(new URL(`./examples/${page}.json`, import.meta.url));
    pages.set(page, await response.json());
  }
  return pages.get(page).find(({ name }) => name === example);
}

class Workbench {
  constructor(begin, example) {
    this.begin = begin;
    this.example = example;
    this.number = 0;
    this.title = element("span", { class: "workbench-title" }, example.name);
    this.state = element("span", { class: "workbench-state", role: "status" });
    this.runButton = button("Run", "Control-Enter", () => this.run());
    this.stopButton = button("Stop", "End what runs", stop);
    this.sources = element("div", { class: "workbench-pane workbench-source" });
    this.inputs = element("div", { class: "workbench-pane workbench-input" });
    this.outputs = element("div", { class: "workbench-output" });
    this.others = element("div", { class: "workbench-others" });
    this.tabs = element("div", { class: "workbench-tabs", role: "tablist" });
    this.bar = element("div", { class: "workbench-bar" },
      this.runButton, this.stopButton,
      button("Reset", "The text of the page again", () => this.reset()),
      button("Share", "A link to what stands here", () => this.share()),
      button("Download", "As a project: the application and its test", () => this.download()),
      button("Close", "Back to the text", () => this.hide()));
    this.root = element("section", { class: "workbench", "aria-label": `Example ${example.name}` },
      element("div", { class: "workbench-head" }, this.title, this.bar), this.state, this.tabs,
      element("div", { class: "workbench-panes" }, this.sources,
        element("div", { class: "workbench-side" }, this.inputs, this.outputs)),
      this.others);
    this.stopButton.hidden = true;
    this.blocks = [];
    for (let next = begin.nextElementSibling; next && !next.matches(".example-end");
      next = next.nextElementSibling) {
      if (next.matches(".highlight")) this.blocks.push(next);
    }
    begin.after(this.root);
    this.choose(0);
  }

  get wanted() { return this.example.runs[this.number]; }

  choose(number) {
    this.number = number;
    this.tabs.replaceChildren(...(this.example.runs.length < 2 ? [] :
      this.example.runs.map((_, index) => element("button", {
        type: "button", role: "tab", "aria-selected": String(index === number),
        onclick: () => { this.choose(index); this.run(); },
      }, `${this.example.kind === "refused" ? "code" : "input"} ${index + 1}`))));
    this.fill(this.wanted.source, this.wanted.input);
  }

  fill(source, input) {
    this.source?.close();
    this.input?.close();
    const run = () => this.run();
    const { kind } = this.example;
    const takes = ["application", "lines", "prompt"].includes(kind);
    const label = takes ? "application" : "code";
    const folded = source.startsWith(this.shared()) ? this.wanted.folded : 0;
    this.sources.replaceChildren(element("span", { class: "filename" }, label));
    this.source = editor(this.sources, { label, text: source, folded, onRun: run });
    const lines = kind === "lines";
    const title = lines ? "input: each line is a message" : "input";
    this.inputs.replaceChildren(...(takes ? [element("span", { class: "filename" }, title)] : []));
    this.input = takes
      ? editor(this.inputs, { label: title, text: input, code: !lines, onRun: run }) : null;
    this.outputs.replaceChildren();
    this.others.replaceChildren();
    this.state.textContent = "";
  }

  shared() {
    return this.wanted.source.split("\n").slice(0, this.wanted.folded).join("\n");
  }

  show() {
    this.root.hidden = false;
    this.begin.classList.add("example-open");
    for (const block of this.blocks) block.hidden = true;
  }

  hide() {
    this.root.hidden = true;
    this.begin.classList.remove("example-open");
    for (const block of this.blocks) block.hidden = false;
    this.begin.querySelector("button").focus();
  }

  reset() {
    this.choose(this.number);
  }

  get request() {
    return {
      kind: this.example.kind, source: this.source.text, input: this.input ? this.input.text : "",
    };
  }

  async run() {
    if (this.running) return;
    this.running = true;
    this.stopButton.hidden = false;
    this.runButton.disabled = true;
    this.root.dataset.state = "running";
    this.state.textContent = "Python starts: this takes a few seconds the first time …";
    const { source, input } = this.request;
    try {
      await start();
      this.state.textContent = "Running …";
      const began = performance.now();
      const sections = await ask({ do: "run", ...this.request });
      this.show_(sections);
      const time = Math.round(performance.now() - began);
      this.state.textContent = this.told(sections, source, input) + ` (${time} ms)`;
      this.root.dataset.state = "done";
    } catch (error) {
      this.root.dataset.state = "failed";
      this.state.textContent = error instanceof Stopped ? RESTARTED : `${error.message}`;
    } finally {
      this.running = false;
      this.stopButton.hidden = true;
      this.runButton.disabled = false;
    }
  }

  told(sections, source, input) {
    if (source !== this.wanted.source || input !== this.wanted.input) return "Your own version.";
    const expected = Object.entries(this.wanted.expected);
    const same = expected.every(([title, text]) => (sections[title] ?? "(none)\n") === text);
    this.root.dataset.same = same;
    return same ? "As in the text." : "This differs from the text.";
  }

  show_({ outputs, error, where, printed, ...others }) {
    const first = { outputs, error, where, printed };
    results(this.outputs, Object.fromEntries(Object.entries(first).filter(([, text]) => text)));
    results(this.others, others);
  }

  async share() {
    const text = await packed({ source: this.source.text, input: this.request.input });
    const example = this.example.name;
    this.state.textContent = await share({ example, run: this.number, text });
  }

  async restore(shared) {
    this.choose(Math.min(Number(shared.get("run")) || 0, this.example.runs.length - 1));
    if (shared.has("text")) {
      const { source, input } = await unpacked(shared.get("text"));
      this.fill(String(source), String(input));
      this.state.textContent = "This comes from a link, and has not run yet.";
    }
    this.root.scrollIntoView();
  }

  async download() {
    const name = this.example.name.replaceAll(/\W/g, "_");
    this.state.textContent = "The project is made …";
    try {
      const made = await ask({ do: "project", name, ...this.request });
      if (made.error) this.state.textContent = `It does not run yet: ${made.error}`;
      else {
        download(`${name}.zip`, made.zip);
        this.state.textContent = `Unpack it and run: pytest ${name}`;
      }
    } catch (error) {
      this.state.textContent = error instanceof Stopped ? RESTARTED : `${error.message}`;
    }
  }
}
