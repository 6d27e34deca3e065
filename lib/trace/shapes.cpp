// SPDX-License-Identifier: MIT
// A text becomes a template by taking out each number that comes back exactly: its slot names a word of the packet. A
// number that the packet's dwords do not hold becomes a further word.
#include "shapes.hpp"

#include "../core/append.hpp"
#include "../core/json_string.hpp"
#include "sdma/packets/poll.hpp"
#include "text.hpp"

#include <charconv>

namespace sdma::inline v0::trace::detail {
namespace {

constexpr char kSlot = '\x01';

bool is_digit(char c, bool hex) { return (c >= '0' && c <= '9') || (hex && c >= 'a' && c <= 'f'); }
bool continues_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace

/// Appends the slot of a number; false if there is no room for another word.
bool Shapes::append_slot(std::string& out, std::uint64_t value, bool hex, bool padded) {
  const auto low = static_cast<std::uint32_t>(value), high = static_cast<std::uint32_t>(value >> 32);
  const auto put = [&](char form, std::size_t word) {
    out += kSlot;
    out += form;
    out += static_cast<char>('0' + word);
    return true;
  };
  if (!padded)
    for (std::size_t i = 0; i + 1 < words_.size(); ++i)
      if (words_[i] == low && words_[i + 1] == high) return put(hex ? 'X' : 'D', i);
  const char one = padded ? 'z' : hex ? 'x' : 'd';
  if (high == 0)
    for (std::size_t i = 0; i < words_.size(); ++i)
      if (words_[i] == low) return put(one, i);
  const std::size_t at = words_.size();
  if (at + (high == 0 ? 1 : 2) > kWords) return false;
  words_.push_back(low);
  if (high == 0) return put(one, at);
  words_.push_back(high);
  return put(hex ? 'X' : 'D', at);
}

/// Appends a text with a slot for each number.
void Shapes::append_template(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (!is_digit(text[i], false) || (i != 0 && continues_word(text[i - 1]))) {
      out += text[i++];
      continue;
    }
    const bool hex = text.substr(i, 2) == "0x";
    const std::size_t from = hex ? i + 2 : i;
    std::size_t to = from;
    while (to < text.size() && is_digit(text[to], hex)) ++to;
    std::uint64_t value = 0;
    const auto read = std::from_chars(text.data() + from, text.data() + to, value, hex ? 16 : 10);
    const bool leading_zero = to - from > 1 && text[from] == '0', padded = hex && leading_zero && to - from == 8;
    const bool exact = to > from && read.ec == std::errc{} && (!leading_zero || padded);
    if (!exact || !append_slot(out, value, hex, padded)) out += text.substr(i, to - i);
    i = to;
  }
}

Shapes::Packet Shapes::add(const Bar& b, const Trace& t) {
  const auto& e = *b.begin;
  words_.assign(e.packet().begin(), e.packet().end());
  text_.clear();
  waits_.clear();
  append_template(text_, b.action() ? action_text(e, t) : packet_line(e, t.names));
  if (b.epoch != 0) append_template(text_, fmt::format("  # epoch {}", b.epoch));
  if (b.action() && e.address.value != 0) append_template(waits_, fmt::format("{:#x}", e.address.value));
  else if (const auto v = view(e); v.is<PollMem>())
    append_template(waits_, fmt::format("{:#x}", decode<PollMem>(v.dwords, *v.info).addr.value));
  const auto name = b.action() ? action_name(e, t) : packet_name(e);
  key_.clear();
  sdma::detail::append(key_, "{}\x02{}\x02{}\x02{}\x02{}\x02{}", name, b.action(), e.length, e.dword_count, text_,
                       waits_);
  const auto [found, fresh] = numbers_.try_emplace(key_, static_cast<std::uint32_t>(all_.size()));
  if (fresh) all_.push_back({std::string(name), text_, waits_, e.length, e.dword_count, b.action()});
  return {found->second, words_};
}

std::string Shapes::json() const {
  std::string out = "[";
  for (const auto& s : all_) {
    if (out.size() > 1) out += ",\n";
    out += "{\"name\":";
    out += sdma::detail::json_string(s.name);
    sdma::detail::append(out, ",\"length\":{},\"dwords\":{},\"text\":", s.length, s.dwords);
    out += sdma::detail::json_string(s.text);
    out += ",\"waits\":";
    out += sdma::detail::json_string(s.waits);
    if (s.action) out += ",\"action\":true";
    out += '}';
  }
  return out + "]";
}

}  // namespace sdma::inline v0::trace::detail
