// SPDX-License-Identifier: MIT
'use strict';
// Levels of detail of things with a beginning and an end, in the order of their beginnings. A cell of level 0 sums up 64 of
// them, a cell of each further level 8 cells of the level below. A cell has its first beginning, its last end and, for each kind
// that it contains, the number and the total time. So a picture costs what its pixels cost: `visit` descends only into cells
// that are wider than the caller wants.
const LEAF = 64, FAN = 8;

/// A typed array that grows.
class Growing {
  constructor(Type) { this.all = new Type(1024); this.length = 0; }
  push(v) {
    if (this.length === this.all.length) {
      const more = new this.all.constructor(2 * this.length);
      more.set(this.all);
      this.all = more;
    }
    this.all[this.length++] = v;
  }
  taken() { return this.all.slice(0, this.length); }
}

class Levels {
  /// `from` and `to`: times by index; `kindOf(i)`: a number below `kinds`; `items`: the indices that count, in ascending order; null: all.
  constructor(from, to, kindOf = () => 0, kinds = 1, items = null) {
    Object.assign(this, {from, to, items, length: items ? items.length : from.length, levels: []});
    const count = new Uint32Array(kinds), time = new Float64Array(kinds), touched = [];
    const add = (kind, n, ns) => {
      if (count[kind] === 0) touched.push(kind);
      count[kind] += n;
      time[kind] += ns;
    };
    const level = (cells, fill) => {
      const made = {first: new Float64Array(cells), last: new Float64Array(cells).fill(-Infinity), start: new Uint32Array(cells + 1)};
      const entries = {kind: new Growing(Uint16Array), count: new Growing(Uint32Array), time: new Growing(Float64Array)};
      for (let c = 0; c < cells; ++c) {
        fill(made, c);
        touched.sort((a, b) => a - b);
        for (const k of touched) {
          entries.kind.push(k);
          entries.count.push(count[k]);
          entries.time.push(time[k]);
          count[k] = time[k] = 0;
        }
        touched.length = 0;
        made.start[c + 1] = entries.kind.length;
      }
      for (const [name, list] of Object.entries(entries)) made[name] = list.taken();
      this.levels.push(made);
    };
    if (this.length === 0) return;
    level(Math.ceil(this.length / LEAF), (made, c) => {
      const end = Math.min(this.length, (c + 1) * LEAF);
      made.first[c] = from[this.item(c * LEAF)];
      for (let k = c * LEAF; k < end; ++k) {
        const i = this.item(k);
        if (to[i] > made.last[c]) made.last[c] = to[i];
        add(kindOf(i), 1, to[i] - from[i]);
      }
    });
    while (this.top.first.length > 1) {
      const below = this.top;
      level(Math.ceil(below.first.length / FAN), (made, c) => {
        const end = Math.min(below.first.length, (c + 1) * FAN);
        made.first[c] = below.first[c * FAN];
        for (let k = c * FAN; k < end; ++k) if (below.last[k] > made.last[c]) made.last[c] = below.last[k];
        for (let e = below.start[c * FAN]; e < below.start[end]; ++e) add(below.kind[e], below.count[e], below.time[e]);
      });
    }
  }
  get top() { return this.levels[this.levels.length - 1]; }
  item(k) { return this.items ? this.items[k] : k; }
  /// The children of a cell: [first, end) in the level below, or of the items.
  children(level, c) {
    const fan = level === 0 ? LEAF : FAN, n = level === 0 ? this.length : this.levels[level - 1].first.length;
    return [c * fan, Math.min(n, (c + 1) * fan)];
  }
  /// Visits everything that overlaps [from, to]: asks `take(cell level, its number)` for each cell, descends into those that it does
  /// not take, and calls `one(index)` for the items that remain. Depth: the number of levels.
  visit(from, to, take, one) {
    const descend = (level, c) => {
      const cells = this.levels[level];
      if (cells.last[c] < from || cells.first[c] > to || take(cells, c)) return;
      const [begin, end] = this.children(level, c);
      if (level !== 0) {
        for (let k = begin; k < end; ++k) descend(level - 1, k);
        return;
      }
      for (let k = begin; k < end; ++k) {
        const i = this.item(k);
        if (this.from[i] > to) return;
        if (this.to[i] >= from) one(i);
      }
    };
    if (this.length !== 0) descend(this.levels.length - 1, 0);
  }
  /// How many overlap [from, to].
  count(from, to) {
    let n = 0;
    this.visit(from, to, (cells, c) => {
      if (cells.first[c] < from || cells.last[c] > to) return false;
      for (let e = cells.start[c]; e < cells.start[c + 1]; ++e) n += cells.count[e];
      return true;
    }, () => ++n);
    return n;
  }
  /// The last index that runs at `ns`: it began by then, and has not ended before; -1: none.
  running(ns) {
    const search = (level, c) => {
      const cells = this.levels[level];
      if (cells.first[c] > ns || cells.last[c] < ns) return -1;
      const [begin, end] = this.children(level, c);
      for (let k = end - 1; k >= begin; --k) {
        if (level !== 0) {
          const found = search(level - 1, k);
          if (found >= 0) return found;
        } else if (this.from[this.item(k)] <= ns && this.to[this.item(k)] >= ns) return this.item(k);
      }
      return -1;
    };
    return this.length === 0 ? -1 : search(this.levels.length - 1, 0);
  }
  /// The index, other than `not`, that ended last of those that ended by `ns`; of several the last one; -1: none.
  ended(ns, not = -1) {
    let best = -1, end = -Infinity;
    const search = (level, c) => {
      const cells = this.levels[level];
      if (cells.first[c] > ns || Math.min(cells.last[c], ns) <= end) return;
      const [begin, stop] = this.children(level, c);
      for (let k = stop - 1; k >= begin; --k) {
        if (level !== 0) search(level - 1, k);
        else {
          const i = this.item(k);
          if (i !== not && this.to[i] <= ns && this.to[i] > end) best = i, end = this.to[i];
        }
      }
    };
    if (this.length !== 0) search(this.levels.length - 1, 0);
    return best;
  }
}

/// The smallest and the largest value of any part of a list, at a cost that hardly depends on its length.
class Extremes {
  constructor(values) {
    this.levels = [{low: values, high: values}];
    for (let below = this.levels[0]; below.low.length > 1; below = this.levels[this.levels.length - 1]) {
      const n = Math.ceil(below.low.length / LEAF), made = {low: new Float64Array(n).fill(Infinity), high: new Float64Array(n).fill(-Infinity)};
      for (let i = 0; i < below.low.length; ++i) {
        const c = Math.floor(i / LEAF);
        made.low[c] = Math.min(made.low[c], below.low[i]);
        made.high[c] = Math.max(made.high[c], below.high[i]);
      }
      this.levels.push(made);
    }
  }
  /// [smallest, largest] of the indices [begin, end).
  of(begin, end) {
    let low = Infinity, high = -Infinity;
    for (let level = 0; begin < end; ++level) {
      const {low: lows, high: highs} = this.levels[level], last = level + 1 === this.levels.length;
      const add = i => { low = Math.min(low, lows[i]); high = Math.max(high, highs[i]); };
      while (begin < end && (last || begin % LEAF !== 0)) add(begin++);
      while (begin < end && end % LEAF !== 0) add(--end);
      begin /= LEAF;
      end /= LEAF;
    }
    return [low, high];
  }
}

/// The first index of a sorted list for which `late` holds; it must hold for all later ones.
const firstOf = (list, late) => {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (late(list[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
};
