// Small parts of what the scripts put into a page.

/** Return an element with attributes, listeners (onclick=…) and children. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

export function button(text, title, onclick) {
  return element("button", { type: "button", class: "md-button", title, onclick }, text);
}

const LONGEST = 100_000; // characters of a result that a page shows

/** Show results: a titled block for each. */
export function results(parent, sections) {
  parent.replaceChildren(...Object.entries(sections).map(([title, text]) => {
    const shown = text.length > LONGEST ? `${text.slice(0, LONGEST)}\n… (cut)` : text;
    return element("div", { class: "workbench-result", "data-title": title },
      element("span", { class: "filename" }, title),
      element("pre", {}, element("code", {}, shown)));
  }));
}

export const RESTARTED = "Stopped. Python starts anew with the next run.";
