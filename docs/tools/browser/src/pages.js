// Every page loads this: it puts a button at each example. The rest is asked for when it is needed.

const playground = document.getElementById("wallaroo-playground");
if (playground) import("./playground.js").then(({ open }) => open(playground));

for (const begin of document.querySelectorAll(".example-begin")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "example-run";
  button.textContent = "Run";
  button.title = "Run this example here, and change it";
  button.addEventListener("click", () => opened(begin, { run: true }));
  // Python takes seconds to start: it begins when somebody is about to press.
  const warm = () => import("./python.js").then(({ start }) => start());
  button.addEventListener("pointerenter", warm, { once: true });
  button.addEventListener("focus", warm, { once: true });
  begin.append(button);
}

async function opened(begin, options) {
  const { open } = await import("./workbench.js");
  await open(begin, options);
}

// A link to a changed example: it is shown, and runs when the reader says so.
const shared = new URLSearchParams(location.hash.slice(1));
if (shared.has("example")) {
  const begin = document.querySelector(`[data-example="${CSS.escape(shared.get("example"))}"]`);
  if (begin) opened(begin, { shared });
}
