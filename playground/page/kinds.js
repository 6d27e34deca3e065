// SPDX-License-Identifier: MIT
// What a pasted text is, and which pane is for it.
"use strict";

/// schedule, packets, dump, log, trace; null: it cannot be seen.
function kindOf(text) {
  const head = text.slice(0, 1 << 16), first = head.split("\n").map((l) => l.replace(/#.*/, "").trim()).find(Boolean) ?? "";
  const [word, next = ""] = first.split(/\s+/);
  if (/^sdma \d/.test(first) || kWords.statements.includes(word)) return "schedule";
  if (/^\{"|^\[?\{$/.test(first)) return "trace";
  if (/(?:^|[\s:])(?:0x)?[0-9a-f]{8}[ \t]+(?:0x)?[0-9a-f]{8}\b/im.test(head)) return "dump";
  if (/^[a-z]\w*$/.test(word) && /^[a-z]\w*=/.test(next)) return "packets";
  return /^\[ *\d+\.\d+\]|\b(?:amdgpu|kfd|sdma\d)\b/m.test(head) ? "log" : null;
}
const kKinds = { schedule: "a schedule", packets: "packets as text", dump: "a ring's dwords", log: "a log", trace: "JSON, such as a trace" };

/// Says what the text of a pane is, if the pane is not for it, and offers the pane that is. True if it does.
function offer(id, source, pane) {
  const kind = kindOf(source), right = pane === "schedule" ? kind === "schedule" : kind === "dump";
  const wrong = kind !== null && !right && !(kind === "log" && pane === "ring");
  $(id).replaceChildren();
  if (!wrong) return false;
  const button = (label, onclick) => element("button", { type: "button", className: "offer", textContent: label, onclick });
  const move = (state) => {
    put({ ...held(), ...state });
    record("pane");
    renew();
  };
  const away = pane === "schedule" ? { source: "" } : { dump: "" };
  $(id).append(`This is ${kKinds[kind]}. `);
  if (kind === "schedule") $(id).append(button("open it in Schedule", () => move({ ...away, source, pane: "schedule" })));
  else if (kind === "packets") $(id).append(button("make a ring of it", async () => {
    const dump = await assembled(source, $("ring-options").value);
    if (dump !== null) move({ ...away, dump, pane: "ring" });
  }));
  else if (kind === "trace") $(id).append("The installed program draws traces: sdma trace FILE -o run.html.");
  else $(id).append(button("open it in Ring", () => move({ ...away, dump: source, pane: "ring" })));
  return true;
}

/// The dwords of packets, in hex; null, with a notice, if they cannot be assembled.
async function assembled(packets, options) {
  const answer = await commands.run("assemble", ["as", "--format=hex", ...generation(words(options)), "ring.packets"], { files: { "ring.packets": bytesOf(packets) } });
  status("notice", answer.code === 0 ? "" : (answer.stopped ?? text(answer.err)));
  return answer.code === 0 ? text(answer.out) : null;
}
