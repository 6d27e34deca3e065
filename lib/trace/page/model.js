// SPDX-License-Identifier: MIT
// The data as the page uses it: traces have lanes, which have packets and marks. Times are ns from the beginning of the trace. A
// packet is an index of its lane's arrays; it becomes an object, a Bar, only where one is selected or pointed at. An action of a host
// thread is a packet without dwords, whose shape says that it is an action.
const KIND = {copy: /^(copy|write|fill|pte|indirect)/, wait: /^(poll|semaphore|cond|waits )/, sync: /^(fence|atomic|trap|timestamp|sets |adds |sync:)/};
const CHUNK = 65536, MOST_WORDS = 30;  // packets of a chunk, words of a packet
// The group of the lane in which a simulation records its critical path; it is shown first.
const SIMULATED = 'critical path';
const COLOURS = ['copy', 'wait', 'sync', 'other'];
// A kind of Levels: row * 8 + UNFINISHED + the number of the colour.
const UNFINISHED = 4, PER_ROW = 8;
const MARKS = ['doorbell', 'packet_begin', 'packet_end', 'signal', 'fault', 'queue_created', 'queue_destroyed'];
/// "1,234,567"
const many = n => n.toLocaleString('en');
const hexOf = (high, low) => high === 0 ? low.toString(16) : high.toString(16) + low.toString(16).padStart(8, '0');

/// The texts of packets, by shape (lib/trace/shapes.hpp).
class Shape {
  constructor({name, length, dwords, text, waits, action = false}) {
    const kind = Object.keys(KIND).findIndex(k => KIND[k].test(name));
    Object.assign(this, {name, length, dwords, action, colour: kind < 0 ? COLOURS.length - 1 : kind});
    // Text, form, word, text, form, word, ..., text
    this.text = text.split(/\u0001(.)(.)/);
    this.waits = waits === '' ? null : waits.split(/\u0001(.)(.)/);
    this.words = Math.max(dwords, ...[this.text, this.waits ?? []].map(parts => parts.reduce(
      (n, p, i) => i % 3 === 2 ? Math.max(n, Shape.index(p) + (/[DX]/.test(parts[i - 1]) ? 2 : 1)) : n, 0)));
  }
  static index(character) { return character.charCodeAt(0) - 48; }
  /// The text of a packet, whose words begin at `at`.
  static fill(parts, words, at) {
    let text = parts[0];
    for (let i = 1; i < parts.length; i += 3) {
      const k = at + Shape.index(parts[i + 1]), low = words[k], high = words[k + 1];
      switch (parts[i]) {
        case 'd': text += low; break;
        case 'D': text += high === 0 ? low : (BigInt(high) << 32n) + BigInt(low); break;
        case 'x': text += '0x' + low.toString(16); break;
        case 'X': text += '0x' + hexOf(high, low); break;
        default: text += '0x' + low.toString(16).padStart(8, '0');
      }
      text += parts[i + 2];
    }
    return text;
  }
}

/// The second part of a segment's packets: {positions, words, starts}. The last one is kept, as its neighbours are asked for next.
const kept = {lane: null, number: -1, positions: new Float64Array(SEGMENT), starts: new Uint32Array(SEGMENT), words: new Uint32Array(SEGMENT * MOST_WORDS)};
const segmentOf = (lane, number) => {
  if (kept.lane === lane && kept.number === number) return kept;
  const {rest, shape} = lane.packets, chunk = rest[Math.floor(number * SEGMENT / CHUNK)];
  const bytes = new Varints(chunk.bytes, chunk.offsets[number % (CHUNK / SEGMENT)]);
  const first = number * SEGMENT, n = Math.min(SEGMENT, lane.count - first), {positions, starts, words} = kept, before = new Map();
  for (let i = 0, end = 0, start = 0; i < n; ++i) {
    const number = shape[first + i], s = model.shapes[number], old = before.get(number);
    positions[i] = end + bytes.signed();
    end = positions[i] + 4 * s.length;
    const differ = bytes.number();
    for (let k = 0; k < s.words; ++k) words[start + k] = (old === undefined ? 0 : words[old + k]) + (differ >>> k & 1 ? bytes.signed32() : 0);
    starts[i] = start;
    before.set(number, start);
    start += s.words;
  }
  kept.lane = lane;
  kept.number = number;
  return kept;
};
const textOf = (lane, i) => {
  const {words, starts} = segmentOf(lane, Math.floor(i / SEGMENT));
  return Shape.fill(model.shapes[lane.packets.shape[i]].text, words, starts[i % SEGMENT]);
};

class Bar {
  constructor(lane, index) {
    const {from, to, row, shape} = lane.packets;
    Object.assign(this, {lane, index, trace: lane.trace, from: from[index], to: to[index], row: row[index] >> 1, finished: (row[index] & 1) === 1,
                         shape: model.shapes[shape[index]], key: `${lane.key}.${index}`});
  }
  get segment() { return segmentOf(this.lane, Math.floor(this.index / SEGMENT)); }
  get name() { return this.shape.action ? this.text : this.shape.name; }
  get dwords() { return this.shape.length; }
  get text() { return textOf(this.lane, this.index); }
  get position() { return this.segment.positions[this.index % SEGMENT]; }
  get hex() {
    const {words, starts} = this.segment, start = starts[this.index % SEGMENT];
    return Array.from(words.subarray(start, start + this.shape.dwords), d => d.toString(16).padStart(8, '0')).join(' ');
  }
  /// The address that a poll reads, or null.
  get waits() {
    const {words, starts} = this.segment;
    return this.shape.waits && BigInt(Shape.fill(this.shape.waits, words, starts[this.index % SEGMENT]));
  }
}

const model = (() => {
  const traces = loaded.traces, shapes = JSON.parse(document.getElementById('shapes').textContent).map(s => new Shape(s));
  const kinds = ROWS * PER_ROW;
  traces.forEach((trace, t) => {
    trace.lanes.forEach((lane, l) => {
      Object.assign(lane, {trace, key: `${t}.${l}`, what: lane.actions ? lane.actions < lane.count ? 'packets and actions' : 'actions' : 'packets', allRows: lane.rows, rows: Math.min(ROWS, lane.rows)});
      const {from, to, row, shape} = lane.packets, {ns, kind} = lane.marks;
      if (lane.packets.filled !== lane.count) throw new Error(`${many(lane.count - lane.packets.filled)} of its packets are missing`);
      lane.levels = new Levels(from, to, i => (row[i] >> 1) * PER_ROW + (row[i] & 1 ? 0 : UNFINISHED) + shapes[shape[i]].colour, kinds);
      lane.markLevels = new Levels(ns, ns, i => kind[i], MARKS.length);
      for (const counter of lane.counters) counter.extremes = new Extremes(counter.value);
      // The largest position of the doorbells so far, which a search can use.
      lane.bells.most = lane.bells.position.slice();
      for (let i = 1; i < lane.bells.most.length; ++i) lane.bells.most[i] = Math.max(lane.bells.most[i], lane.bells.most[i - 1]);
    });
    trace.flows.levels = new Levels(trace.flows.from, trace.flows.to.map((ns, i) => Math.max(ns, trace.flows.from[i])));
  });
  // Lanes of the same group and name are drawn together, in the order in which they first appear. A queue may have a name in
  // one trace and a number in the other: then the n-th queue of an engine in one trace belongs to the n-th in the other.
  const places = new Map();
  const laneKey = lane => JSON.stringify([lane.group, lane.name]), named = traces.map(t => new Set(t.lanes.map(laneKey)));
  const placeOf = (lane, queues) => {
    const engine = traces.length > 1 && /^engine \d+(?= )/.exec(lane.name);
    if (!engine || named.every(names => names.has(laneKey(lane))))
      return laneKey(lane);
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
  const groups = new Map([...places.values()].some(p => p.group === SIMULATED) ? [[SIMULATED, []]] : []);
  for (const place of places.values()) {
    if (!groups.has(place.group)) groups.set(place.group, []);
    groups.get(place.group).push(place);
  }
  const least = (a, b) => Math.min(a, b), most = (a, b) => Math.max(a, b);
  return {traces, shapes, places: [...groups.values()].flat(), first: traces.map(t => -t.before).reduce(least),
          last: traces.map(t => t.last).reduce(most, 1)};
})();

/// The packet that runs in this lane at this time; if several do, the one that began last.
const barAt = (lane, ns) => {
  const i = lane.levels.running(ns);
  return i < 0 ? null : new Bar(lane, i);
};
const barOf = key => {
  const [t, l, i] = key.split('.').map(Number), lane = model.traces[t]?.lanes[l];
  return lane && i >= 0 && i < lane.count ? new Bar(lane, i) : null;
};
/// "1.234 us": a time in ns, with a suitable unit, and with as many more decimals as show steps of `step` ns.
const time = (ns, step = Infinity) => {
  if (ns < 0) return '-' + time(-ns, step);
  if (ns < 1000) return `${ns} ns`;
  const [unit, scale] = ns < 1e6 ? ['us', 3] : ns < 1e9 ? ['ms', 6] : ['s', 9];
  return `${(ns / 10 ** scale).toFixed(Math.max(3, scale - Math.max(0, Math.floor(Math.log10(step)))))} ${unit}`;
};
/// A time to the nanosecond.
const exactly = ns => time(ns, 1);
