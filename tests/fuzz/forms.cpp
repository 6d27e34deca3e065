// SPDX-License-Identifier: MIT
// Dwords in every form that tools print: unchanged, the text gives them back or is refused, and never other dwords;
// with edits, it is a dump or an error. The dwords begin with characters. The input: a form, how many lines of 16
// bytes, the dwords, then edits of the text: a position, and the new character.
#include "../dump/printed.hpp"
#include "sdma/dump/text.hpp"

#include <cstdlib>

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto& form = printed::forms()[data[0] % printed::forms().size()];
  printed::Dwords dwords(4u * (1 + data[1] % 16u));
  data += 2;
  size -= 2;
  const auto n = std::min(size, dwords.size() * 4);
  if (n != 0) std::memcpy(dwords.data(), data, n);
  // A column of characters shows the order of bytes only if there are characters: dots fit every order.
  for (std::size_t i = 0; i < 4; ++i) dwords[i] = 0x41424344;
  data += n;
  size -= n;
  auto text = form.print(dwords);
  const auto whole = sdma::read_text_dump(text, "fuzz");
  if (whole) require(whole->dumps.size() == 1 && whole->dumps[0].dwords == dwords);
  for (; size >= 3; data += 3, size -= 3) {
    const auto at = (data[0] | static_cast<std::size_t>(data[1]) << 8) % text.size();
    if (data[2] != '*') text[at] = static_cast<char>(data[2]);  // `*` repeats a line, perhaps a gigabyte of them
  }
  const auto edited = sdma::read_text_dump(text, "fuzz");
  if (!edited) require(!edited.error().message.empty() && edited.error().where.starts_with("fuzz"));
  else
    for (const auto& d : edited->dumps) require(d.dwords.size() <= text.size());
  return 0;
}
