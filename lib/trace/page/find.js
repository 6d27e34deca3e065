// SPDX-License-Identifier: MIT
// Searches for packets by their text. A shape without a match in its fixed text needs the text of each of its packets, so the
// search takes turns with the page: it works for some milliseconds, says how far it is, and continues later.
const TURN = 25;  // ms
let search = 0;

/// Can the text of a packet of this shape contain `wanted`? Its numbers may be any characters of numbers.
const possible = (shape, wanted) => {
  const symbols = shape.text.flatMap((part, i) => i % 3 === 0 ? [...part.toLowerCase()] : i % 3 === 1 ? [null] : []);
  const number = c => /[0-9a-fx]/.test(c);
  const match = (s, w) => {
    if (w === wanted.length) return true;
    if (s === symbols.length) return false;
    if (symbols[s] !== null) return symbols[s] === wanted[w] && match(s + 1, w + 1);
    for (let end = w; ; ++end) {
      if (match(s + 1, end)) return true;
      if (end === wanted.length) return true;
      if (!number(wanted[end])) return false;
    }
  };
  return symbols.some((_, s) => match(s, 0));
};
/// The indices of a lane's packets that contain `wanted`, in order: calls `hit` for each, and yields now and then.
const matching = function* (lane, wanted, hit) {
  const {shape} = lane.packets;
  // By shape: true: all of its packets match; false: none; null: that depends on the words.
  const known = model.shapes.map(s => {
    if (s.name.includes(wanted) || s.text.some((part, i) => i % 3 === 0 && part.toLowerCase().includes(wanted))) return true;
    return possible(s, wanted) ? null : false;
  });
  for (let i = 0; i < lane.count; ++i) {
    if (i % SEGMENT === 0) yield i;
    if (known[shape[i]] ?? textOf(lane, i).toLowerCase().includes(wanted)) hit(i);
  }
};
const find = text => {
  const wanted = text.trim().toLowerCase(), number = ++search, says = byId('found');
  state.matches = null;
  says.textContent = '';
  if (wanted === '') return redraw();
  const lanes = model.traces.flatMap(t => t.lanes).filter(l => l.count), total = lanes.reduce((n, l) => n + l.count, 0);
  const matches = new Map();
  let found = 0, actions = 0, before = 0, lane = 0, list = new Growing(Uint32Array), first = null;
  const hit = i => {
    const l = lanes[lane];
    first ??= new Bar(l, i);
    list.push(i);
    if (l.actions && model.shapes[l.packets.shape[i]].action) ++actions;
    else ++found;
  };
  const some = (n, what) => `${many(n)} ${what}${n === 1 ? '' : 's'}`;
  const words = () => actions ? `${some(found, 'packet')}, ${some(actions, 'action')}` : some(found, 'packet');
  let turn = lanes.length ? matching(lanes[0], wanted, hit) : null;
  const work = () => {
    if (number !== search) return;  // another search has begun
    const until = performance.now() + TURN;
    let at = 0;
    while (lane < lanes.length && performance.now() < until) {
      const {done, value} = turn.next();
      if (!done) at = value;
      else {
        const l = lanes[lane], {from, to, row, shape} = l.packets;
        if (list.length) matches.set(l, new Levels(from, to, i => (row[i] >> 1) * PER_ROW + (row[i] & 1 ? 0 : UNFINISHED) + model.shapes[shape[i]].colour,
                                                   ROWS * PER_ROW, list.taken()));
        before += l.count;
        list = new Growing(Uint32Array);
        turn = ++lane < lanes.length ? matching(lanes[lane], wanted, hit) : null;
        at = 0;
      }
    }
    if (lane < lanes.length) {
      says.textContent = `${words()} in ${Math.floor(100 * (before + at) / total)} % of the trace`;
      setTimeout(work);
      return;
    }
    says.textContent = words();
    state.matches = matches;
    if (first) select(first);
    else redraw();
  };
  work();
};
