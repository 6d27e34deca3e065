// SPDX-License-Identifier: MIT
// The pane of a schedule: its text decides. Sliders write into it.
"use strict";
const kSizes = Array.from({ length: 25 }, (_, i) => (i < 4 ? `${64 << i}` : i < 14 ? `${1 << (i - 4)}K` : i < 24 ? `${1 << (i - 14)}M` : "1G"));
const kUnits = { "": 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 };
const kParam = /^([ \t]*param[ \t]+(\w+)[ \t]*=[ \t]*)(\d+[KMG]?)([ \t]*(?:#.*)?)$/gm;
const kMostTimeline = 8 << 20;
const valueOf = (word) => parseFloat(word) * (kUnits[/[KMG]$/.exec(word)?.[0] ?? ""] ?? 1);

/// The params that the text declares with a plain number, which is what a slider can change.
const declared = (source) => [...source.matchAll(kParam)].map(([, , name, word]) => ({ name, word }));
/// The text with another value of a param, where it declares it with a plain number.
const withParam = (source, name, word) => source.replace(kParam, (line, before, found, _, after) => (found === name ? before + word + after : line));

// --- Sliders -------------------------------------------------------------------------------------------------------------

/// Powers of two, and the value itself.
function stepsOf(word) {
  const value = valueOf(word), sizes = /[KMG]$/.test(word) || value >= 64;
  const all = sizes ? [...kSizes] : [...(value === 0 ? ["0"] : []), ...Array.from({ length: 7 }, (_, i) => String(2 ** i))];
  return withOwn(all, word);
}
function withOwn(all, word) {
  if (!all.some((w) => valueOf(w) === valueOf(word))) all.push(word);
  return all.sort((a, b) => valueOf(a) - valueOf(b));
}

/// Rows of sliders for [{name, word, words, title}]. Rows that are there already are only moved, because one may be under a finger.
function sliders(box, all, changed, removed) {
  const rows = [...box.children];
  const keep = rows.length === all.length && all.every((a, i) => rows[i].dataset.name === a.name && rows[i].words.some((w) => valueOf(w) === valueOf(a.word)));
  if (!keep) {
    box.replaceChildren(...all.map((a) => {
      const input = element("input", { type: "range", min: 0, max: a.words.length - 1, ariaLabel: a.name });
      const row = element("label", { words: a.words, title: a.title ?? "" }, element("span", { textContent: a.name }), input, element("output"));
      row.dataset.name = input.dataset.name = a.name;
      input.oninput = () => changed(a.name, a.words[input.value]);
      if (removed) row.append(element("button", { type: "button", textContent: "×", ariaLabel: `reset ${a.name}`, onclick: () => removed(a.name) }));
      return row;
    }));
  }
  all.forEach((a, i) => {
    const row = box.children[i], input = row.querySelector("input"), at = row.words.findIndex((w) => valueOf(w) === valueOf(a.word));
    input.value = at;
    input.ariaValueText = a.word;
    row.querySelector("output").textContent = a.word;
  });
}

let defaults = {}; // of the machine: {name: {value, source}}
const machineSteps = (name, word) => {
  const value = defaults[name]?.value ?? Number(word), most = /efficiency/.test(name) ? 1 : Infinity;
  const all = value === 0 ? [0, ...Array.from({ length: 17 }, (_, i) => 2 ** i)] : Array.from({ length: 13 }, (_, i) => value * 2 ** (i - 6));
  return withOwn(all.filter((v) => v <= most).map((v) => String(Number(v.toPrecision(6)))), word);
};
function showSliders() {
  sliders($("params"), declared($("source").value.slice(0, kMostEdited)).map((p) => ({ ...p, words: stepsOf(p.word) })), (name, word) => {
    $("source").value = withParam($("source").value, name, word);
    scheduleChanged(`param ${name}`);
  });
  const changed = (name) => scheduleChanged(`machine ${name}`);
  sliders($("machine"), [...parameters].map(([name, word]) => ({ name, word, words: machineSteps(name, word), title: defaults[name]?.source })),
    (name, word) => { parameters.set(name, word); changed(name); }, (name) => { parameters.delete(name); changed(name); });
}
async function machine() {
  const answer = await predicting.run("machine", ["simulate", "--show-machine", "--json"]);
  if (answer.stopped || answer.code !== 0) return;
  defaults = JSON.parse(text(answer.out)).parameters;
  $("parameter").replaceChildren(element("option", { value: "", textContent: "change a machine parameter…" }),
    ...Object.keys(defaults).map((name) => element("option", { value: name, textContent: name })));
  $("parameter").onchange = () => {
    const name = $("parameter").value;
    $("parameter").value = "";
    if (!name || parameters.has(name)) return;
    parameters.set(name, String(defaults[name].value));
    scheduleChanged(`machine ${name}`);
  };
}

// --- Findings ------------------------------------------------------------------------------------------------------------

/// Makes the changes that a hint proposes. All of them count lines as they are before; the last line is changed first.
function apply(edits) {
  const all = $("source").value.split("\n");
  for (const { do: what, line, text } of [...edits].reverse()) {
    const at = line - 1, end = /^\s*end\b/.test(all[at] ?? "") && what === "insert" ? "  " : "";
    const indent = /^\s*/.exec(all[at] ?? "")[0] + end;
    all.splice(at, what === "insert" ? 0 : 1, ...(what === "remove" ? [] : [indent + text]));
  }
  $("source").value = all.join("\n");
  $("source").reveal(Math.min(...edits.map((e) => e.line)));
  scheduleChanged("edits");
}
const lineButton = (line) => element("button", { type: "button", className: "line", textContent: `line ${line}`, onclick: () => $("source").reveal(line) });

function finding(f) {
  const where = f.line ? [", ", lineButton(f.line)] : f.where ? [`, ${f.where}`] : [];
  const box = element("article", { className: f.severity },
    element("h2", {}, `${f.severity}${f.rule ? ` [${f.rule}]` : ""}`, ...where), element("p", { textContent: f.message }));
  if (f.places?.length) {
    box.append(element("ol", { className: "packets" }, ...f.places.map((p) =>
      element("li", {}, element("b", { textContent: p.agent }), " ", ...(p.line ? [lineButton(p.line), ": "] : []), element("code", { textContent: p.text })))));
  }
  if (f.excerpt) box.append(element("pre", { textContent: f.excerpt, tabIndex: 0 }));
  if (f.hint) box.append(element("p", { className: "hint", textContent: f.hint }));
  if (f.edits) {
    const one = f.edits.length === 1 && f.edits[0].do === "insert";
    box.append(element("button", { type: "button", className: "insert", textContent: one ? "insert this line" : "make these changes", onclick: () => apply(f.edits) }));
  }
  return box;
}
const marksOf = (found) => found.flatMap((f) => [f, ...(f.places ?? [])].filter((p) => p.line).map((p) => ({ line: p.line, severity: f.severity, message: f.message })));

// --- Answers -------------------------------------------------------------------------------------------------------------

/// The answers stay, in grey, until those of this text are there. Their edits are those of an earlier text, so they cannot be made.
const kAnswers = ["findings", "time", "timeline"];
function stale(id, is) {
  $(id).classList.toggle("stale", is);
  for (const button of $(id).querySelectorAll(".insert")) button.disabled = is;
}

/// Removes the answers. Those of another text are gone before the new one shows.
function forget() {
  ++judged;
  status("verdict", "");
  delete $("verdict").dataset.code;
  $("errors").replaceChildren();
  $("source").mark([]);
  for (const id of kAnswers) $(id).replaceChildren(), stale(id, false);
  status("time-note", "");
}

/// What a run says on standard error, as sentences: with --json, its messages are objects.
const saidBy = (answer) => lines(answer.err).map((m) => [m.message, m.hint].filter(Boolean).join(": ")).join("\n") || text(answer.err);

let judged = 0;
async function judge({ force = false, begin = performance.now() } = {}) {
  const source = $("source").value, mine = ++judged;
  showSliders();
  const offered = offer("source-kind", source, "schedule");
  if (offered || (tooLong(source) && !force)) {
    forget();
    status("verdict", offered ? "not a schedule" : "not checked");
    $("errors").replaceChildren(...(offered ? [] : [element("p", { textContent: `The text has ${source.length} characters, so it is not checked as you type. ` }),
      element("button", { type: "button", textContent: "check it now", onclick: () => judge({ force: true }) })]));
    return;
  }
  status("verdict", "checking…", true);
  for (const id of kAnswers) stale(id, true);
  const files = { ...companions, "schedule.sdma": bytesOf(source) };
  const checked = live.run("check", ["check", "--json", ...words($("options").value), "schedule.sdma"], { files });
  const simulate = ["simulate", "--json", "--no-sensitivity", ...[...parameters].flatMap(([name, value]) => ["--parameter", `${name}=${value}`]), "schedule.sdma"];
  const simulated = predicting.run("simulate", simulate, { files });
  const drawn = predicting.run("timeline", [...simulate, "--trace", "timeline.html"], { files }); // takes longer than the time alone
  const check = await checked;
  if (mine !== judged) return;
  const read = answered(check);
  const simulation = await simulated;
  if (mine !== judged) return;
  const predicted = prediction(simulation, read);
  $("took").textContent = `${Math.round(performance.now() - begin)} ms`;
  $("took").dataset.source = judged;
  const page = (await drawn).files?.["timeline.html"];
  if (mine === judged && predicted) timeline(page);
}

/// Shows what `sdma check` says: its outcome, and in the colour of its exit code. False: the text cannot be read, and the findings are
/// those of an earlier text.
function answered(check) {
  delete $("verdict").dataset.code;
  if (check.stopped) {
    status("verdict", check.stopped);
    $("errors").replaceChildren(element("p", { textContent: "There is no verdict." }));
    $("source").mark([]);
    return true;
  }
  const all = lines(check.out), verdict = all.find((l) => l.verdict), found = all.filter((l) => !l.verdict);
  const read = verdict && verdict.verdict !== "unread";
  status("verdict", read ? verdict.outcome : verdict ? "not readable yet" : `exit code ${check.code}`);
  $("verdict").dataset.code = check.code;
  $("source").mark(marksOf(found));
  const shown = [element("p", { className: "summary", textContent: verdict ? verdict.summary : found.length ? "" : saidBy(check) }), ...found.map(finding)];
  if (read) {
    $("errors").replaceChildren();
    $("findings").replaceChildren(...shown);
    stale("findings", false);
  } else {
    $("errors").replaceChildren(...shown, ...($("findings").childElementCount ? [element("p", { className: "dim", textContent: "The answer to the last text that could be read:" })] : []));
  }
  return read;
}

/// False: there is none.
function prediction(answer, read) {
  let s = null;
  try { s = JSON.parse(text(answer.out)); } catch { s = lines(answer.out)[0]; }
  if (answer.stopped || s?.ns === undefined) {
    const why = answer.stopped ?? s?.message ?? saidBy(answer);
    if (read) for (const id of ["time", "timeline"]) $(id).replaceChildren(), stale(id, false);
    status("time-note", read ? `No prediction: ${why}` : $("time").childElementCount ? "The prediction is that of the last text that could be read." : "");
    return false;
  }
  status("time-note", "");
  const time = (ns) => (ns < 1e6 ? `${(ns / 1e3).toFixed(2)} µs` : `${(ns / 1e6).toFixed(3)} ms`);
  const whole = Object.values(s.phases).reduce((a, b) => a + b, 0) || 1;
  const bar = element("div", { className: "phases", role: "img", ariaLabel: "phases of the critical path" });
  const legend = element("ul", { className: "legend" });
  for (const [name, ns] of Object.entries(s.phases)) {
    if (ns === 0) continue;
    const part = element("span", { className: name, title: `${name}: ${time(ns)}` });
    part.style.width = `${(100 * ns) / whole}%`;
    bar.append(part);
    legend.append(element("li", { className: name, textContent: `${name} ${time(ns)}` }));
  }
  $("time").replaceChildren(element("p", {}, element("b", { id: "predicted", textContent: time(s.ns) }), ` predicted; bottleneck: ${s.bottleneck}`), bar, legend);
  stale("time", false);
  return true;
}

/// The page that `sdma simulate --trace` writes. The next one replaces it when it is ready.
function timeline(page) {
  const box = $("timeline");
  if (!page || page.length > kMostTimeline) {
    box.replaceChildren(element("p", { textContent: page ? `The timeline has ${page.length} bytes, too many to draw here: sdma simulate --trace run.html` : "" }));
    return stale("timeline", false);
  }
  const frame = element("iframe", { title: "timeline of the simulated run", srcdoc: text(page), sandbox: "allow-scripts", className: "next" });
  for (const other of box.querySelectorAll(".next")) other.remove();
  const mine = judged; // another text may be judged before this frame is ready
  frame.onload = () => {
    frame.className = "";
    for (const other of [...box.children]) if (other !== frame && other.className !== "next") other.remove();
    if (mine === judged) stale("timeline", false);
  };
  box.append(frame);
}

let typing;
function scheduleChanged(what) {
  record(what);
  showSliders();
  for (const id of kAnswers) stale(id, true);
  clearTimeout(typing);
  const begin = performance.now(); // the time that the page shows includes this delay
  typing = setTimeout(() => judge({ begin }), 20);
}
for (const id of ["source", "options"]) $(id).oninput = (e) => e.target === $(id) && scheduleChanged(id);
