// Asks for the figures of the run that goes on, and shows them. Text is put in as text, never as HTML.
"use strict";

const REFRESH_MS = 1000;

function say(id, text) {
  document.getElementById(id).textContent = text;
}

function tableOf(rows) {
  const table = document.createElement("table");
  rows.forEach((cells, index) => {
    const row = table.insertRow();
    for (const cell of cells) {
      const made = row.appendChild(document.createElement(index ? "td" : "th"));
      made.textContent = cell;
    }
  });
  return table;
}

function show({heading, words, tables, figures}) {
  say("heading", heading);
  say("words", words);
  document.getElementById("tables").replaceChildren(...tables.map(tableOf));
  const plots = document.getElementById("plots");
  while (plots.children.length > figures.length) plots.lastChild.remove();
  figures.forEach((figure, index) => {
    let element = plots.children[index];
    if (!element) {
      element = plots.appendChild(document.createElement("figure"));
      element.className = "plot";
      element.appendChild(document.createElement("h3"));
    }
    if (element.matches(":hover")) return;  // somebody reads it
    element.firstChild.textContent = figure.title;
    drawPlot(element, figure);
  });
}

async function refresh() {
  try {
    show(await (await fetch("./figures")).json());
  } catch (error) {
    say("words", "No answer: the load test has ended, or this machine cannot reach it.");
  }
  setTimeout(refresh, REFRESH_MS);
}
refresh();
