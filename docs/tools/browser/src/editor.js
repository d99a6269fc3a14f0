// The editor: CodeMirror, in the colours of the page.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import {
  HighlightStyle, bracketMatching, codeFolding, foldEffect, foldGutter, foldKeymap, indentOnInput,
  indentUnit, syntaxHighlighting,
} from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import {
  EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier], color: "var(--md-code-hl-keyword-color)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--md-code-hl-string-color)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--md-code-hl-number-color)" },
  { tag: tags.comment, color: "var(--md-code-hl-comment-color)" },
  {
    tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)],
    color: "var(--md-code-hl-function-color)",
  },
  { tag: tags.meta, color: "var(--md-code-hl-keyword-color)" },
  { tag: [tags.operator, tags.punctuation], color: "var(--md-code-hl-operator-color)" },
]);

const look = EditorView.theme({
  "&": { backgroundColor: "var(--md-code-bg-color)", color: "var(--md-code-fg-color)" },
  "&.cm-focused": { outline: "0.1rem solid var(--md-accent-fg-color)" },
  ".cm-scroller": { fontFamily: "var(--md-code-font-family)", lineHeight: "1.45" },
  ".cm-content": { caretColor: "var(--md-code-fg-color)" },
  ".cm-cursor": { borderLeftColor: "var(--md-code-fg-color)" },
  ".cm-gutters": {
    backgroundColor: "transparent", color: "var(--md-default-fg-color--light)", border: "none",
  },
  ".cm-activeLine": { backgroundColor: "var(--md-code-hl-color--light)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--md-code-hl-color--light)",
  },
  ".cm-foldPlaceholder": {
    backgroundColor: "transparent", border: "none", color: "var(--md-default-fg-color--light)",
  },
});

/**
 * Put an editor into an element.
 *
 * label: for those who do not see it. code: Python, not lines of text. folded: how many of the
 * first lines are hidden at first. onRun: Control-Enter. onChange: it has another text.
 */
export function editor(parent, { label, text, code = true, folded = 0, onRun, onChange }) {
  const language = code
    ? [python(), indentUnit.of("    "), indentOnInput(), bracketMatching(), foldGutter()]
    : [];
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(), history(), drawSelection(), highlightActiveLine(), ...language,
        codeFolding({ placeholderText: "… the lines that all examples of this chapter begin with" }),
        syntaxHighlighting(colours), look,
        EditorView.contentAttributes.of({ "aria-label": label }),
        EditorView.updateListener.of((update) => update.docChanged && onChange?.()),
        keymap.of([
          { key: "Mod-Enter", run: () => { onRun?.(); return true; } },
          ...defaultKeymap, ...historyKeymap, ...foldKeymap, indentWithTab,
        ]),
      ],
    }),
  });
  if (folded > 0 && folded < view.state.doc.lines) {
    const to = view.state.doc.line(folded).to;
    view.dispatch({ effects: foldEffect.of({ from: 0, to }) });
  }
  return {
    get text() { return view.state.doc.toString(); },
    set text(next) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
    },
    close: () => view.destroy(),
  };
}
