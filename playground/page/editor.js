// SPDX-License-Identifier: MIT
// A text with line numbers, highlighting and marks: an element with `value` and the event `input`, as a textarea has.
//
//   <text-editor id="source" mode="sdma" aria-label="The schedule's text"></text-editor>
//
// A text that is too long to edit is kept as it is, and its beginning is shown: a browser needs many seconds to lay out 10 MB. The
// page has an undo stack of its own (state.js), so the editor has none.
"use strict";
const kMostEdited = 1 << 20, kLongestLine = 20000;
const tooLong = (text) => text.length > kMostEdited || new RegExp(`[^\\n]{${kLongestLine}}`).test(text);

CodeMirror.defineMode("sdma", () => ({
  startState: () => ({ first: true }),
  token(stream, state) {
    if (stream.sol()) state.first = true;
    if (stream.eatSpace()) return null;
    if (stream.match(/^#.*/)) return "comment";
    if (stream.match(/^(?:0x[0-9a-fA-F]+|\d+[KMG]?)\b/)) return "number";
    if (!stream.match(/^[A-Za-z_]\w*/)) return stream.next(), null;
    const word = stream.current(), first = state.first;
    state.first = false;
    if (first) return kWords.statements.includes(word) ? "keyword" : "builtin";
    if (stream.match(/^=(?!=)/, false)) return "attribute";
    return kWords.words.includes(word) ? "keyword" : null;
  },
}));

class TextEditor extends HTMLElement {
  #code = null;
  #long = null; // the text, if it is too long to edit
  #quiet = false;

  connectedCallback() {
    this.#code = CodeMirror(this, { mode: this.getAttribute("mode"), lineNumbers: true, undoDepth: 0, inputStyle: "contenteditable", screenReaderLabel: this.getAttribute("aria-label"),
      gutters: ["CodeMirror-linenumbers", "marks"], extraKeys: { Tab: false, "Shift-Tab": false }, tabSize: 2, dragDrop: false });
    this.removeAttribute("aria-label"); // the field in which one types has it
    this.#code.on("change", () => this.#quiet || this.dispatchEvent(new Event("input")));
    new ResizeObserver(() => this.#code.refresh()).observe(this);
    this.addEventListener("paste", (e) => {
      const pasted = e.clipboardData.getData("text/plain");
      if (!tooLong(pasted)) return;
      e.preventDefault();
      e.stopPropagation();
      const before = this.#code.getRange({ line: 0, ch: 0 }, this.#code.getCursor("from"));
      this.#take(before + pasted + this.value.slice(before.length + this.#code.getSelection().length));
    }, true);
    this.addEventListener("dragover", (e) => e.preventDefault());
    this.addEventListener("drop", async (e) => {
      e.preventDefault();
      this.#take(e.dataTransfer.files.length ? await e.dataTransfer.files[0].text() : e.dataTransfer.getData("text/plain"));
    });
  }

  get value() { return this.#long ?? this.#code.getValue(); }
  /// Replaces only what differs, so that marks, the cursor and the scroll position stay where they are.
  set value(text) {
    text = text.replace(/\r\n?/g, "\n");
    const long = tooLong(text), before = this.#code.getValue(), after = long ? "" : text;
    this.#show(long ? text : null);
    if (before === after) return;
    let begin = 0, end = 0;
    const most = Math.min(before.length, after.length);
    while (begin < most && before[begin] === after[begin]) ++begin;
    while (end < most - begin && before[before.length - 1 - end] === after[after.length - 1 - end]) ++end;
    const at = (i) => this.#code.posFromIndex(i);
    this.#quiet = true;
    this.#code.replaceRange(after.slice(begin, after.length - end), at(begin), at(before.length - end));
    this.#quiet = false;
  }
  focus() { this.#code.focus(); }

  /// Selects a line and shows it; the first is 1.
  reveal(line) {
    const at = line - 1;
    this.#code.focus();
    this.#code.setSelection({ line: at, ch: 0 }, { line: at });
    this.#code.scrollIntoView({ line: at, ch: 0 }, 80);
  }
  /// Marks lines: [{line, severity, message}].
  mark(all) {
    this.#code.clearGutter("marks");
    const by = new Map();
    for (const m of all) by.set(m.line, [...(by.get(m.line) ?? []), m]);
    for (const [line, some] of by)
      this.#code.setGutterMarker(line - 1, "marks", element("span", { className: `mark ${some[0].severity}`, textContent: "●", title: some.map((m) => m.message).join("\n") }));
  }

  #take(text) {
    this.value = text;
    this.dispatchEvent(new Event("input"));
  }
  #show(long) {
    if (this.#long === long) return;
    this.#long = long;
    this.querySelector(".long")?.remove();
    this.#code.getWrapperElement().hidden = long !== null;
    if (long === null) return;
    const clear = element("button", { type: "button", textContent: "remove it", onclick: () => this.#take("") });
    this.append(element("div", { className: "long" }, element("p", { textContent: `This text has ${long.length} characters, which are too many to edit here. It begins with:` }),
      element("pre", { textContent: long.slice(0, 2000), tabIndex: 0 }), clear));
  }
}
customElements.define("text-editor", TextEditor);
