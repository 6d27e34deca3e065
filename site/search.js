// SPDX-License-Identifier: MIT
// Goes before the theme's search worker, so that it finds names such as copy_linear, Errc::no_space, ring.hpp and --stalled-for.
//
// The index has their parts. A query keeps them whole, and takes a colon or a minus as its own syntax. So a name becomes its parts, all of
// which are required; and pages that have the name as it was typed come first: as their title, in it, in the text.
"use strict";
{
  const QUERY = 2, ANSWER = 3, post = self.postMessage.bind(self);
  let docs = new Map(), asked = "";

  const parts = (name) => name.split(/[^\p{L}\p{N}]+/u).filter((word) => word && self.lunr.stopWordFilter(word.toLowerCase()) !== undefined);
  const query = (text) => text.split(/\s+/).flatMap((word) => (/[_:./-]/.test(word) ? parts(word).map((part) => "+" + part) : word)).join(" ");

  /// 0: the title is the name; 1: the title has it as a word; 2: the text has it; 3 to 5: the same in other letters' case; 6: none.
  const rank = ({ location }) => {
    const { title = "", text = "" } = docs.get(location) ?? {};
    const name = asked.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
    const among = (flags) => {
      const word = new RegExp(`(?<!\\w)${name}(?!\\w)`, flags);
      return new RegExp(`^(.*(/|::))?${name}$`, flags).test(title) ? 0 : word.test(title) ? 1 : word.test(text) ? 2 : 3;
    };
    const exact = among("");
    return exact < 3 ? exact : 3 + among("i");
  };
  const sorted = (items) => {
    const best = new Map(items.map((sections) => [sections, Math.min(...sections.map(rank))]));
    return [...items].sort((a, b) => best.get(a) - best.get(b)); // stable: at the same rank, by score
  };

  addEventListener("message", ({ data }) => {
    if (data.data?.docs) docs = new Map(data.data.docs.map((doc) => [doc.location, doc]));
    if (data.type !== QUERY) return;
    asked = data.data.trim();
    data.data = query(asked);
  });
  self.postMessage = (answer) => {
    if (answer.type === ANSWER && asked) answer.data.items = sorted(answer.data.items);
    post(answer);
  };
}
