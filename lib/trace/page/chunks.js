// SPDX-License-Identifier: MIT
'use strict';
// Decodes the chunks of the data into arrays while the page is loading. lib/trace/page_data.hpp describes the chunks. The
// first part of a chunk of packets becomes arrays; the second, which only details and searches need, stays as bytes.
const SEGMENT = 512, ROWS = 64;
const loaded = {traces: [], total: 0, records: 0, failed: false};

/// Says in words why there is nothing to see; a page is never just blank.
const cannotShow = why => {
  if (loaded.failed) return;
  loaded.failed = true;
  const box = document.getElementById('packet');
  box.className = 'warning';
  box.textContent = `This page cannot show its trace of ${loaded.total.toLocaleString('en')} records: ${why}. Close other pages `
    + 'to free memory and reload this one, or record a shorter trace; sdma trace --format=text FILE shows it as text.';
};
addEventListener('error', e => cannotShow(e.message));

class Varints {
  constructor(bytes, at = 0) { this.bytes = bytes; this.at = at; }
  number() {
    let b = this.bytes[this.at++];
    if (b < 128) return b;
    let v = b & 127;
    for (let scale = 128; ; scale *= 128) {
      b = this.bytes[this.at++];
      v += (b & 127) * scale;
      if (b < 128) return v;
    }
  }
  signed() { const v = this.number(); return v % 2 === 0 ? v / 2 : -(v + 1) / 2; }
  signed32() { const v = this.number(); return (v >>> 1) ^ -(v & 1); }
}
const fromBase64 = text => {
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
};

/// Times count from each trace's first packet, `before` after its first event: a slow set-up shifts nothing.
const begin = () => {
  loaded.traces = JSON.parse(document.getElementById('data').textContent).traces;
  for (const trace of loaded.traces) {
    trace.before = trace.start;
    trace.last -= trace.before;
    trace.end = Math.max(1, trace.end - trace.before);
    loaded.total += trace.words + trace.signals + trace.flows;
    for (const l of trace.lanes)
      loaded.total += l.packets + l.marks + l.counters.reduce((n, c) => n + c.count, 0);
  }
  for (const trace of loaded.traces) {
    const numbers = n => ({filled: 0, from: new Float64Array(n), to: new Float64Array(n)});
    const halves = n => ({filled: 0, ns: new Float64Array(n), low: new Uint32Array(n), high: new Uint32Array(n)});
    trace.words = halves(trace.words);
    trace.signals = {...halves(trace.signals), lane: new Uint32Array(trace.signals), word: new Uint32Array(trace.signals)};
    trace.flows = {...numbers(trace.flows), fromLane: new Uint32Array(trace.flows), toLane: new Uint32Array(trace.flows)};
    for (const l of trace.lanes) {
      l.count = l.packets;
      l.packets = {...numbers(l.count), row: new Uint8Array(l.count), shape: new Uint32Array(l.count), rest: []};
      l.marks = {filled: 0, ns: new Float64Array(l.marks), kind: new Uint8Array(l.marks)};
      l.bells = {filled: 0, ns: new Float64Array(l.bells), position: new Float64Array(l.bells)};
      l.counters = l.counters.map(c => ({name: c.name, filled: 0, ns: new Float64Array(c.count), value: new Float64Array(c.count)}));
    }
  }
};
const DOORBELL = 0;
const tables = {
  packets(into, count, bytes, before) {
    const {from, to, row, shape} = into, length = bytes.number(), end = bytes.at + length;
    let ns = before;
    for (let i = into.filled, last = i + count; i < last; ++i) {
      from[i] = ns += bytes.number();
      to[i] = ns + bytes.number();
      row[i] = bytes.number();
      shape[i] = bytes.number();
    }
    if (bytes.at !== end) throw new Error('a chunk of its packets is damaged');
    into.filled += count;
    const offsets = new Uint32Array(Math.ceil(count / SEGMENT));
    for (let i = 0, at = 0; i < offsets.length; ++i) offsets[i] = at, at += bytes.number();
    into.rest.push({offsets, bytes: bytes.bytes.slice(bytes.at)});
  },
  marks(lane, count, bytes, before) {
    const {marks, bells} = lane;
    for (let i = 0, ns = before, position = 0; i < count; ++i) {
      const at = marks.filled++;
      marks.ns[at] = ns += bytes.number();
      marks.kind[at] = bytes.number();
      if (marks.kind[at] !== DOORBELL) continue;
      bells.ns[bells.filled] = ns;
      bells.position[bells.filled++] = position += bytes.signed();
    }
  },
  words(into, count, bytes) {
    for (let i = 0, low = 0, high = 0; i < count; ++i) {
      into.low[into.filled] = low = (low + bytes.signed32()) >>> 0;
      into.high[into.filled++] = high = (high + bytes.signed32()) >>> 0;
    }
  },
  signals(into, count, bytes, before) {
    for (let i = 0, ns = before, low = 0, high = 0; i < count; ++i) {
      const at = into.filled++;
      into.ns[at] = ns += bytes.number();
      into.lane[at] = bytes.number();
      into.word[at] = bytes.number();
      into.low[at] = low = (low + bytes.signed32()) >>> 0;
      into.high[at] = high = (high + bytes.signed32()) >>> 0;
    }
  },
  counters(into, count, bytes, before) {
    for (let i = 0, ns = before, value = 0; i < count; ++i) {
      into.ns[into.filled] = ns += bytes.number();
      into.value[into.filled++] = value += bytes.signed();
    }
  },
  flows(into, count, bytes, before) {
    for (let i = 0, ns = before; i < count; ++i) {
      const at = into.filled++;
      into.from[at] = ns += bytes.number();
      into.fromLane[at] = bytes.number();
      into.to[at] = ns + bytes.signed();
      into.toLane[at] = bytes.number();
    }
  },
};
/// Takes the chunk before the script that calls it out of the page.
const take = () => {
  const script = document.currentScript, element = script.previousElementSibling;
  try {
    if (loaded.failed) return;
    const bytes = new Varints(fromBase64(element.textContent));
    const [table, t, l, c, count] = Array.from({length: 5}, () => bytes.number());
    const trace = loaded.traces[t], lane = trace.lanes[l], before = -trace.before;
    const name = ['packets', 'marks', 'words', 'signals', 'counters', 'flows'][table];
    const into = {packets: lane?.packets, marks: lane, counters: lane?.counters[c]}[name] ?? trace[name];
    tables[name](into, count, bytes, before);
    loaded.records += count;
    document.getElementById('packet').textContent =
      `Reading the trace: ${Math.floor(100 * loaded.records / loaded.total)} % of ${loaded.total.toLocaleString('en')} records.`;
  } catch (e) {
    cannotShow(e.message);
  } finally {
    element.remove();
    script.remove();
  }
};
try {
  begin();
} catch (e) {
  cannotShow(e.message);
}
