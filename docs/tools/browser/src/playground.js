// The playground: an application drawn while it is written, and its messages step by step.

import { editor } from "./editor.js";
import { button, element, RESTARTED } from "./parts.js";
import { ask, stop, Stopped } from "./python.js";
import { download, packed, share, unpacked } from "./sharing.js";

const PAUSE = 150; // milliseconds after the last key until the application is drawn again
const DOUBT = 400; // and then until an error is shown: a line that is still being written has many
const PATIENCE = 1500; // and after which something that runs can be stopped

export async function open(root) {
  const response = await fetch(new URL("./examples/playground.json", import.meta.url));
  const beginnings = await response.json();
  const shared = new URLSearchParams(location.hash.slice(1)).get("play");
  const first = shared ? await unpacked(shared) : beginnings[0];
  new Playground(root, beginnings, first);
}

class Playground {
  constructor(root, beginnings, { source, input }) {
    this.root = root;
    this.steps = [];
    this.names = [];
    this.at = 0;
    const choice = element("select", { "aria-label": "Begin with", onchange: () => {
      this.fill(beginnings[choice.selectedIndex]);
    } }, ...beginnings.map(({ name }) => element("option", {}, name)));
    this.stopButton = button("Stop", "End what runs", stop);
    this.stopButton.hidden = true;
    this.state = element("span", { class: "workbench-state", role: "status" });
    this.problem = element("pre", { class: "playground-problem" });
    this.sources = element("div", { class: "workbench-pane workbench-source" },
      element("span", { class: "filename" }, "application"));
    this.inputs = element("div", { class: "workbench-pane workbench-input" },
      element("span", { class: "filename" }, "input: each line is a message"));
    this.picture = element("div", { class: "playground-picture" });
    this.slider = element("input", { type: "range", min: "0", max: "0", value: "0",
      "aria-label": "Step", oninput: () => this.go(Number(this.slider.value)) });
    this.count = element("span", { class: "playground-count" });
    this.moment = element("div", { class: "playground-moment", "aria-live": "polite" });
    this.world = element("div", { class: "playground-world" });
    const steps = element("div", { class: "playground-steps" },
      button("|◀", "First step", () => this.go(0)),
      button("◀", "One step back", () => this.go(this.at - 1)),
      button("▶", "One step forwards", () => this.go(this.at + 1)),
      button("▶|", "Last step", () => this.go(this.steps.length - 1)),
      this.slider, this.count);
    root.replaceChildren(
      element("div", { class: "workbench-head" },
        element("label", { class: "workbench-title" }, "Begin with ", choice),
        element("div", { class: "workbench-bar" }, this.stopButton,
          button("Share", "A link to what stands here", () => this.share()),
          button("Download", "As a project: the application and its test",
            () => this.download()))),
      this.state, this.picture,
      element("div", { class: "workbench-panes" },
        element("div", {}, this.sources, this.inputs),
        element("div", {}, this.problem, steps, this.moment, this.world)));
    root.classList.add("workbench");
    root.addEventListener("keydown", (event) => {
      if (event.target.closest(".cm-editor, select, input")) return;
      if (event.key === "ArrowRight") this.go(this.at + 1);
      if (event.key === "ArrowLeft") this.go(this.at - 1);
    });
    const changed = () => this.changed();
    this.source = editor(this.sources, { label: "application", text: source, onChange: changed });
    this.input = editor(this.inputs, {
      label: "input", text: input, code: false, onChange: changed,
    });
    this.play();
  }

  fill({ source, input }) {
    this.at = 0;
    this.source.text = source;
    this.input.text = input;
  }

  changed() {
    clearTimeout(this.timer);
    clearTimeout(this.doubt);
    this.timer = setTimeout(() => this.play(), PAUSE);
  }

  async play() {
    if (this.playing) { this.again = true; return; }
    this.playing = true;
    this.root.dataset.state = "running";
    const slow = setTimeout(() => { this.stopButton.hidden = false; }, PATIENCE);
    this.state.textContent = this.steps.length ? "" : "Python starts: this takes a few seconds …";
    try {
      do {
        this.again = false;
        this.show(await ask({ do: "play", source: this.source.text, input: this.input.text }));
      } while (this.again);
      this.root.dataset.state = "done";
    } catch (error) {
      this.root.dataset.state = "failed";
      this.state.textContent = error instanceof Stopped ? RESTARTED : `${error.message}`;
    } finally {
      clearTimeout(slow);
      this.stopButton.hidden = true;
      this.playing = false;
    }
  }

  show({ svg, names, steps, error, where }) {
    this.state.textContent = "";
    clearTimeout(this.doubt);
    const wrong = () => { this.problem.textContent = error ? (where ?? "") + error : ""; };
    if (error) this.doubt = setTimeout(wrong, DOUBT);
    else wrong();
    // While a line is half written, the last picture stays.
    this.picture.classList.toggle("playground-old", !svg);
    if (svg) this.picture.innerHTML = svg;
    if (!svg && this.steps.length) return;
    this.names = names ?? [];
    this.steps = steps;
    this.slider.max = String(Math.max(steps.length - 1, 0));
    this.go(Math.min(this.at, steps.length - 1));
  }

  go(number) {
    this.at = Math.max(0, Math.min(number, this.steps.length - 1));
    this.slider.value = String(this.at);
    this.count.textContent = this.steps.length ? `${this.at + 1} of ${this.steps.length}` : "";
    const step = this.steps[this.at];
    const nodes = this.picture.querySelectorAll("g.source, g.step, g.stateful, g.sink");
    nodes.forEach((node, index) => node.classList.toggle("playground-now", index === step?.node));
    this.moment.replaceChildren(...(step ? this.told(step) : ["Nothing has come yet."]));
    this.world.replaceChildren(...(step ? this.around(step) : []));
  }

  told(step) {
    const name = this.names[step.node] ?? "time";
    const lineage = `(${step.lineage.join(", ")}${step.lineage.length === 1 ? "," : ""})`;
    const rows = [
      ["came", step.came],
      ["key", step.key],
      ["before", step.before],
      ["after", step.after],
      ["gave", step.gave.join("\n") || (step.problem || step.node < 0 ? "" : "nothing")],
      ["dead letter", step.problem],
      ["watermark", step.watermark],
    ];
    return [
      element("p", {}, element("strong", {}, name), ` ${lineage} at ${step.time}: ${step.what}`),
      element("dl", {}, ...rows.filter(([, text]) => text).flatMap(([title, text]) => [
        element("dt", {}, title),
        element("dd", { "data-what": title }, element("code", {}, text)),
      ])),
    ];
  }

  around(step) {
    const sent = this.steps.slice(0, this.at + 1)
      .filter(({ node }) => this.names[node]?.startsWith("sink"))
      .flatMap(({ node, gave }) => gave.map((text) => `${this.names[node]}  ${text}`));
    const dead = this.steps.slice(0, this.at + 1).filter(({ problem }) => problem)
      .map(({ node, problem }) => `${this.names[node]}  ${problem}`);
    const parts = { entities: step.entities, "open windows": step.windows, sent, "dead letters": dead };
    return Object.entries(parts).filter(([, lines]) => lines.length).map(([title, lines]) =>
      element("div", { class: "workbench-result", "data-title": title },
        element("span", { class: "filename" }, title),
        element("pre", {}, element("code", {}, lines.join("\n")))));
  }

  async share() {
    const text = await packed({ source: this.source.text, input: this.input.text });
    this.state.textContent = await share({ play: text });
  }

  async download() {
    try {
      const name = "my_app";
      const made = await ask({
        do: "project", name, kind: "lines", source: this.source.text, input: this.input.text,
      });
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
