// SPDX-License-Identifier: MIT
#pragma once
// What packets of a page have in common, so that the page holds it once. Internal.
//
//   Shapes shapes;
//   const auto p = shapes.add(bar, trace);   // p.shape: 3; p.words: the dwords, and the text's numbers not in them
//   shapes.json();           // [..., {"name":"copy_linear","length":7,"dwords":7,"text":"copy_linear bytes=..", ..}]
//
// A shape is a packet's name, its length, and its text with a slot for each number. A slot is U+0001, the form of the
// number, and the character '0' + the index of the word that holds it:
//
//   d D   decimal, of one word; of two words, the low one first
//   x X   0x and hexadecimal digits, of one word; of two words
//   z     0x and eight hexadecimal digits, of one word
//
// So a million copies between a million addresses have one shape. A number that has no room in the words, or that is
// not written in one of these forms, stays in the text: the text is exact in any case. `waits` is the address that a
// poll or a waiting host thread reads, in the same way, and "" for others. An action has no dwords; its name is its
// text up to the value.
#include "../core/append.hpp"
#include "../core/json_string.hpp"
#include "bars.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/trace/trace.hpp"
#include "text.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace trace::detail {

inline constexpr char kSlot = '\x01';
inline bool is_digit(char c, bool hex) { return (c >= '0' && c <= '9') || (hex && c >= 'a' && c <= 'f'); }
inline bool continues_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

class Shapes {
 public:
  /// At most this many words for each packet: one bit of a number that JavaScript can shift, for each.
  static constexpr std::size_t kWords = 30;
  struct Packet {
    std::uint32_t shape{};
    std::span<const std::uint32_t> words{};  ///< valid until the next call
  };

  /// The shape of a packet or an action of a trace, and its words.
  Packet add(const Bar& b, const Trace& t) {
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
  /// All shapes, as a JSON array.
  std::string json() const {
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

 private:
  struct Shape {
    std::string name{}, text{}, waits{};
    std::uint32_t length{}, dwords{};
    bool action{};
  };
  /// Appends a text with a slot for each number.
  void append_template(std::string& out, std::string_view text) {
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
  /// Appends the slot of a number; false if there is no room for another word.
  bool append_slot(std::string& out, std::uint64_t value, bool hex, bool padded) {
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

  std::vector<std::uint32_t> words_{};
  std::string text_{}, waits_{}, key_{};
  std::unordered_map<std::string, std::uint32_t> numbers_{};
  std::vector<Shape> all_{};
};

}}}  // namespace sdma::v0_3::trace::detail
