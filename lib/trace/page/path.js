// SPDX-License-Identifier: MIT
// The path to a packet, back to the trigger. The cause of a step is the last of everything that the step had to wait for.
//
// A packet waits for the packet of its lane that ended last before it began; for its doorbell, the first one after its position;
// and, if it is a poll, for the last write to its word before it was satisfied (also if it polls the upper half of the word).
// A host thread that waits, waits for the last write to its word in the same way; and it wrote a word in the last of its actions that set
// or added to one. An arrow of the trace leads from a trigger to a completion and skips the steps between, so it can only begin a path.
// A lane of a million packets has a path of a million steps, so a path ends after STEPS steps, and says so.
// A simulation knows its causes, and records its critical path as a lane: then `critical path` shows that lane.
const STEPS = 1000;

/// The steps of a simulation's critical path, backwards; none if the trace has no such lane.
const simulatedPath = trace => {
  const lane = trace.lanes.find(l => l.group === SIMULATED);
  return Array.from({length: lane?.count ?? 0}, (_, i) => new Bar(lane, lane.count - 1 - i))
    .map(bar => ({bar, ns: bar.to, how: `took ${time(bar.to - bar.from)}`}));
};

/// The indices of the signals of a word, ascending: all signals are sorted by word once.
const signalsOf = (trace, address) => {
  const {words, signals} = trace, high = Number(address >> 32n), low = Number(address & 0xffffffffn);
  let word = 0;
  for (let end = words.low.length; word < end;) {
    const middle = (word + end) >>> 1;
    if (words.high[middle] > high || (words.high[middle] === high && words.low[middle] >= low)) end = middle;
    else word = middle + 1;
  }
  if (word === words.low.length || words.high[word] !== high || words.low[word] !== low) return [];
  if (!signals.start) {
    signals.start = new Uint32Array(words.low.length + 1);
    signals.order = new Uint32Array(signals.ns.length);
    for (const w of signals.word) ++signals.start[w + 1];
    for (let w = 0; w < words.low.length; ++w) signals.start[w + 1] += signals.start[w];
    const next = signals.start.slice();
    for (let i = 0; i < signals.ns.length; ++i) signals.order[next[signals.word[i]]++] = i;
  }
  return signals.order.subarray(signals.start[word], signals.start[word + 1]);
};
/// The packet or the action that wrote to a word at this time. A store of a host thread lands when the thread may do something else.
const writerOf = (lane, ns) => {
  if (!lane.actions) return barAt(lane, ns);
  for (let last = lane.levels.ended(ns), i = last; i >= 0 && i > last - STEPS; --i)
    if (/^(sets|adds) /.test(model.shapes[lane.packets.shape[i]].name)) return new Bar(lane, i);
  return null;
};
const causes = bar => {
  const {trace, lane} = bar, found = [], {signals} = trace;
  const before = lane.levels.ended(bar.from, bar.index);
  if (before >= 0) found.push({ns: lane.packets.to[before], bar: new Bar(lane, before), how: 'the packet before'});
  const bell = bar.shape.action ? Infinity : firstOf(lane.bells.most, position => position > bar.position);
  if (bell < lane.bells.ns.length) found.push({ns: lane.bells.ns[bell], mark: {lane}, how: 'doorbell'});
  if (bar.waits !== null && bar.finished) {
    const last = [bar.waits, bar.waits - 4n].map(address => {
      const all = signalsOf(trace, address);
      return all[firstOf(all, i => signals.ns[i] > bar.to) - 1] ?? -1;
    }).reduce((a, b) => Math.max(a, b));
    if (last >= 0) {
      const at = trace.lanes[signals.lane[last]], writer = writerOf(at, signals.ns[last]);
      found.push({ns: signals.ns[last], bar: writer?.key === bar.key ? null : writer, mark: {lane: at},
                  how: `its word became 0x${hexOf(signals.high[last], signals.low[last])}`});
    }
  }
  return found.filter(c => c.ns <= bar.to);
};

/// The path backwards: [{bar | mark, ns, how}], from the packet to the trigger. Its member `cut` is true if it has earlier steps.
const pathTo = bar => {
  const steps = [{bar, ns: bar.to, how: bar.finished ? 'ended' : 'has no end in the trace'}], seen = new Set([bar.key]);
  for (let at = bar; at;) {
    const cause = causes(at).reduce((a, b) => (!a || b.ns > a.ns ? b : a), null);
    if (!cause || (cause.bar && seen.has(cause.bar.key))) break;  // a poll of a word that its own lane writes is a cycle
    if (steps.length === STEPS) return Object.assign(steps, {cut: true});
    steps.push(cause);
    if (cause.bar) seen.add(cause.bar.key);
    at = cause.bar || null;
  }
  const first = steps[steps.length - 1].ns, {flows} = bar.trace;
  let trigger = -1;
  for (const {bar: b} of steps)
    if (b) flows.levels.visit(b.from, b.to, () => false, i => {
      if (b.trace.lanes[flows.toLane[i]] === b.lane && flows.to[i] >= b.from && flows.to[i] <= b.to && flows.from[i] <= first
          && (trigger < 0 || flows.from[i] > flows.from[trigger])) trigger = i;
    });
  if (trigger >= 0)
    steps.push({bar: null, mark: {lane: bar.trace.lanes[flows.fromLane[trigger]]}, ns: flows.from[trigger], how: 'trigger'});
  return steps;
};

/// The packet that completed last, not an action: the one with the last write to a signal, or, without such writes, the one that ended last.
const lastCompletion = trace => {
  for (let i = trace.signals.ns.length - 1; i >= 0; --i) {
    const bar = barAt(trace.lanes[trace.signals.lane[i]], trace.signals.ns[i]);
    if (bar && !bar.shape.action) return bar;
  }
  return trace.lanes.filter(l => !l.actions).map(l => [l, l.levels.ended(Infinity)]).filter(([, i]) => i >= 0).map(([l, i]) => new Bar(l, i))
    .reduce((a, b) => (!a || b.to > a.to ? b : a), null);
};
