// SPDX-License-Identifier: MIT
// The chart: lanes of the two traces alternate. Each trace has a scale of its own, on which its packets fill the view as those of the first
// trace do, or both have that of the first trace. The view is a part of the first trace's time. Every change redraws the lanes that are visible. The canvas is as large as the window
// and stays in it while the lanes scroll, because browsers limit the size of a canvas.
const MOST_HEIGHT = 3e7, MOST_ARROWS = 200;

const view = (() => {
  const canvas = document.getElementById('canvas'), chart = document.getElementById('chart'), pen = canvas.getContext('2d');
  const several = model.traces.length > 1;
  let height = AXIS, group = null, hidden = 0;
  const rows = [];  // {lane, trace, y, height, title, heading}
  for (const place of model.places) {
    place.lanes.forEach(({trace, lane}, i) => {
      if (height > MOST_HEIGHT) return void ++hidden;
      const heading = place.group !== group ? place.group : null;
      if (heading !== null) height += ROW;
      group = place.group;
      const tall = Math.max(1, lane.rows) * ROW;
      lane.place = place;
      lane.shown = {trace, lane, y: height, height: tall, title: i === 0 || lane.name !== place.name ? lane.name : '', heading, first: i === 0};
      rows.push(lane.shown);
      height += tall;
    });
    height += several ? 5 : 1;
  }
  document.getElementById('tall').style.height = `${height + 8}px`;
  const state = {from: 0, to: model.last, oneScale: false, selected: null, path: [], matches: null};

  /// How long a ns of this trace is, in ns of the first trace.
  const scale = trace => state.oneScale ? 1 : model.traces[0].end / trace.end;
  /// The part of its time that is in view.
  const partOf = trace => ({from: state.from / scale(trace), to: state.to / scale(trace)});
  /// The part of the view that the packets take, and the one that everything takes.
  const ends = (from, to) => ({from: Math.min(...model.traces.map(t => from(t) * scale(t))), to: Math.max(...model.traces.map(t => to(t) * scale(t)))});
  const packetsEnd = () => ends(() => 0, t => t.end), allEnds = () => ends(t => -t.before, t => Math.max(1, t.last));
  const x = (ns, trace) => LABEL + (ns * scale(trace) - state.from) / (state.to - state.from) * (canvas.clientWidth - LABEL);
  const nsAt = px => state.from + (px - LABEL) / (canvas.clientWidth - LABEL) * (state.to - state.from);
  const yOf = row => row.y - chart.scrollTop;
  const css = {}, paint = lanePainter(pen, css, partOf), {fitting} = paint;
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of ['back', 'text', 'dim', 'line', 'band', 'copy', 'wait', 'sync', 'other', 'fault', 'path'])
      css[name] = style.getPropertyValue('--' + name).trim();
  };
  const steps = (w, trace) => {
    const {from, to} = partOf(trace), span = to - from, rough = span / Math.max(2, (w - LABEL) / 110), power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max(1, [1, 2, 5, 10].find(k => k * power >= rough) * power), times = [];
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) times.push(t);
    return {trace, step, times};
  };
  const grid = ({trace, times}, y, h) => {
    pen.fillStyle = css.line;
    for (const t of times) pen.fillRect(Math.round(x(t, trace)), y, 1, h);
  };
  /// The times of each scale, one line below the other, and whose they are.
  const axis = (scales, w) => {
    pen.fillStyle = css.back;
    pen.fillRect(0, 0, w, AXIS - 5);
    pen.fillStyle = css.dim;
    scales.forEach(({trace, step, times}, i) => {
      const y = AXIS - 8 - (scales.length - 1 - i) * TICKS;
      if (several) pen.fillText(fitting(state.oneScale ? 'one scale for both' : `scale of ${trace.shortName}`, LABEL - 12), 8, y);
      for (const t of times) {
        const text = time(Math.round(t), step), at = x(t, trace) + 3;
        if (at + pen.measureText(text).width <= w) pen.fillText(text, at, y);
      }
    });
  };
  const selected = () => {
    const b = state.selected, row = b?.lane.shown;
    if (!row) return;
    const {from, to} = partOf(b.trace);
    if (b.to < from || b.from > to) return;
    const left = Math.max(LABEL, x(b.from, b.trace)), right = Math.max(left + 1, Math.min(canvas.clientWidth, x(b.to, b.trace))), y = yOf(row) + b.row * ROW;
    pen.fillStyle = css[COLOURS[b.shape.colour]];
    if (right - left < 3) pen.fillRect(left, y + 2, right - left, ROW - 4);
    pen.strokeStyle = css.path;
    pen.lineWidth = 2;
    pen.strokeRect(left, y + 1, right - left, ROW - 2);
  };
  const arrow = (fromLane, fromNs, fromBar, toLane, toNs, toBar) => {
    const a = fromLane.shown, b = toLane.shown;
    if (!a || !b) return;
    const y0 = yOf(a) + (fromBar ? fromBar.row * ROW : 0) + ROW / 2, y1 = yOf(b) + (toBar ? toBar.row * ROW : 0) + ROW / 2;
    const x0 = x(fromNs, fromLane.trace), x1 = x(toNs, toLane.trace);
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.bezierCurveTo(x0 + 20, y0, x1 - 20, y1, x1, y1);
    pen.stroke();
    pen.beginPath();
    pen.arc(x1, y1, 3, 0, 7);
    pen.fill();
  };
  /// Draws them, and returns how many are too many to draw.
  const arrows = () => {
    pen.save();
    pen.beginPath();
    pen.rect(LABEL, AXIS, canvas.clientWidth - LABEL, canvas.clientHeight);
    pen.clip();
    pen.strokeStyle = pen.fillStyle = css.dim;
    pen.lineWidth = 1;
    pen.globalAlpha = 0.5;
    let missing = 0;
    for (const trace of model.traces) {
      const {flows, lanes} = trace, {from, to} = partOf(trace), n = flows.levels.count(from, to);
      if (n > MOST_ARROWS) missing += n;
      else flows.levels.visit(from, to, () => false,
                              i => arrow(lanes[flows.fromLane[i]], flows.from[i], null, lanes[flows.toLane[i]], flows.to[i], null));
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = pen.fillStyle = css.path;
    pen.lineWidth = 2;
    const shown = state.selected && partOf(state.selected.trace);
    for (let i = 0; i + 1 < state.path.length; ++i) {
      const to = state.path[i], from = state.path[i + 1];
      if (to.ns < shown.from || from.ns > shown.to) continue;
      arrow((from.mark ?? from.bar).lane, from.ns, from.bar, (to.bar ?? to.mark).lane, to.bar ? Math.max(from.ns, to.bar.from) : to.ns,
            to.bar);
    }
    pen.restore();
    return missing;
  };
  const labels = visible => {
    pen.fillStyle = css.back;
    pen.fillRect(0, 0, LABEL, canvas.clientHeight);
    for (const row of visible) {
      const y = yOf(row);
      if (row.heading !== null) {
        pen.fillStyle = css.text;
        pen.font = 'bold 12px system-ui, sans-serif';
        pen.fillText(fitting(row.heading, LABEL - 12), 8, y - 5);
        pen.font = '12px system-ui, sans-serif';
      }
      pen.fillStyle = css.text;
      pen.fillText(fitting(row.title, several ? 128 : LABEL - 24), 16, y + 13);
      pen.fillStyle = css.dim;
      if (several) pen.fillText(fitting(row.trace.shortName, LABEL - 154), 150, y + 13);
      if (row.lane.allRows > ROWS)
        pen.fillText(fitting(`${many(row.lane.allRows - ROWS + 1)} rows overlap here`, LABEL - 24), 16, y + row.height - 5);
    }
  };
  /// Draws everything, and returns {whole: the number of packets that were drawn as they are, runs: those of the blocks}.
  const draw = () => {
    const ratio = devicePixelRatio || 1, w = chart.clientWidth, h = Math.min(chart.clientHeight - 2, 4000);
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
    pen.textAlign = 'left';
    const scales = (state.oneScale ? model.traces.slice(0, 1) : model.traces).map(trace => steps(w, trace));
    if (scales.length === 1) grid(scales[0], AXIS - 5, Math.min(h, height - chart.scrollTop));
    const visible = rows.filter(r => yOf(r) < h && yOf(r) + r.height > 0), drawn = {whole: 0, runs: []}, said = [];
    for (const row of visible) {
      const {lane, trace} = row, y = yOf(row);
      pen.fillStyle = css.band;
      if (trace === model.traces[0]) pen.globalAlpha = 1; else pen.globalAlpha = 0.5;
      pen.fillRect(LABEL, y, w - LABEL, row.height);
      pen.globalAlpha = 1;
      if (scales.length > 1) grid(scales.find(s => s.trace === trace), y, row.height);
      const xOf = ns => x(ns, trace);
      const all = paint.packets(lane, lane.levels, y, w, xOf, state.matches ? 0.25 : 1, lane.what);
      const found = state.matches?.get(lane);
      const shown = found ? paint.packets(lane, found, y, w, xOf, 1, 'found') : all;
      drawn.whole += all.whole;
      for (const r of all.runs) drawn.runs.push(r.run);
      if (found || !state.matches) for (const r of shown.runs) if (r.run.several) said.push(r);
      paint.marks(lane, y, row.height, w);
      for (const counter of lane.counters) paint.counter(counter, y, row.height, w, xOf, trace);
    }
    selected();
    const missing = arrows();
    said.forEach(paint.say);
    labels(visible);
    axis(scales, w);
    if (missing) {
      pen.fillStyle = css.back;
      pen.fillRect(0, AXIS - TICKS, LABEL, TICKS - 5);
      pen.fillStyle = css.dim;
      pen.fillText(fitting(`zoom in to see ${many(missing)} arrows`, LABEL - 12), 8, AXIS - 8);
    }
    return drawn;
  };
  /// What is drawn at a pixel: {bar}, or {block: {lane, row, from, to, count, busy, first}} for several packets in this pixel, or null.
  const hit = (px, py) => {
    const y = py + chart.scrollTop, row = py < AXIS ? null : rows.find(r => y >= r.y && y < r.y + r.height);
    if (!row || px < LABEL) return null;
    const {lane} = row, track = Math.floor((y - row.y) / ROW), part = partOf(lane.trace), pixel = (part.to - part.from) / (canvas.clientWidth - LABEL);
    const {from, to, row: rowAndEnd} = lane.packets, ns = nsAt(px) / scale(lane.trace);
    const block = {lane, row: track, from: Infinity, to: -Infinity, count: 0, busy: 0, first: -1};
    let wide = -1;
    // The packets whose middle is in this pixel, as they are drawn.
    const begin = part.from + Math.floor((ns - part.from) / pixel) * pixel;
    const sum = (n, time, first, last) => {
      const middle = (first + last) / 2;
      if (middle < begin || middle >= begin + pixel) return false;
      block.count += n;
      block.busy += time;
      block.from = Math.min(block.from, first);
      block.to = Math.max(block.to, last);
      return true;
    };
    lane.levels.visit(begin - pixel, begin + 2 * pixel, (cells, c) => {
      if (cells.last[c] - cells.first[c] > pixel) return false;
      for (let e = cells.start[c]; e < cells.start[c + 1]; ++e)
        if (Math.floor(cells.kind[e] / PER_ROW) === track) sum(cells.count[e], cells.time[e], cells.first[c], cells.last[c]);
      return true;
    }, i => {
      if (rowAndEnd[i] >> 1 !== track) return;
      if (to[i] - from[i] >= pixel) wide = from[i] <= ns && to[i] >= ns ? i : wide;
      else if (sum(1, to[i] - from[i], from[i], to[i])) block.first = i;
    });
    if (wide >= 0) return {bar: new Bar(lane, wide)};
    if (block.count > 1) return {block};
    if (block.count === 1 && block.first >= 0) return {bar: new Bar(lane, block.first)};
    // Nothing here: the nearest packet within three pixels.
    let best = -1, off = Infinity;
    lane.levels.visit(ns - 3 * pixel, ns + 3 * pixel, (cells, c) => cells.last[c] - cells.first[c] <= pixel, i => {
      const away = Math.max(0, from[i] - ns, ns - to[i]);
      if (rowAndEnd[i] >> 1 === track && away <= off) best = i, off = away;
    });
    return best < 0 ? null : {bar: new Bar(lane, best)};
  };
  /// Where a packet is drawn, in pixels of the canvas: [x, y] of its middle.
  const place = b => [Math.min(canvas.clientWidth - 1, Math.max(LABEL, x((b.from + b.to) / 2, b.trace))), yOf(b.lane.shown) + b.row * ROW + ROW / 2];
  /// Scrolls to the row of a packet that is above or below what is visible.
  const reveal = b => {
    const [, y] = place(b), least = AXIS + ROW, most = chart.clientHeight - ROW;
    if (y < least) chart.scrollTop += y - least;
    else if (y > most) chart.scrollTop += y - most;
  };
  return {canvas, chart, state, hidden, scale, packetsEnd, allEnds, draw, hit, nsAt, place, reveal};
})();
