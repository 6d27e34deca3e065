// SPDX-License-Identifier: MIT
// The panes: a schedule, a ring, a command line.
"use strict";
const $ = (id) => document.getElementById(id);
const examples = JSON.parse($("examples").textContent);
const kMostLive = 1 << 20; // larger texts are read on request, because each key would read them again

function element(name, properties = {}, ...children) {
  const e = Object.assign(document.createElement(name), properties);
  e.append(...children);
  return e;
}

// --- Panes ---------------------------------------------------------------------------------------------------------------

function show(pane) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const mine = tab.dataset.pane === pane;
    tab.setAttribute("aria-selected", mine);
    tab.tabIndex = mine ? 0 : -1;
    $(tab.dataset.pane).hidden = !mine;
  }
}
$("tabs").onclick = (e) => e.target.dataset.pane && show(e.target.dataset.pane);
$("tabs").onkeydown = (e) => {
  const tabs = [...document.querySelectorAll("[role=tab]")], at = tabs.indexOf(document.activeElement);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
  if (at < 0 || !step) return;
  const next = tabs[(at + step + tabs.length) % tabs.length];
  show(next.dataset.pane);
  next.focus();
};

function status(id, words, busy = false) {
  $(id).textContent = words;
  $(id).classList.toggle("busy", busy);
}

// --- A schedule ----------------------------------------------------------------------------------------------------------

const settings = new Map(); // of params
const parameters = new Map(); // of the machine
const kUnits = { K: 10, M: 20, G: 30 };
const kSizes = Array.from({ length: 25 }, (_, i) => (i < 4 ? `${64 << i}` : i < 14 ? `${1 << (i - 4)}K` : i < 24 ? `${1 << (i - 14)}M` : "1G"));

/// The params that the text declares with a plain number, which is what a slider can change.
function declared(source) {
  const found = [];
  for (const [, name, number, unit] of source.matchAll(/^\s*param\s+(\w+)\s*=\s*(\d+)([KMG]?)\s*(?:#.*)?$/gm)) found.push({ name, number: Number(number), unit });
  return found;
}

function slider(name, words, at, changed) {
  const output = element("output", { textContent: words[at] });
  const input = element("input", { type: "range", min: 0, max: words.length - 1, value: at, ariaLabel: name });
  input.dataset.name = name;
  input.oninput = () => {
    output.textContent = words[input.value];
    changed(words[input.value]);
  };
  return element("label", {}, element("span", { textContent: name }), input, output);
}

function sliders() {
  const all = declared($("source").value), box = $("params");
  const key = all.map((p) => `${p.name}=${p.number}${p.unit}`).join();
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  for (const name of settings.keys()) if (!all.some((p) => p.name === name)) settings.delete(name);
  box.replaceChildren(...all.map(({ name, number, unit }) => {
    const large = unit !== "" || number >= 64;
    const words = large ? [...kSizes] : Array.from({ length: Math.max(16, number) }, (_, i) => String(i + 1));
    const own = settings.get(name) ?? `${number}${unit}`;
    if (!words.includes(own)) words.push(own);
    return slider(name, words, words.indexOf(own), (value) => { settings.set(name, value); judge(); });
  }));
}

async function machine() {
  const answer = await predicting.run("machine", ["simulate", "--show-machine", "--json"]);
  if (answer.stopped || answer.code !== 0) return;
  const all = JSON.parse(text(answer.out)).parameters, select = $("parameter");
  select.replaceChildren(element("option", { value: "", textContent: "change a machine parameter…" }),
    ...Object.keys(all).map((name) => element("option", { value: name, textContent: name })));
  select.onchange = () => {
    const name = select.value;
    select.value = "";
    if (!name || parameters.has(name)) return;
    const value = all[name].value;
    const words = Array.from({ length: 41 }, (_, i) => String(value === 0 ? i * 250 : Number((value * 10 ** ((i - 20) / 20)).toPrecision(4))));
    parameters.set(name, String(value));
    const at = value === 0 ? 0 : 20;
    words[at] = String(value);
    const row = slider(name, words, at, (v) => { parameters.set(name, v); judge(); });
    row.title = all[name].source;
    const remove = element("button", { type: "button", textContent: "×", ariaLabel: `reset ${name}` });
    remove.onclick = () => { parameters.delete(name); row.remove(); judge(); };
    row.append(remove);
    $("machine").append(row);
  };
}

const pairs = (option, map) => [...map].flatMap(([name, value]) => [option, `${name}=${value}`]);

/// Makes the changes that a hint proposes. All of them count lines as they are before; the last line is changed first.
function apply(edits) {
  const all = $("source").value.split("\n");
  for (const { do: what, line, text } of [...edits].reverse()) {
    const at = line - 1, end = /^\s*end\b/.test(all[at] ?? "") && what === "insert" ? "  " : "";
    const indent = /^\s*/.exec(all[at] ?? "")[0] + end;
    all.splice(at, what === "insert" ? 0 : 1, ...(what === "remove" ? [] : [indent + text]));
  }
  $("source").value = all.join("\n");
  const first = Math.min(...edits.map((e) => e.line)) - 1, begin = all.slice(0, first).join("\n").length + (first > 0 ? 1 : 0);
  $("source").focus();
  $("source").setSelectionRange(begin, begin + (all[first] ?? "").length);
  edited();
}

function finding(f) {
  const box = element("article", { className: f.severity },
    element("h3", { textContent: `${f.severity}${f.rule ? ` [${f.rule}]` : ""}${f.line ? `, line ${f.line}` : f.where ? `, ${f.where}` : ""}` }),
    element("p", { textContent: f.message }));
  if (f.places?.length) {
    box.append(element("ol", { className: "packets" }, ...f.places.map((p) =>
      element("li", {}, element("b", { textContent: p.agent }), ` ${p.line ? `line ${p.line}: ` : ""}`, element("code", { textContent: p.text })))));
  }
  if (f.excerpt) box.append(element("pre", { textContent: f.excerpt }));
  if (f.hint) box.append(element("p", { className: "hint", textContent: f.hint }));
  if (f.edits) {
    const one = f.edits.length === 1 && f.edits[0].do === "insert";
    const button = element("button", { type: "button", className: "insert", textContent: one ? "insert this line" : "make these changes" });
    button.onclick = () => apply(f.edits);
    box.append(button);
  }
  return box;
}

let judged = 0;
async function judge({ force = false, begin = performance.now() } = {}) {
  const source = $("source").value, mine = ++judged;
  if (source.length > kMostLive && !force) {
    $("findings").replaceChildren(element("p", { textContent: `The text has ${source.length} characters, so it is not checked as you type.` }));
    const button = element("button", { type: "button", textContent: "check it now" });
    button.onclick = () => judge({ force: true });
    $("findings").append(button);
    status("verdict", "not checked");
    $("time").replaceChildren();
    return;
  }
  sliders();
  status("verdict", "checking…", true);
  const files = { "schedule.sdma": bytesOf(source) }, set = pairs("--set", settings);
  const checked = live.run("check", ["check", "--json", ...set, "schedule.sdma"], { files });
  const simulated = predicting.run("simulate", ["simulate", "--json", "--no-sensitivity", "--plot", "plot.svg", ...set, ...pairs("--parameter", parameters), "schedule.sdma"], { files });
  const check = await checked;
  if (mine !== judged) return;
  if (check.stopped) {
    status("verdict", check.stopped);
    $("findings").replaceChildren(element("p", { textContent: "There is no verdict." }));
  } else {
    const all = lines(check.out), verdict = all.find((l) => l.verdict), found = all.filter((l) => !l.verdict);
    status("verdict", verdict ? verdict.verdict : `exit code ${check.code}`);
    $("verdict").dataset.code = check.code;
    $("findings").replaceChildren(element("p", { className: "summary", textContent: verdict ? verdict.summary : text(check.err) }), ...found.map(finding));
  }
  const simulation = await simulated;
  if (mine !== judged) return;
  prediction(simulation);
  $("took").textContent = `${Math.round(performance.now() - begin)} ms`;
  $("took").dataset.source = judged;
}

function prediction(answer) {
  const box = $("time");
  if (answer.stopped || !text(answer.out).startsWith("{")) {
    const told = answer.stopped ?? text(answer.err);
    box.replaceChildren(element("p", { textContent: "No prediction: " + told }));
    return;
  }
  let s;
  try { s = JSON.parse(text(answer.out)); } catch { s = lines(answer.out)[0]; }
  if (s?.ns === undefined) {
    box.replaceChildren(element("p", { textContent: "No prediction: " + (s?.message ?? text(answer.out)) }));
    return;
  }
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
  box.replaceChildren(element("p", {}, element("b", { id: "predicted", textContent: time(s.ns) }), ` predicted; bottleneck: ${s.bottleneck}`), bar, legend);
  if (answer.files?.["plot.svg"])
    box.append(element("img", { alt: "timeline of the simulated run", src: "data:image/svg+xml," + encodeURIComponent(text(answer.files["plot.svg"])) }));
}

let typing;
function edited() {
  clearTimeout(typing);
  const begin = performance.now(); // the time that the page shows includes this delay
  typing = setTimeout(() => { judge({ begin }); remember(); }, 20);
}
$("source").oninput = edited;

// --- A ring --------------------------------------------------------------------------------------------------------------

/// Offsets that a finding names: "ring.txt:0x03f8".
const offsetOf = (where) => { const match = /:0x([0-9a-f]+)$/i.exec(where ?? ""); return match ? parseInt(match[1], 16) : null; };

let read = 0;
async function readRing(force = false) {
  const dump = $("dump").value, mine = ++read;
  if (dump.length > kMostLive && !force) {
    $("packets").replaceChildren(element("p", { textContent: `The text has ${dump.length} characters, so it is not read as you type.` }));
    const button = element("button", { type: "button", textContent: "read it now" });
    button.onclick = () => readRing(true);
    $("packets").append(button);
    return status("ring-status", "not read");
  }
  if (dump.trim() === "") {
    $("packets").replaceChildren();
    return status("ring-status", "");
  }
  status("ring-status", "reading…", true);
  const files = { "ring.txt": bytesOf(dump) }, where = [];
  for (const option of ["rptr", "wptr"]) if ($(option).value.trim()) where.push(`--${option}=${$(option).value.trim()}`);
  const [shown, checked] = await Promise.all([
    live.run("dis", ["dis", "--offsets", ...(where.length > 0 ? ["--consumed"] : []), ...where, "ring.txt"], { files }),
    predicting.run("check-ring", ["check", "--json", "--max-findings=5", "ring.txt"], { files })]);
  if (mine !== read) return;
  if (shown.stopped) {
    $("packets").replaceChildren();
    return status("ring-status", shown.stopped);
  }
  const answers = checked.stopped ? [] : lines(checked.out), found = answers.filter((l) => l.severity), verdict = answers.find((l) => l.verdict);
  const by = new Map();
  for (const f of found) {
    const at = offsetOf(f.where);
    by.set(at, [...(by.get(at) ?? []), f]);
  }
  const rows = element("tbody");
  let done = false; // consumed by the engine
  const kMostRows = 2000;
  const all = text(shown.out).split("\n").filter((l) => l !== "");
  for (const line of all.slice(0, kMostRows)) {
    const mark = /^# (rptr|wptr|consumed)\b/.exec(line), offset = / # 0x([0-9a-f]+)$/i.exec(line);
    if (mark && mark[1] !== "wptr") done = mark[1] === "consumed";
    const row = element("tr", { className: mark ? "mark" : done ? "done" : "" }, element("td", {}, element("code", { textContent: line })));
    const mine = offset ? by.get(parseInt(offset[1], 16)) : null;
    row.append(element("td", {}, ...(done && mine ? [element("b", { textContent: "executed already" })] : []), ...(mine ?? []).map(finding)));
    if (mine) by.delete(parseInt(offset[1], 16));
    rows.append(row);
  }
  const table = element("table", {}, rows);
  const rest = [...by.values()].flat().map(finding);
  $("packets").replaceChildren(...(all.length > kMostRows ? [element("p", { textContent: `The first ${kMostRows} of ${all.length} lines:` })] : []), table, ...rest);
  status("ring-status", [verdict?.summary ?? verdict?.verdict, text(shown.err).trim()].filter(Boolean).join("\n"));
}
let pasting;
const ringEdited = () => { clearTimeout(pasting); pasting = setTimeout(() => { readRing(); remember(); }, 150); };
for (const id of ["dump", "rptr", "wptr"]) $(id).oninput = ringEdited;

// --- A command line ------------------------------------------------------------------------------------------------------

/// The words of a line as a shell splits them, without expansions.
function words(line) {
  const out = [];
  for (const match of line.matchAll(/(?:[^\s"']+|"(?:\\.|[^"\\])*"|'[^']*')+/g))
    out.push(match[0].replace(/"((?:\\.|[^"\\])*)"|'([^']*)'/g, (_, a, b) => (a !== undefined ? a.replace(/\\(.)/g, "$1") : b)));
  return out;
}
$("command-form").onsubmit = async (e) => {
  e.preventDefault();
  const all = words($("command").value);
  if (all[0] === "sdma") all.shift();
  status("command-status", "running…", true);
  const files = { "schedule.sdma": bytesOf($("source").value), "ring.txt": bytesOf($("dump").value), ...examples };
  for (const name in files) if (typeof files[name] === "string") files[name] = bytesOf(files[name]);
  const answer = await commands.run("command", all, { files, input: bytesOf($("stdin").value) });
  if (answer.stopped) return status("command-status", answer.stopped);
  const made = Object.entries(answer.files).map(([name, bytes]) => `--- ${name}\n${text(bytes)}`);
  $("output").textContent = text(answer.out) + text(answer.err) + made.join("");
  status("command-status", `exit code ${answer.code}, ${Math.round(answer.ms)} ms`);
};
for (const button of document.querySelectorAll("button.stop")) button.onclick = () => { for (const runner of [live, predicting, commands]) runner.stop(); };

/// For tests: one run, with what `sdma` would get.
window.runProgram = (argv, input, files, limit) => commands.run("test", argv, { input, files, limit });

// --- Examples and links --------------------------------------------------------------------------------------------------

for (const name of Object.keys(examples)) {
  const group = name.includes("/exhibits/") ? "museum" : "shipped";
  $(group).append(element("option", { value: name, textContent: name.split("/").pop() }));
}
/// Packets as text become a ring's dwords.
async function showPackets(name) {
  const answer = await commands.run("example", ["as", "--format=hex", "ring.packets"], { files: { "ring.packets": bytesOf(examples[name]) } });
  if (answer.code !== 0) return status("notice", `${name}: ${answer.stopped ?? text(answer.err)}`);
  $("dump").value = text(answer.out);
  $("rptr").value = $("wptr").value = "";
  show("ring");
  $("dump").dispatchEvent(new Event("input"));
}

$("example").onchange = () => {
  const name = $("example").value;
  $("example").value = "";
  if (!name) return;
  if (name.endsWith(".packets")) return showPackets(name);
  settings.clear();
  $("params").dataset.key = "";
  $("source").value = examples[name];
  show("schedule");
  edited();
};

const base64url = (bytes) => {
  let s = "";
  for (let i = 0; i < bytes.length; i += 4096) s += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return btoa(s).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
};
const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

/// What the page holds, for a link: nothing leaves the page, because a fragment is not sent to any server.
const held = () => ({ pane: document.querySelector("[role=tab][aria-selected=true]").dataset.pane, source: $("source").value, dump: $("dump").value,
  rptr: $("rptr").value, wptr: $("wptr").value, set: [...settings], machine: [...parameters] });
const kMostLink = 200000;
async function remember() {
  const packed = await through(bytesOf(JSON.stringify(held())), new CompressionStream("deflate-raw"));
  const fits = packed.length <= kMostLink;
  $("link").disabled = !fits;
  $("link").title = fits ? "" : "the text is too long for a link";
  if (fits) history.replaceState(null, "", "#" + base64url(packed));
}
$("link").onclick = async () => {
  await remember();
  try {
    await navigator.clipboard.writeText(location.href);
    $("link").textContent = "copied";
  } catch {
    $("link").textContent = "it is in the address bar";
  }
};

async function restore() {
  const packed = location.hash.slice(1);
  if (packed) {
    try {
      const bytes = Uint8Array.from(atob(packed.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
      const state = JSON.parse(kDecoder.decode(await through(bytes, new DecompressionStream("deflate-raw"))));
      for (const id of ["source", "dump", "rptr", "wptr"]) if (typeof state[id] === "string") $(id).value = state[id];
      for (const [name, value] of state.set ?? []) settings.set(String(name), String(value));
      show(["schedule", "ring", "terminal"].includes(state.pane) ? state.pane : "schedule");
      $("example").value = "";
      if ($("dump").value) readRing();
      return judge();
    } catch (e) {
      status("notice", "the link is damaged: " + e.message);
    }
  }
  $("source").value = examples[Object.keys(examples).find((n) => n.endsWith("2_allgather_b2b.sdma"))];
  settings.set("N", "8");
  await judge();
}

loaded.then(machine, (e) => status("verdict", "the program cannot be loaded: " + e.message));
restore().then(() => { document.body.dataset.ready = String(Math.round(performance.now())); });
addEventListener("hashchange", () => location.reload());
