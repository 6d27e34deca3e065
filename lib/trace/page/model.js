'use strict';
// The data as the page uses it: traces have lanes, which have bars and marks. Times are ns from the beginning of the trace.
// With two traces they count from each one's first packet, so that a slow creation of queues does not shift a run against its model.
const KIND = {copy: /^(copy|write|fill|pte|indirect)/, wait: /^(poll|semaphore|cond)/, sync: /^(fence|atomic|trap|timestamp)/};

const model = (() => {
  const traces = JSON.parse(document.getElementById('data').textContent).traces;
  traces.forEach((trace, t) => {
    trace.lanes.forEach((lane, l) => {
      lane.bars = lane.bars.map(([from, to, row, finished, name, text, position, dwords, waits, hex], i) => ({
        key: `${t}.${l}.${i}`, trace, lane, index: i, from, to, row, finished: !!finished, name, text, position, dwords,
        waits: waits === null ? null : BigInt(waits), hex: hex.trim(),
        colour: Object.keys(KIND).find(k => KIND[k].test(name)) || 'other',
      }));
      lane.byEnd = [...lane.bars].sort((a, b) => a.to - b.to);
      lane.marks = [];
      lane.counters = new Map();
      lane.width = Math.max(0, ...lane.bars.map(b => b.to - b.from));
    });
    trace.flows = new Map();
    trace.signals = [];
    for (const [ns, l, kind, text, position, address, value, number] of trace.marks) {
      const mark = {trace, lane: trace.lanes[l], ns, kind, text, position, address: BigInt(address), value, number};
      mark.lane.marks.push(mark);
      if (kind === 'counter') mark.lane.counters.set(text, [...(mark.lane.counters.get(text) || []), mark]);
      if (kind === 'signal') trace.signals.push(mark);
      if (kind === 'flow_begin' || kind === 'flow_end') {
        const flow = trace.flows.get(value) || {};
        flow[kind === 'flow_begin' ? 'begin' : 'end'] = mark;
        trace.flows.set(value, flow);
      }
    }
    for (const {begin, end} of trace.flows.values()) if (begin && end) (end.lane.arrows ||= []).push({begin, end});
    const starts = trace.lanes.flatMap(l => l.bars.map(b => b.from));
    trace.before = traces.length > 1 && starts.length > 0 ? starts.reduce((a, b) => Math.min(a, b)) : 0;
    trace.last -= trace.before;
    for (const lane of trace.lanes) {
      for (const b of lane.bars) b.from -= trace.before, b.to -= trace.before;
      for (const m of lane.marks) m.ns -= trace.before;
    }
  });
  // Lanes of the same group and name are drawn together, in the order in which they first appear. A queue may have a name in
  // one trace and a number in the other: then the n-th queue of an engine in one trace belongs to the n-th in the other.
  const places = new Map();
  const placeOf = (lane, queues) => {
    const engine = traces.length > 1 && /^engine \d+(?= )/.exec(lane.name);
    if (!engine || traces.every(t => t.lanes.some(l => l.group === lane.group && l.name === lane.name)))
      return JSON.stringify([lane.group, lane.name]);
    const key = JSON.stringify([lane.group, engine[0]]), nth = queues.get(key) || 0;
    queues.set(key, nth + 1);
    return JSON.stringify([lane.group, engine[0], nth]);
  };
  for (const trace of traces) {
    const queues = new Map();
    for (const lane of trace.lanes) {
      const place = placeOf(lane, queues);
      if (!places.has(place)) places.set(place, {group: lane.group, name: lane.name, lanes: []});
      places.get(place).lanes.push({trace, lane});
    }
  }
  // Lanes have little room for the name of a trace: folders that all traces share are left out there.
  const name = traces[0].name;
  let shared = 0;
  for (let i = 0; i < name.length && traces.every(t => t.name[i] === name[i]); ++i) if (name[i] === '/') shared = i + 1;
  for (const trace of traces) trace.shortName = trace.name.slice(shared);
  const groups = new Map();
  for (const place of places.values()) {
    if (!groups.has(place.group)) groups.set(place.group, []);
    groups.get(place.group).push(place);
  }
  return {traces, places: [...groups.values()].flat(), first: Math.min(...traces.map(t => -t.before)),
          last: Math.max(1, ...traces.map(t => t.last))};
})();

/// The first index of `list` for which `late` holds; it must hold for all later ones.
const firstOf = (list, late) => {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (late(list[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
};
/// The packet that runs in this lane at this time; if several do, the one that began last.
const barAt = (lane, ns) => {
  for (let i = firstOf(lane.bars, b => b.from > ns) - 1; i >= 0 && lane.bars[i].from >= ns - lane.width; --i)
    if (lane.bars[i].to >= ns) return lane.bars[i];
  return null;
};
const barOf = key => {
  const [t, l, i] = key.split('.').map(Number);
  return model.traces[t]?.lanes[l]?.bars[i] ?? null;
};
/// "1.234 us": a time in ns, with a suitable unit.
const time = ns => ns < 0 ? '-' + time(-ns) : ns < 1000 ? `${ns} ns` : ns < 1e6 ? `${(ns / 1e3).toFixed(3)} us` : ns < 1e9 ? `${(ns / 1e6).toFixed(3)} ms`
  : `${(ns / 1e9).toFixed(3)} s`;
