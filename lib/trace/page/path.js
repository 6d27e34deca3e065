// The path to a packet, back to the trigger. The cause of a step is the last of everything that the step had to wait for.
//
// A packet waits for the packet of its lane that ended last before it began; for its doorbell, the first one after its position;
// and, if it is a poll, for the last write to its word before it was satisfied (also if it polls the upper half of the word).
// An arrow of the trace leads from a trigger to a completion and skips the steps between, so it can only begin a path.
const causes = bar => {
  const {trace, lane} = bar, found = [];
  const before = firstOf(lane.byEnd, b => b.to > bar.from) - 1;
  for (let i = before; i >= 0; --i)
    if (lane.byEnd[i] !== bar) { found.push({ns: lane.byEnd[i].to, bar: lane.byEnd[i], how: 'the packet before'}); break; }
  const bell = lane.marks.find(m => m.kind === 'doorbell' && m.position > bar.position && m.ns <= bar.to);
  if (bell) found.push({ns: bell.ns, mark: bell, how: 'doorbell'});
  if (bar.waits !== null && bar.finished)
    for (let i = firstOf(trace.signals, s => s.ns > bar.to) - 1; i >= 0; --i) {
      const s = trace.signals[i];
      if (s.address !== bar.waits && s.address !== bar.waits - 4n) continue;
      const writer = barAt(s.lane, s.ns);
      found.push({ns: s.ns, bar: writer === bar ? null : writer, mark: s, how: `its word became ${s.value}`});
      break;
    }
  return found.filter(c => c.ns <= bar.to);
};

/// The path backwards: [{bar | mark, ns, how}], from the packet to the trigger.
const pathTo = bar => {
  const steps = [{bar, ns: bar.to, how: bar.finished ? 'ended' : 'has no end in the trace'}], seen = new Set([bar]);
  for (let at = bar; at;) {
    const cause = causes(at).reduce((a, b) => (!a || b.ns > a.ns ? b : a), null);
    if (!cause || (cause.bar && seen.has(cause.bar))) break;  // a poll of a word that its own lane writes is a cycle
    steps.push(cause);
    if (cause.bar) seen.add(cause.bar);
    at = cause.bar || null;
  }
  const first = steps[steps.length - 1].ns;
  const triggers = steps.filter(s => s.bar).flatMap(({bar: b}) => (b.lane.arrows || [])
    .filter(a => a.end.ns >= b.from && a.end.ns <= b.to && a.begin.ns <= first).map(a => a.begin));
  const trigger = triggers.reduce((a, b) => (!a || b.ns > a.ns ? b : a), null);
  if (trigger) steps.push({bar: null, mark: trigger, ns: trigger.ns, how: 'trigger'});
  return steps;
};

/// The packet that completed last: the one with the last write to a signal, or, without such writes, the one that ended last.
const lastCompletion = trace => {
  for (let i = trace.signals.length - 1; i >= 0; --i) {
    const bar = barAt(trace.signals[i].lane, trace.signals[i].ns);
    if (bar) return bar;
  }
  return trace.lanes.flatMap(l => l.byEnd.slice(-1)).reduce((a, b) => (!a || b.to > a.to ? b : a), null);
};
