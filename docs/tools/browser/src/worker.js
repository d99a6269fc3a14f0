// The worker: Pyodide, the language and the reference engine from their wheel, and what answers.

async function bytes(name) {
  const response = await fetch(new URL(name, import.meta.url));
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return response.arrayBuffer();
}

async function start() {
  const archives = [bytes("./wallaroo.whl"), bytes("./documents.zip")];
  const { loadPyodide } = await import("./pyodide/pyodide.mjs");
  const began = performance.now();
  const python = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href });
  const started = performance.now();
  const [wheel, documents] = await Promise.all(archives);
  python.unpackArchive(wheel, "wheel");
  python.unpackArchive(documents, "zip");
  const answer = python.runPython("from wallaroo_docs.in_page import answer; answer");
  return { answer, pyodide: started - began, ours: performance.now() - started };
}

const python = start();
python.then(
  ({ pyodide, ours }) => postMessage({ ready: { pyodide, ours } }),
  (error) => postMessage({ failed: `${error.message || error}` }),
);

onmessage = async ({ data: { id, request } }) => {
  try {
    const { answer } = await python;
    postMessage({ id, answer: answer(request) });
  } catch (error) {
    postMessage({ id, error: `${error.message || error}` });
  }
};
