// SPDX-License-Identifier: MIT
// What the page holds: one state, which the address, links, reloads and the undo stack keep as a whole.
//
//   record("source")      after each change of a field: makes a step to undo, and renews the address
//   put({...held(), source: "sdma 1\n"}); record("example")
//
// Nothing leaves the page: a fragment is not sent to any server.
"use strict";
const $ = (id) => document.getElementById(id);
const kFields = ["source", "dump", "rptr", "wptr", "options", "ring-options", "command", "stdin"];
const kPanes = ["schedule", "ring", "terminal"];
const kSteps = 200, kPauseMs = 1000, kMostLink = 200000, kMostPacked = 4 << 20;
const parameters = new Map(); // of the machine, that differ from the default

function element(name, properties = {}, ...children) {
  const e = Object.assign(document.createElement(name), properties);
  e.append(...children);
  return e;
}
function status(id, words, busy = false) {
  $(id).textContent = words;
  $(id).classList.toggle("busy", busy);
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
function choose(pane) {
  show(pane);
  record("pane");
}
$("tabs").onclick = (e) => e.target.dataset.pane && choose(e.target.dataset.pane);
$("tabs").onkeydown = (e) => {
  const tabs = [...document.querySelectorAll("[role=tab]")], at = tabs.indexOf(document.activeElement);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
  if (at < 0 || !step) return;
  const next = tabs[(at + step + tabs.length) % tabs.length];
  choose(next.dataset.pane);
  next.focus();
};

// --- The state -----------------------------------------------------------------------------------------------------------

const held = () => ({ pane: document.querySelector("[role=tab][aria-selected=true]").dataset.pane, machine: [...parameters],
  ...Object.fromEntries(kFields.map((id) => [id, $(id).value])) });
const same = (a, b) => kFields.every((id) => a[id] === b[id]) && JSON.stringify(a.machine) === JSON.stringify(b.machine);

/// Shows a state. What is not in it, or not of its type, is empty.
function put(state) {
  if (state.source !== $("source").value) forget();
  for (const id of kFields) $(id).value = typeof state[id] === "string" ? state[id] : id === "command" ? $(id).defaultValue : "";
  parameters.clear();
  for (const [name, value] of Array.isArray(state.machine) ? state.machine : []) parameters.set(String(name), String(value));
  show(kPanes.includes(state.pane) ? state.pane : "schedule");
}

const past = [], future = [];
let present = null, lastChange = "", lastTime = 0;
/// `what` names what changed: changes of one thing without a pause are one step. A change of the pane alone belongs to the next step.
function record(what) {
  const now = held(), time = performance.now();
  if (present && !same(now, present)) {
    if (what !== lastChange || time - lastTime > kPauseMs) past.push(present);
    if (past.length > kSteps) past.shift();
    future.length = 0;
    [lastChange, lastTime] = [what, time];
  }
  present = now;
  buttons();
  address();
}
function buttons() {
  $("undo").disabled = past.length === 0;
  $("redo").disabled = future.length === 0;
}
function step(from, to) {
  if (from.length === 0) return;
  to.push(present);
  present = from.pop();
  lastChange = "";
  put(present);
  renew();
  buttons();
  address();
}
$("undo").onclick = () => step(past, future);
$("redo").onclick = () => step(future, past);
addEventListener("keydown", (e) => {
  const key = e.key.toLowerCase();
  if (!(e.ctrlKey || e.metaKey) || e.altKey || (key !== "z" && key !== "y")) return;
  e.preventDefault();
  e.stopPropagation();
  if (key === "y" || e.shiftKey) step(future, past);
  else step(past, future);
}, true);

// --- The address ---------------------------------------------------------------------------------------------------------

const base64url = (bytes) => {
  let s = "";
  for (let i = 0; i < bytes.length; i += 4096) s += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return btoa(s).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
};
const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

const kWhole = "~"; // ends a link, because mail and chat programs cut long ones

let addressed = 0, waiting;
/// Renews the address. A state that is too long has none, rather than that of an earlier state.
async function renewAddress() {
  const mine = ++addressed, state = held();
  let packed = null;
  if (state.source.length + state.dump.length <= kMostPacked) packed = await through(bytesOf(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  if (mine !== addressed) return;
  const fits = packed !== null && packed.length <= kMostLink;
  $("link").disabled = !fits;
  $("link").title = fits ? "" : "the text is too long for a link";
  $("link").textContent = "Copy link";
  history.replaceState(null, "", fits ? "#" + base64url(packed) + kWhole : location.pathname + location.search);
}
function address() {
  clearTimeout(waiting);
  waiting = setTimeout(renewAddress, 100);
}
$("link").onclick = async () => {
  await renewAddress();
  try {
    await navigator.clipboard.writeText(location.href);
    $("link").textContent = "copied";
  } catch {
    $("link").textContent = "it is in the address bar";
  }
};

/// The state of the address; null if it has none. Throws if it is damaged.
async function addressedState() {
  const packed = location.hash.slice(1);
  if (packed.startsWith("example=")) return exampleState(decodeURIComponent(packed.slice(8)));
  if (!packed) return null;
  const whole = packed.endsWith(kWhole);
  let state;
  try {
    const bytes = Uint8Array.from(atob(packed.replace(kWhole, "").replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    state = JSON.parse(kDecoder.decode(await through(bytes, new DecompressionStream("deflate-raw"))));
  } catch (e) {
    throw whole ? Error("the link is damaged: " + e.message) : Error("the link is cut: its end is missing. Copy all of it.");
  }
  // Earlier links have values of params beside the text.
  for (const [name, value] of Array.isArray(state.set) ? state.set : []) state.source = withParam(String(state.source ?? ""), String(name), String(value));
  return state;
}
