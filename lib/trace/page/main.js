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
  element('pre', bar.text || 'its dwords were not recorded', box);
  facts(box, [
    ...(model.traces.length > 1 ? [['trace', bar.trace.name]] : []),
    ['lane', laneName(bar.lane)],
    ['began', time(bar.from)],
    ['ended', bar.finished ? time(bar.to) : 'not in the trace'],
    ['took', time(bar.to - bar.from)],
    ['position', `0x${bar.position.toString(16)}`],
    ['dwords', `${bar.dwords}: ${bar.hex}`],
  ]);
  const other = twin(bar);
  if (other) element('p', `${other.trace.name}: took ${time(other.to - other.from)}, began ${time(other.from)}, `
    + `${other.finished ? `ended ${time(other.to)}` : 'did not end'}; the difference of the ends is ${signed(other.to - bar.to)}`, box);
};
const signed = ns => (ns < 0 ? '-' : '+') + time(Math.abs(ns));
/// The same packet in the other trace: the same index in the lane of the same name.
const twin = bar => {
  const place = model.places.find(p => p.lanes.some(l => l.lane === bar.lane));
  const lane = place.lanes.find(l => l.lane !== bar.lane)?.lane, b = lane?.bars[bar.index];
  return b && b.name === bar.name ? b : null;
};
const showPath = path => {
  const box = byId('path');
  box.replaceChildren();
  element('h2', 'Path to its end, from the trigger', box);
  const table = element('table', '', box), steps = [...path].reverse();
  steps.forEach((step, i) => {
    const row = element('tr', '', table);
    element('td', time(step.ns), row, 'number');
    element('td', i === 0 ? '' : signed(step.ns - steps[i - 1].ns), row, 'number');
    element('td', laneName((step.bar ?? step.mark).lane), row);
    element('td', step.bar ? `${step.bar.text || step.bar.name} \u2014 ${step.how}` : step.how, row);
    if (step.bar) {
      row.dataset.key = step.bar.key;
      row.addEventListener('click', () => select(step.bar));
    }
  });
};

const remember = () => {
  const parts = [`from=${Math.round(state.from)}`, `to=${Math.round(state.to)}`];
  if (state.selected) parts.push(`packet=${state.selected.key}`);
  history.replaceState(null, '', '#' + parts.join('&'));
};
const show = (from, to) => {
  const whole = model.last - model.first, span = Math.min(Math.max(to - from, 10), whole * 1.04);
  state.from = Math.min(Math.max(from, model.first - whole * 0.02), model.last + whole * 0.02 - span);
  state.to = state.from + span;
  remember();
  view.draw();
};
const zoom = (factor, at = (state.from + state.to) / 2) => show(at - (at - state.from) * factor, at + (state.to - at) * factor);
const select = (bar, bring = true) => {
  state.selected = bar;
  state.path = pathTo(bar);
  showPacket(bar);
  showPath(state.path);
  const span = state.to - state.from;
  if (bring && (bar.to < state.from || bar.from > state.to)) return show(bar.from - span / 3, bar.from + span * 2 / 3);
  remember();
  view.draw();
};
const critical = () => {
  const trace = state.selected?.trace ?? model.traces[0], bar = lastCompletion(trace);
  if (bar) select(bar);
};
const find = text => {
  const wanted = text.trim().toLowerCase();
  const all = wanted === '' ? [] : model.traces.flatMap(t => t.lanes.flatMap(l => l.bars))
    .filter(b => b.text.toLowerCase().includes(wanted) || b.name.includes(wanted));
  state.matches = wanted === '' ? null : new Set(all);
  byId('found').textContent = wanted === '' ? '' : all.length === 1 ? '1 packet' : `${all.length} packets`;
  if (all.length) select(all[0]);
  else view.draw();
};
const step = by => {
  if (!state.selected) return;
  const next = state.selected.lane.bars[state.selected.index + by];
  if (next) select(next);
};

const keys = {'+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1 / 0.7), '0': () => show(model.first, model.last), c: critical,
              n: () => step(1), p: () => step(-1),
              ArrowLeft: () => show(state.from - (state.to - state.from) / 8, state.to - (state.to - state.from) / 8),
              ArrowRight: () => show(state.from + (state.to - state.from) / 8, state.to + (state.to - state.from) / 8)};
document.addEventListener('keydown', e => {
  if (e.target.tagName === 'INPUT' || e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
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
    const bar = view.hit(e.offsetX, e.offsetY);
    canvas.title = bar ? `${bar.text || bar.name}\n${time(bar.to - bar.from)}` : '';
    return;
  }
  const by = (e.offsetX - drag.x) * (drag.to - drag.from) / (canvas.clientWidth - 230);
  if (Math.abs(e.offsetX - drag.x) > 3) drag.moved = true;
  if (drag.moved) show(drag.from - by, drag.to - by);
});
canvas.addEventListener('pointerup', e => {
  if (drag && !drag.moved) {
    const bar = view.hit(e.offsetX, e.offsetY);
    if (bar) select(bar);
  }
  drag = null;
});
byId('in').addEventListener('click', () => zoom(0.5));
byId('out').addEventListener('click', () => zoom(2));
byId('all').addEventListener('click', () => show(model.first, model.last));
byId('critical').addEventListener('click', critical);
byId('find').addEventListener('input', e => find(e.target.value));
addEventListener('resize', view.draw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', view.draw);

for (const t of model.traces) {
  const packets = t.lanes.reduce((n, l) => n + l.bars.length, 0);
  const before = t.before ? ` from its first packet, ${time(t.before)} before it` : '';
  element('span', `${t.name}: ${time(t.last)}${before}, ${packets} packets, clock ${t.clock} `, byId('names'));
  if (t.lost) element('span', `${t.lost} events were lost `, byId('names'), 'warning');
}
const asked = new URLSearchParams(location.hash.slice(1)), number = name => asked.has(name) ? Number(asked.get(name)) : NaN;
if (number('to') > number('from')) show(number('from'), number('to'));
else show(0, model.last);
if (asked.has('packet') && barOf(asked.get('packet'))) select(barOf(asked.get('packet')), !asked.has('from'));
