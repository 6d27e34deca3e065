// SPDX-License-Identifier: MIT
// The pane of a ring: a dump's packets, and findings beside them.
"use strict";
const kMostRows = 2000;

/// Offsets that a finding names: "ring.txt:0x03f8".
const offsetOf = (where) => { const match = /:0x([0-9a-f]+)$/i.exec(where ?? ""); return match ? parseInt(match[1], 16) : null; };
/// Those options of `sdma check` that `dis` and `as` have, too.
const generation = (all) => all.filter((o, i) => /^--(gfx|sdma)(=|$)/.test(o) || (i > 0 && /^--(gfx|sdma)$/.test(all[i - 1])));

let read = 0;
async function readRing(force = false) {
  const dump = $("dump").value, mine = ++read;
  if (offer("dump-kind", dump, "ring") || dump.trim() === "") {
    $("packets").replaceChildren();
    return status("ring-status", "");
  }
  if (tooLong(dump) && !force) {
    $("packets").replaceChildren(element("p", { textContent: `The text has ${dump.length} characters, so it is not read as you type.` }),
      element("button", { type: "button", textContent: "read it now", onclick: () => readRing(true) }));
    return status("ring-status", "not read");
  }
  status("ring-status", "reading…", true);
  stale("packets", true);
  const files = { ...companions, "ring.txt": bytesOf(dump) }, where = [], options = words($("ring-options").value);
  for (const option of ["rptr", "wptr"]) if ($(option).value.trim()) where.push(`--${option}=${$(option).value.trim()}`);
  const [shown, checked] = await Promise.all([
    live.run("dis", ["dis", "--offsets", ...(where.length > 0 ? ["--consumed"] : []), ...generation(options), ...where, "ring.txt"], { files }),
    predicting.run("check-ring", ["check", "--json", "--max-findings=5", ...options, "ring.txt"], { files })]);
  if (mine !== read) return;
  stale("packets", false);
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
  const rest = [...by.values()].flat().map(finding);
  $("packets").replaceChildren(...(all.length > kMostRows ? [element("p", { textContent: `The first ${kMostRows} of ${all.length} lines:` })] : []), element("table", {}, rows), ...rest);
  status("ring-status", [verdict?.summary ?? verdict?.verdict, text(shown.err).trim()].filter(Boolean).join("\n"));
}
let pasting;
for (const id of ["dump", "rptr", "wptr", "ring-options"]) $(id).oninput = (e) => {
  if (e.target !== $(id)) return;
  record(id);
  clearTimeout(pasting);
  pasting = setTimeout(readRing, 150);
};
