// SPDX-License-Identifier: MIT
// The contents of one lane of the chart. What is at least one pixel wide is drawn as it is. What is narrower is summed up, pixel
// by pixel: a pixel with one packet shows this packet; a pixel with several is a block, whose filled height is the part of
// its time during which a packet ran. Neighbouring blocks say together how many packets they stand for.
const NARROW = innerWidth < 600 && model.traces.length === 1;
const LABEL = NARROW ? 110 : 230, ROW = 18, TICKS = 22, AXIS = TICKS * model.traces.length, JOIN = 8;

/// Black or white, whichever reads better on this colour.
const inkOn = (colour) => {
  const [r, g, b] = [1, 3, 5].map((i) => (parseInt(colour.slice(i, i + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000' : '#fff';
};

/// `partOf(trace)`: {from, to}, the part of its time that is in view.
const lanePainter = (pen, css, partOf) => {
  let state = null;  // that of the lane that is drawn
  // Per row and pixel: the packets, whether one of them did not end, the time that each colour ran, and the first and last time.
  let width = 0, size = 0, count, open, time, first, last;
  const prepare = (rows, pixels) => {
    width = pixels;
    if (rows * pixels > size) {
      size = rows * pixels;
      count = new Uint32Array(size);
      open = new Uint8Array(size);
      time = new Float64Array(size * COLOURS.length);
      first = new Float64Array(size);
      last = new Float64Array(size);
    }
    count.fill(0, 0, rows * pixels);
    open.fill(0, 0, rows * pixels);
    time.fill(0, 0, rows * pixels * COLOURS.length);
  };
  const fitting = (text, room) => {
    if (pen.measureText(text).width <= room) return text;
    let n = Math.floor(text.length * room / pen.measureText(text).width);
    while (n > 0 && pen.measureText(text.slice(0, n) + '\u2026').width > room) --n;
    return n > 0 ? text.slice(0, n) + '\u2026' : '';
  };
  const put = (kind, n, ns, from, to, pixel) => {
    const column = Math.min(width - 1, Math.max(0, Math.floor(((from + to) / 2 - state.from) / pixel)));
    const at = Math.floor(kind / PER_ROW) * width + column;
    if (count[at] === 0) first[at] = from, last[at] = to;
    else first[at] = Math.min(first[at], from), last[at] = Math.max(last[at], to);
    count[at] += n;
    time[at * COLOURS.length + kind % UNFINISHED] += ns;
    if (kind & UNFINISHED) open[at] = 1;
  };
  const wide = (lane, i, y, x) => {
    const {from, to, row, shape} = lane.packets, s = model.shapes[shape[i]];
    const left = Math.max(LABEL, x(from[i])), right = Math.min(LABEL + width, x(to[i])), top = y + (row[i] >> 1) * ROW;
    pen.fillStyle = css[COLOURS[s.colour]];
    pen.fillRect(left, top + 2, right - left, ROW - 4);
    if (!(row[i] & 1)) {
      pen.fillStyle = css.fault;
      pen.fillRect(right - 3, top + 2, 3, ROW - 4);
    }
    if (right - left > 26) {
      pen.fillStyle = inkOn(css[COLOURS[s.colour]]);
      pen.fillText(fitting(textOf(lane, i) || s.name, right - left - 8), left + 4, top + 13);
    }
  };
  /// Draws the blocks of a row, and returns them as runs: [{left, right, count, busy, from, to}] in pixels and ns.
  const blocks = (row, y, pixel) => {
    const runs = [];
    let run = null, box = null;
    const flush = () => {
      if (!box) return;
      pen.fillStyle = css[COLOURS[box.colour]];
      const x = LABEL + box.left, w = box.right - box.left;
      if (box.high < ROW - 4) {
        const before = pen.globalAlpha;
        pen.globalAlpha = before * 0.3;
        pen.fillRect(x, y + 2, w, ROW - 4);
        pen.globalAlpha = before;
      }
      pen.fillRect(x, y + ROW - 2 - box.high, w, box.high);
      if (box.open) {
        pen.fillStyle = css.fault;
        if (w > 3) pen.fillRect(x, y + 2, w, 3);
        else pen.fillRect(x + w - 3, y + 2, 3, ROW - 4);
      }
      box = null;
    };
    for (let c = 0; c < width; ++c) {
      const at = row * width + c, n = count[at];
      if (n === 0) {
        flush();
        if (run && c - run.right > JOIN) run = null;
        continue;
      }
      let colour = 0, busy = 0;
      for (let k = 0; k < COLOURS.length; ++k) {
        const t = time[at * COLOURS.length + k];
        busy += t;
        if (t > time[at * COLOURS.length + colour] || (t === 0 && busy === 0)) colour = k;
      }
      const high = n === 1 ? ROW - 4 : Math.max(2, Math.round((ROW - 4) * Math.min(1, busy / pixel)));
      if (box && (box.high !== high || box.colour !== colour || box.open !== open[at])) flush();
      box ??= {left: c, high, colour, open: open[at]};
      box.right = c + 1;
      if (!run) runs.push(run = {left: c, right: c, count: 0, busy: 0, from: first[at], to: last[at], several: false});
      run.right = c + 1;
      run.count += n;
      run.busy += busy;
      run.to = Math.max(run.to, last[at]);
      run.several ||= n > 1;
    }
    flush();
    return runs;
  };
  /// Says on a run of blocks how many packets they stand for.
  const say = ({run, y, what}) => {
    const room = run.right - run.left - 8, busy = Math.round(100 * Math.min(1, run.busy / Math.max(1, run.to - run.from)));
    const text = [`${many(run.count)} ${what}, ${busy} % busy`, `${many(run.count)} ${what}`, many(run.count)]
      .find(t => pen.measureText(t).width + 6 <= room);
    if (!text) return;
    pen.globalAlpha = 0.85;
    pen.fillStyle = css.back;
    pen.fillRect(LABEL + run.left + 2, y + 3, pen.measureText(text).width + 6, ROW - 6);
    pen.globalAlpha = 1;
    pen.fillStyle = css.text;
    pen.fillText(text, LABEL + run.left + 5, y + 13);
  };

  /// The packets of `levels` of a lane, at y; `alpha` dims what a search did not find. Returns how many were wide enough to be drawn
  /// as they are, and the runs of the others: [{run, y, what}].
  const packets = (lane, levels, y, w, x, alpha, what) => {
    state = partOf(lane.trace);
    const pixels = Math.max(1, w - LABEL), pixel = (state.to - state.from) / pixels;
    prepare(lane.rows, pixels);
    pen.globalAlpha = alpha;
    let whole = 0;
    const {from, to, row, shape} = lane.packets;
    levels.visit(state.from, state.to, (cells, c) => {
      if (cells.last[c] - cells.first[c] > pixel) return false;
      for (let e = cells.start[c]; e < cells.start[c + 1]; ++e)
        put(cells.kind[e], cells.count[e], cells.time[e], cells.first[c], cells.last[c], pixel);
      return true;
    }, i => {
      if (to[i] - from[i] >= pixel) return void (++whole, wide(lane, i, y, x));
      put((row[i] >> 1) * PER_ROW + (row[i] & 1 ? 0 : UNFINISHED) + model.shapes[shape[i]].colour, 1, to[i] - from[i], from[i], to[i], pixel);
    });
    const runs = [];
    for (let r = 0; r < lane.rows; ++r) for (const run of blocks(r, y + r * ROW, pixel)) runs.push({run, y: y + r * ROW, what});
    pen.globalAlpha = 1;
    return {whole, runs};
  };
  /// Doorbells, signals, faults. Where they are in neighbouring pixels, they become a band.
  const marks = (lane, y, height, w) => {
    state = partOf(lane.trace);
    const pixels = Math.max(1, w - LABEL), pixel = (state.to - state.from) / pixels, seen = MARKS.map(() => new Uint8Array(pixels + 1));
    const put = (kind, ns) => { seen[kind][Math.min(pixels, Math.max(0, Math.floor((ns - state.from) / pixel)))] = 1; };
    lane.markLevels.visit(state.from, state.to, (cells, c) => {
      if (cells.last[c] - cells.first[c] > pixel) return false;
      for (let e = cells.start[c]; e < cells.start[c + 1]; ++e) put(cells.kind[e], cells.first[c]);
      return true;
    }, i => put(lane.marks.kind[i], lane.marks.ns[i]));
    const bottom = y + height;
    seen.forEach((columns, kind) => {
      pen.fillStyle = MARKS[kind] === 'fault' ? css.fault : MARKS[kind] === 'signal' ? css.sync : css.dim;
      for (let c = columns.indexOf(1); c >= 0; c = columns.indexOf(1, c)) {
        let end = c + 1;
        while (columns[end] === 1) ++end;
        const px = LABEL + c + 0.5;
        if (end - c > 2) pen.fillRect(LABEL + c, bottom - (MARKS[kind] === 'fault' ? 14 : 5), end - c, 5);
        else {
          pen.beginPath();
          if (MARKS[kind] === 'signal') pen.arc(px, bottom - 4, 3, 0, 7);
          else pen.moveTo(px - 4, bottom), pen.lineTo(px + 4, bottom), pen.lineTo(px, bottom - (MARKS[kind] === 'fault' ? 14 : 7));
          pen.fill();
        }
        c = end;
      }
    });
  };
  /// A counter as a line. In a pixel with several values it goes from the smallest to the largest.
  const counter = ({ns, value, extremes}, y, height, w, x, trace) => {
    state = partOf(trace);
    const [, top] = extremes.of(0, value.length), level = v => y + height - 2 - (height - 4) * v / Math.max(1, top);
    const pixel = (state.to - state.from) / Math.max(1, w - LABEL);
    let i = firstOf(ns, t => t >= state.from), at = i > 0 ? level(value[i - 1]) : y + height - 2;
    pen.strokeStyle = css.other;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(LABEL, at);
    while (i < ns.length && ns[i] <= state.to) {
      const px = x(ns[i]), edge = ns[i] + pixel;
      let end = i + 1;
      if (end < ns.length && ns[end] < edge) end = firstOf(ns, t => t >= edge);
      const [low, high] = extremes.of(i, end);
      pen.lineTo(px, at);
      if (end - i > 1) pen.lineTo(px, level(low)), pen.lineTo(px, level(high));
      at = level(value[end - 1]);
      pen.lineTo(px, at);
      i = end;
    }
    pen.lineTo(Math.max(LABEL, Math.min(w, x(trace.last))), at);
    pen.stroke();
  };
  return {packets, marks, counter, say, fitting};
};
