// SPDX-License-Identifier: MIT
// The controls: zoom, move, select, find; and the address, which records what is shown.
const byId = id => document.getElementById(id);
const {state, canvas} = view;

const element = (name, text, parent, kind) => {
  const e = document.createElement(name);
  e.textContent = text;
  if (kind) e.className = kind;
  parent?.append(e);
  return e;
};
const facts = (parent, list) => {
  const table = element('table', '', parent);
  for (const [what, is] of list) {
    const row = element('tr', '', table);
    element('td', what, row, 'dim');
    element('td', is, row);
  }
};
const laneName = lane => `${lane.group} ${lane.name}`;

const showPacket = bar => {
  const box = byId('packet');
  box.className = '';
  box.replaceChildren();
  element('h2', bar.name, box);
  if (!bar.shape.action) element('pre', bar.text || 'its dwords were not recorded', box);
  facts(box, [
    ...(model.traces.length > 1 ? [['trace', bar.trace.name]] : []),
    ['lane', laneName(bar.lane)],
    ['began', exactly(bar.from)],
    ['ended', bar.finished ? exactly(bar.to) : 'not in the trace'],
    ['took', exactly(bar.to - bar.from)],
    ...(bar.shape.action ? [] : [['position', `0x${bar.position.toString(16)}`], ['dwords', `${bar.dwords}: ${bar.hex}`]]),
  ]);
  const other = twin(bar);
  if (other) element('p', `${other.trace.name}: took ${time(other.to - other.from)}, began ${time(other.from)}, `
    + `${other.finished ? `ended ${time(other.to)}` : 'did not end'}; the difference of the ends is ${signed(other.to - bar.to)}`, box);
};
const signed = ns => (ns < 0 ? '-' : '+') + time(Math.abs(ns));
/// The same packet in the other trace: the same index in the lane of the same name.
const twin = bar => {
  const lane = bar.lane.place.lanes.find(l => l.lane !== bar.lane)?.lane;
  if (!lane || bar.index >= lane.count) return null;
  const b = new Bar(lane, bar.index);
  return b.shape.name === bar.shape.name ? b : null;
};
/// What a block stands for, in words.
const summary = ({lane, from, to, count, busy}) =>
  `${many(count)} ${lane.what} from ${exactly(from)} to ${exactly(to)}, busy ${Math.round(100 * Math.min(1, busy / Math.max(1, to - from)))} % of this time`;
const showBlock = block => {
  const box = byId('packet');
  box.className = '';
  box.replaceChildren();
  byId('path').replaceChildren();
  element('h2', `${block.lane.what[0].toUpperCase()}${block.lane.what.slice(1)} that are narrower than a pixel`, box);
  element('p', `${laneName(block.lane)}: ${summary(block)}`, box);
  const closer = element('button', 'zoom to them', box), margin = Math.max(5, (block.to - block.from) / 10), scale = view.scale(block.lane.trace);
  closer.addEventListener('click', () => show((block.from - margin) * scale, (block.to + margin) * scale));
};
const showPath = (path, title = 'Path to its end, from the trigger') => {
  const box = byId('path');
  box.replaceChildren();
  element('h2', title, box);
  if (path.cut) element('p', `This path is longer: these are its last ${many(path.length)} steps. Click the first one to see the steps before it.`, box, 'warning');
  const table = element('table', '', box), steps = [...path].reverse();
  steps.forEach((step, i) => {
    const row = element('tr', '', table);
    element('td', exactly(step.ns), row, 'number');
    element('td', i === 0 ? '' : signed(step.ns - steps[i - 1].ns), row, 'number');
    const {lane} = step.bar ?? step.mark;
    element('td', lane.group === SIMULATED ? '' : laneName(lane), row);
    element('td', step.bar ? `${step.bar.text || step.bar.name} \u2014 ${step.how}` : step.how, row);
    if (step.bar) {
      row.dataset.key = step.bar.key;
      row.addEventListener('click', () => select(step.bar));
    }
  });
};

/// The next frame draws: several events before it cost one picture.
let asked = 0;
const redraw = () => {
  asked ||= requestAnimationFrame(() => {
    asked = 0;
    view.draw();
  });
};
/// At most ten times a second: browsers refuse an address that changes more often.
let remembering = 0, changed = false;
const remember = () => {
  changed = true;
  if (remembering) return;
  rememberNow();
  remembering = setTimeout(() => {
    remembering = 0;
    if (changed) remember();
  }, 100);
};
const rememberNow = () => {
  changed = false;
  const parts = [`from=${Math.round(state.from)}`, `to=${Math.round(state.to)}`];
  if (state.oneScale) parts.push('scale=one');
  if (state.selected) parts.push(`packet=${state.selected.key}`);
  if (location.protocol !== 'about:') history.replaceState(null, '', '#' + parts.join('&'));
};
const show = (from, to) => {
  const all = view.allEnds(), whole = all.to - all.from, span = Math.min(Math.max(to - from, 10), whole * 1.04);
  state.from = Math.min(Math.max(from, all.from - whole * 0.02), all.to + whole * 0.02 - span);
  state.to = state.from + span;
  remember();
  redraw();
};
const showAll = () => {
  const {from, to} = view.allEnds();
  show(from, to);
};
/// The first view: from the first packet to the last end.
const showPackets = () => {
  const {from, to} = view.packetsEnd();
  show(from, to);
};
/// The scale of the first trace for both, or one for each.
const switchScale = () => {
  if (model.traces.length < 2) return;
  state.oneScale = !state.oneScale;
  byId('scale').checked = state.oneScale;
  showPackets();
};
const zoom = (factor, at = (state.from + state.to) / 2) => show(at - (at - state.from) * factor, at + (state.to - at) * factor);
const select = (bar, bring = true) => {
  state.selected = bar;
  state.path = pathTo(bar);
  showPacket(bar);
  showPath(state.path);
  view.reveal(bar);
  const span = state.to - state.from, scale = view.scale(bar.trace), from = bar.from * scale, to = bar.to * scale;
  if (bring && (to < state.from || from > state.to)) return show(from - span / 3, from + span * 2 / 3);
  remember();
  redraw();
};
const critical = () => {
  const trace = state.selected?.trace ?? model.traces[0], simulated = simulatedPath(trace);
  if (!simulated.length) {
    const bar = lastCompletion(trace);
    if (bar) select(bar);
    return;
  }
  const scale = view.scale(trace), [last] = simulated, first = simulated[simulated.length - 1];
  state.selected = last.bar;
  state.path = [];
  showPacket(last.bar);
  showPath(simulated, 'Critical path of the simulation: each step waited for the one before it');
  show(first.bar.from * scale, last.bar.to * scale);
};
const step = by => {
  if (!state.selected) return;
  const {lane, index} = state.selected;
  if (index + by >= 0 && index + by < lane.count) select(new Bar(lane, index + by));
};

const keys = {'+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1 / 0.7), '0': showAll, c: critical, f: showPackets, s: switchScale,
              n: () => step(1), p: () => step(-1),
              ArrowLeft: () => show(state.from - (state.to - state.from) / 8, state.to - (state.to - state.from) / 8),
              ArrowRight: () => show(state.from + (state.to - state.from) / 8, state.to + (state.to - state.from) / 8)};
document.addEventListener('keydown', e => {
  if (e.target.type === 'search' || e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
  keys[e.key]();
  e.preventDefault();
});
canvas.addEventListener('wheel', e => {
  if (e.shiftKey) return;  // scrolls the lanes
  zoom(Math.exp(Math.sign(e.deltaY) * 0.2), view.nsAt(e.offsetX));
  e.preventDefault();
}, {passive: false});
let drag = null;
canvas.addEventListener('pointerdown', e => {
  drag = {x: e.offsetX, from: state.from, to: state.to, moved: false};
  canvas.setPointerCapture(e.pointerId);
});
canvas.addEventListener('pointermove', e => {
  if (!drag) {
    const {bar, block} = view.hit(e.offsetX, e.offsetY) ?? {};
    canvas.title = bar ? `${bar.text || bar.name}\n${time(bar.to - bar.from)}` : block ? `${summary(block)}\nzoom in to see them` : '';
    return;
  }
  const by = (e.offsetX - drag.x) * (drag.to - drag.from) / (canvas.clientWidth - LABEL);
  if (Math.abs(e.offsetX - drag.x) > 3) drag.moved = true;
  if (drag.moved) show(drag.from - by, drag.to - by);
});
canvas.addEventListener('pointerup', e => {
  if (drag && !drag.moved) {
    const {bar, block} = view.hit(e.offsetX, e.offsetY) ?? {};
    if (bar) select(bar);
    else if (block) showBlock(block);
  }
  drag = null;
});
byId('in').addEventListener('click', () => zoom(0.5));
byId('out').addEventListener('click', () => zoom(2));
byId('all').addEventListener('click', showAll);
byId('packets').addEventListener('click', showPackets);
byId('scale').addEventListener('click', switchScale);
byId('scale').parentElement.hidden = model.traces.length < 2;
byId('critical').addEventListener('click', critical);
byId('find').addEventListener('input', e => find(e.target.value));
view.chart.addEventListener('scroll', redraw);
new ResizeObserver(redraw).observe(view.chart);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);

for (const t of model.traces) {
  // A link shows again the packets of its queues, as they pass.
  const packets = t.lanes.reduce((n, l) => n + (l.group === 'links' ? 0 : l.count - l.actions), 0);
  const before = t.before ? ` from its first packet, ${time(t.before)} before it` : '';
  element('span', `${t.name}: ${time(t.last)}${before}, ${many(packets)} packet${packets === 1 ? '' : 's'}, clock ${t.clock} `, byId('names'));
  if (t.lost) element('span', `${many(t.lost)} events were lost `, byId('names'), 'warning');
}
byId('packet').textContent = 'Click a packet. Wheel zooms, dragging moves, f shows the packets, 0 shows all, n and p go to the next and the previous packet.';
if (view.hidden) element('span', `${many(view.hidden)} lanes do not fit the page `, byId('names'), 'warning');
const wanted = new URLSearchParams(location.hash.slice(1)), number = name => wanted.has(name) ? Number(wanted.get(name)) : NaN;
state.oneScale = byId('scale').checked = wanted.get('scale') === 'one' && model.traces.length > 1;
if (number('to') > number('from')) show(number('from'), number('to'));
else showPackets();
if (wanted.has('packet') && barOf(wanted.get('packet'))) select(barOf(wanted.get('packet')), !wanted.has('from'));
