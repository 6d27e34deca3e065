// SPDX-License-Identifier: MIT
// The command line, the menu of examples, and the beginning.
"use strict";

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
  const files = { "schedule.sdma": bytesOf($("source").value), "ring.txt": bytesOf($("dump").value), ...companions };
  for (const [name, { text }] of Object.entries(examples)) files[name] = bytesOf(text);
  const answer = await commands.run("command", all, { files, input: bytesOf($("stdin").value) });
  if (answer.stopped) return status("command-status", answer.stopped);
  const made = Object.entries(answer.files).map(([name, bytes]) => `--- ${name}\n${text(bytes)}`);
  $("output").textContent = text(answer.out) + text(answer.err) + made.join("");
  status("command-status", `exit code ${answer.code}, ${Math.round(answer.ms)} ms`);
};
for (const id of ["command", "stdin"]) $(id).oninput = () => record(id);
for (const button of document.querySelectorAll("button.stop")) button.onclick = () => { for (const runner of [live, predicting, commands]) runner.stop(); };

/// For tests: one run, with what `sdma` would get.
window.runProgram = (argv, input, files, limit) => commands.run("test", argv, { input, files, limit });

/// Renews all answers.
function renew() {
  readRing();
  return judge();
}

// --- Examples ------------------------------------------------------------------------------------------------------------

for (const name of Object.keys(examples)) {
  const group = name.includes("/exhibits/") ? "museum" : "shipped";
  $(group).append(element("option", { value: name, textContent: name.split("/").pop() }));
}
/// The state with an example, by its name or the end of it. Exhibits have the options of their own. Packets become a ring's dwords.
async function exampleState(wanted) {
  const name = Object.keys(examples).find((n) => n === wanted || n.endsWith("/" + wanted));
  if (!name) throw Error(`there is no example ${wanted}`);
  const { text, options } = examples[name], line = options.map((o) => (/\s/.test(o) ? `'${o}'` : o)).join(" ");
  if (!name.endsWith(".packets")) return { ...held(), pane: "schedule", source: text, options: line, machine: [] };
  const dump = await assembled(text, line);
  return dump === null ? null : { ...held(), pane: "ring", dump, rptr: "", wptr: "", "ring-options": line };
}
$("example").onchange = async () => {
  const name = $("example").value;
  $("example").value = "";
  const state = name && (await exampleState(name));
  if (!state) return;
  put(state);
  record("example " + name);
  renew();
};

// --- The beginning -------------------------------------------------------------------------------------------------------

async function begin() {
  status("notice", "");
  const first = present === null;
  let state = null;
  try {
    state = await addressedState();
  } catch (e) {
    status("notice", e.message);
  }
  if (!state && !first) return;
  put(state ?? { source: withParam(examples[kFirst].text, "N", "8") });
  record("link");
  await renew();
}
const kFirst = "examples/schedules/2_allgather_b2b.sdma";

loaded.then(machine, (e) => status("verdict", "the program cannot be loaded: " + e.message));
begin().then(() => { document.body.dataset.ready = String(Math.round(performance.now())); });
addEventListener("hashchange", begin);
