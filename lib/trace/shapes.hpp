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
#include "bars.hpp"
#include "sdma/trace/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sdma::inline v0::trace::detail {

class Shapes {
 public:
  /// At most this many words for each packet: one bit of a number that JavaScript can shift, for each.
  static constexpr std::size_t kWords = 30;
  struct Packet {
    std::uint32_t shape{};
    std::span<const std::uint32_t> words{};  ///< valid until the next call
  };

  /// The shape of a packet or an action of a trace, and its words.
  Packet add(const Bar&, const Trace&);
  /// All shapes, as a JSON array.
  std::string json() const;

 private:
  struct Shape {
    std::string name{}, text{}, waits{};
    std::uint32_t length{}, dwords{};
    bool action{};
  };
  void append_template(std::string& out, std::string_view text);
  bool append_slot(std::string& out, std::uint64_t value, bool hex, bool padded);

  std::vector<std::uint32_t> words_{};
  std::string text_{}, waits_{}, key_{};
  std::unordered_map<std::string, std::uint32_t> numbers_{};
  std::vector<Shape> all_{};
};

}  // namespace sdma::inline v0::trace::detail
