// The chart: lanes of the two traces alternate. Every change redraws it, and only visible packets cost time.
const LABEL = 230, ROW = 18, AXIS = 22;

const view = (() => {
  const canvas = document.getElementById('canvas'), chart = document.getElementById('chart'), pen = canvas.getContext('2d');
  const several = model.traces.length > 1;
  let height = AXIS, group = null;
  const rows = [];  // {lane, trace, y, height, title, heading}
  for (const place of model.places) {
    place.lanes.forEach(({trace, lane}, i) => {
      const heading = place.group !== group ? place.group : null;
      if (heading !== null) height += ROW;
      group = place.group;
      const tall = Math.max(1, lane.rows) * ROW;
      rows.push({trace, lane, y: height, height: tall, title: i === 0 || lane.name !== place.name ? lane.name : '', heading, first: i === 0});
      height += tall;
    });
    height += several ? 5 : 1;
  }
  const state = {from: 0, to: model.last, selected: null, path: [], matches: null};

  const x = ns => LABEL + (ns - state.from) / (state.to - state.from) * (canvas.clientWidth - LABEL);
  const nsAt = px => state.from + (px - LABEL) / (canvas.clientWidth - LABEL) * (state.to - state.from);
  const rowOf = lane => rows.find(r => r.lane === lane);
  const css = {};
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of ['back', 'text', 'dim', 'line', 'band', 'copy', 'wait', 'sync', 'other', 'fault', 'path'])
      css[name] = style.getPropertyValue('--' + name).trim();
  };
  const fitting = (text, width) => {
    if (pen.measureText(text).width <= width) return text;
    let n = Math.floor(text.length * width / pen.measureText(text).width);
    while (n > 0 && pen.measureText(text.slice(0, n) + '\u2026').width > width) --n;
    return n > 0 ? text.slice(0, n) + '\u2026' : '';
  };

  const axis = (w, h) => {
    const span = state.to - state.from, rough = span / Math.max(2, (w - LABEL) / 110);
    const power = 10 ** Math.floor(Math.log10(rough)), step = Math.max(1, [1, 2, 5, 10].find(k => k * power >= rough) * power);
    pen.textAlign = 'left';
    for (let t = Math.ceil(state.from / step) * step; t <= state.to; t += step) {
      pen.fillStyle = css.line;
      pen.fillRect(Math.round(x(t)), AXIS - 5, 1, h);
      pen.fillStyle = css.dim;
      const text = time(Math.round(t));
      if (x(t) + 3 + pen.measureText(text).width <= w) pen.fillText(text, x(t) + 3, AXIS - 8);
    }
  };
  const bars = row => {
    const list = row.lane.bars;
    let occupied = new Array(Math.max(1, row.lane.rows)).fill(-1);
    for (let i = firstOf(list, b => b.from >= state.from - row.lane.width); i < list.length && list[i].from <= state.to; ++i) {
      const b = list[i];
      if (b.to < state.from) continue;
      const left = Math.max(LABEL, x(b.from)), right = Math.max(left + 1, Math.min(canvas.clientWidth, x(b.to)));
      const marked = b === state.selected || (state.matches && state.matches.has(b));
      // Packets within one pixel are drawn as one.
      if (right <= occupied[b.row] && !marked) continue;
      occupied[b.row] = right;
      const y = row.y + b.row * ROW;
      pen.globalAlpha = state.matches && !state.matches.has(b) ? 0.25 : 1;
      pen.fillStyle = css[b.colour];
      pen.fillRect(left, y + 2, right - left, ROW - 4);
      if (!b.finished) {
        pen.fillStyle = css.fault;
        pen.fillRect(right - 3, y + 2, 3, ROW - 4);
      }
      if (right - left > 26) {
        pen.fillStyle = b.colour === 'wait' ? css.text : '#fff';
        pen.fillText(fitting(b.name, right - left - 8), left + 4, y + 13);
      }
      pen.globalAlpha = 1;
      if (b === state.selected) {
        pen.strokeStyle = css.path;
        pen.lineWidth = 2;
        pen.strokeRect(left, y + 1, right - left, ROW - 2);
      }
    }
  };
  const marks = row => {
    for (const m of row.lane.marks) {
      if (m.ns < state.from || m.ns > state.to || m.kind === 'counter' || m.kind.startsWith('flow')) continue;
      const px = x(m.ns), bottom = row.y + row.height;
      pen.fillStyle = m.kind === 'fault' ? css.fault : m.kind === 'signal' ? css.sync : css.dim;
      pen.beginPath();
      if (m.kind === 'signal') pen.arc(px, bottom - 4, 3, 0, 7);
      else pen.moveTo(px - 4, bottom), pen.lineTo(px + 4, bottom), pen.lineTo(px, bottom - (m.kind === 'fault' ? 14 : 7));
      pen.fill();
    }
    for (const list of row.lane.counters.values()) {
      const top = Math.max(1, ...list.map(m => m.number));
      pen.strokeStyle = css.other;
      pen.lineWidth = 1;
      pen.beginPath();
      let y = row.y + row.height - 2;
      pen.moveTo(Math.max(LABEL, x(-row.trace.before)), y);
      for (const m of list) {
        pen.lineTo(Math.max(LABEL, x(m.ns)), y);
        y = row.y + row.height - 2 - (row.height - 4) * m.number / top;
        pen.lineTo(Math.max(LABEL, x(m.ns)), y);
      }
      pen.lineTo(Math.max(LABEL, x(row.trace.last)), y);
      pen.stroke();
    }
  };
  const arrow = (fromLane, fromNs, fromBar, toLane, toNs, toBar) => {
    const a = rowOf(fromLane), b = rowOf(toLane);
    if (!a || !b) return;
    const y0 = a.y + (fromBar ? fromBar.row * ROW : 0) + ROW / 2, y1 = b.y + (toBar ? toBar.row * ROW : 0) + ROW / 2;
    pen.beginPath();
    pen.moveTo(x(fromNs), y0);
    pen.bezierCurveTo(x(fromNs) + 20, y0, x(toNs) - 20, y1, x(toNs), y1);
    pen.stroke();
    pen.beginPath();
    pen.arc(x(toNs), y1, 3, 0, 7);
    pen.fill();
  };
  const arrows = () => {
    pen.save();
    pen.beginPath();
    pen.rect(LABEL, AXIS, canvas.clientWidth - LABEL, height);
    pen.clip();
    pen.strokeStyle = pen.fillStyle = css.dim;
    pen.lineWidth = 1;
    pen.globalAlpha = 0.5;
    for (const trace of model.traces)
      for (const {begin, end} of trace.flows.values())
        if (begin && end && end.ns >= state.from && begin.ns <= state.to)
          arrow(begin.lane, begin.ns, null, end.lane, end.ns, null);
    pen.globalAlpha = 1;
    pen.strokeStyle = pen.fillStyle = css.path;
    pen.lineWidth = 2;
    for (let i = 0; i + 1 < state.path.length; ++i) {
      const to = state.path[i], from = state.path[i + 1];
      arrow((from.mark ?? from.bar).lane, from.ns, from.bar, (to.bar ?? to.mark).lane, to.bar ? Math.max(from.ns, to.bar.from) : to.ns,
            to.bar);
    }
    pen.restore();
  };
  const labels = () => {
    pen.fillStyle = css.back;
    pen.fillRect(0, 0, LABEL, height + AXIS);
    for (const row of rows) {
      if (row.heading !== null) {
        pen.fillStyle = css.text;
        pen.font = 'bold 12px system-ui, sans-serif';
        pen.fillText(fitting(row.heading, LABEL - 12), 8, row.y - 5);
        pen.font = '12px system-ui, sans-serif';
      }
      pen.fillStyle = css.text;
      pen.fillText(fitting(row.title, several ? 128 : LABEL - 24), 16, row.y + 13);
      pen.fillStyle = css.dim;
      if (several) pen.fillText(fitting(row.trace.shortName, LABEL - 154), 150, row.y + 13);
    }
  };
  const draw = () => {
    const ratio = devicePixelRatio || 1, w = chart.clientWidth, h = Math.max(height + 8, chart.clientHeight - 2);
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
      canvas.style.width = w + 'px';
      canvas.style.height = h + 'px';
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
    }
    colours();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, w, h);
    pen.font = '12px system-ui, sans-serif';
    axis(w, h);
    for (const row of rows) {
      pen.fillStyle = css.band;
      if (row.trace === model.traces[0]) pen.globalAlpha = 1; else pen.globalAlpha = 0.5;
      pen.fillRect(LABEL, row.y, w - LABEL, row.height);
      pen.globalAlpha = 1;
      bars(row);
      marks(row);
    }
    arrows();
    labels();
  };
  const hit = (px, py) => {
    const row = rows.find(r => py >= r.y && py < r.y + r.height);
    if (!row || px < LABEL) return null;
    const track = Math.floor((py - row.y) / ROW), near = (state.to - state.from) * 3 / (canvas.clientWidth - LABEL), ns = nsAt(px);
    let best = null;
    for (const b of row.lane.bars) {
      if (b.row !== track || b.from > ns + near || b.to < ns - near) continue;
      const off = Math.max(0, b.from - ns, ns - b.to);
      if (!best || off <= Math.max(0, best.from - ns, ns - best.to)) best = b;
    }
    return best;
  };
  /// Where a packet is drawn, in pixels of the canvas: [x, y] of its middle.
  const place = b => {
    const row = rowOf(b.lane);
    return [Math.min(canvas.clientWidth - 1, Math.max(LABEL, x((b.from + b.to) / 2))), row.y + b.row * ROW + ROW / 2];
  };
  return {canvas, chart, state, draw, hit, nsAt, place};
})();
