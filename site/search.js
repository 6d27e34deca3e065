// SPDX-License-Identifier: MIT
// Goes before the theme's search worker, so that it finds names such as copy_linear, Errc::no_space, ring.hpp and --stalled-for.
//
// The index has their parts. A query keeps them whole, and takes a colon or a minus as its own syntax. So a name becomes its parts, all of
// which are required; and pages that have the name as it was typed come first: as their title, as what they declare, in the title, in the text.
// A query without an answer is asked once more, with a letter forgiven in each word.
"use strict";
{
  const QUERY = 2, ANSWER = 3, post = self.postMessage.bind(self);
  let docs = new Map(), asked = "", forgiving = false;

  const parts = (name) => name.split(/[^\p{L}\p{N}]+/u).filter((word) => word && self.lunr.stopWordFilter(word.toLowerCase()) !== undefined);
  const query = (text) => text.split(/\s+/).flatMap((word) => (/[_:./-]/.test(word) ? parts(word).map((part) => "+" + part) : word)).join(" ");

  // The theme's worker adds a "*", which goes to a word that no page has.
  const forgiven = (text) => parts(text).filter((word) => word.length > 3).map((word) => word.toLowerCase() + "~1").join(" ") + " -nopagehasthisword";

  /// 0: the title is the name; 1: the section declares it, as a member or a value; 2: the title has it as a word; 3: the text has it;
  /// 4 to 7: the same in other letters' case; 8: none.
  const rank = ({ location }) => {
    const { title = "", text = "" } = docs.get(location) ?? {};
    const [, scope, member] = asked.match(/^(.+)::(\w+)$/) ?? [];
    const escaped = (name) => name.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
    const among = (flags) => {
      const word = (name) => new RegExp(`(?<!\\w)${escaped(name)}(?!\\w)`, flags);
      const ends = (name) => new RegExp(`^(.*(/|::))?${escaped(name)}$`, flags);
      if (ends(asked).test(title)) return 0;
      if (scope ? ends(scope).test(title) && word(member).test(text) : text.startsWith("enum ") && word(asked).test(text)) return 1;
      return word(asked).test(title) ? 2 : word(asked).test(text) ? 3 : 4;
    };
    const exact = among("");
    return exact < 4 ? exact : 4 + among("i");
  };
  // At the same rank, by score.
  const by = (things, rank) => { const ranks = new Map(things.map((thing) => [thing, rank(thing)])); return [...things].sort((a, b) => ranks.get(a) - ranks.get(b)); };
  const sorted = (pages) => by(pages.map((sections) => by(sections, rank)), (sections) => rank(sections[0]));

  addEventListener("message", ({ data }) => {
    if (data.data?.docs) docs = new Map(data.data.docs.map((doc) => [doc.location, doc]));
    if (data.type !== QUERY || forgiving) return;
    asked = data.data.trim().replace(/^(sdma)?::(?=.)/, ""); // pages leave the namespace out
    data.data = query(asked);
  });
  self.postMessage = (answer) => {
    const empty = answer.type === ANSWER && asked && answer.data.items.length === 0;
    if (empty && !forgiving && /~/.test(forgiven(asked))) {
      forgiving = true;
      return dispatchEvent(new MessageEvent("message", { data: { type: QUERY, data: forgiven(asked) } }));
    }
    if (answer.type === ANSWER) forgiving = false;
    if (answer.type === ANSWER && asked) answer.data.items = sorted(answer.data.items);
    post(answer);
  };
}
