// Python in a worker: one for the page. A worker can be ended, whatever its code does.

let worker = null;
let ready = null;
let asked = new Map();
let number = 0;

/** Begin to load Python. */
export function start() {
  if (worker) return ready;
  if (location.protocol === "file:") {
    return Promise.reject(new Error(
      "A browser runs Python only in pages that a server gives. " +
      "In the site's folder: python -m http.server",
    ));
  }
  worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  ready = new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => {
      if ("ready" in data) {
        performance.mark("python", { detail: data.ready }); // milliseconds, for who measures
        return resolve(data.ready);
      }
      if ("failed" in data) return reject(new Error(data.failed));
      const { resolve: answer, reject: refuse } = asked.get(data.id);
      asked.delete(data.id);
      return "error" in data ? refuse(new Error(data.error)) : answer(JSON.parse(data.answer));
    };
    worker.onerror = (event) => reject(new Error(event.message || "Python could not be loaded"));
  });
  return ready;
}

/** Ask the functions of docs/tools/wallaroo_docs/in_page.py; returns their answer. */
export async function ask(request) {
  await start();
  return new Promise((resolve, reject) => {
    number += 1;
    asked.set(number, { resolve, reject });
    worker.postMessage({ id: number, request: JSON.stringify(request) });
  });
}

/** End whatever runs. The next question starts Python anew. */
export function stop() {
  if (!worker) return;
  worker.terminate();
  worker = null;
  const open = asked;
  asked = new Map();
  for (const { reject } of open.values()) reject(new Stopped());
}

export class Stopped extends Error {}
