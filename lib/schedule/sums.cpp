// SPDX-License-Identifier: MIT
#include "sums.hpp"

#include "../core/same_bits.hpp"
#include "parser.hpp"
#include "sdma/core/number.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// The bits of the sum of two elements.
std::uint32_t plus(SumType t, std::uint32_t a, std::uint32_t b) noexcept {
  if (t == SumType::i32) return a + b;
  const unsigned shift = t == SumType::bf16 ? 16 : 0;
  const auto sum = same_bits<float>(a << shift) + same_bits<float>(b << shift);
  const auto bits = std::isnan(sum) ? 0x7fc0'0000u : same_bits<std::uint32_t>(sum);
  return shift == 0 ? bits : (bits + 0x7fff + (bits >> shift & 1)) >> shift;
}

template <class Element> void add_to(SumType t, std::vector<std::byte>& to, std::span<const std::byte> part) noexcept {
  for (std::size_t at = 0; at + sizeof(Element) <= to.size(); at += sizeof(Element)) {
    Element a, b;
    std::memcpy(&a, to.data() + at, sizeof a);
    std::memcpy(&b, part.data() + at, sizeof b);
    a = static_cast<Element>(plus(t, a, b));
    std::memcpy(to.data() + at, &a, sizeof a);
  }
}

}  // namespace

std::string to_text(const Schedule& s, const Schedule::Sum& sum) {
  std::string out;
  for (const auto& p : sum.parts) out += (out.empty() ? "sum(" : ", ") + range_text(s, p);
  out.append(") type=").append(name(sum.type));
  return out + (sum.any_order ? " order=free" : "");
}

std::vector<std::byte> added(const Schedule::Sum& sum,
                             const std::function<std::span<const std::byte>(const Schedule::Range&)>& bytes_of) {
  const auto first = bytes_of(sum.parts.front());
  std::vector<std::byte> out(first.begin(), first.end());
  for (std::size_t i = 1; i < sum.parts.size(); ++i)
    (sum.element() == 2 ? add_to<std::uint16_t> : add_to<std::uint32_t>)(sum.type, out, bytes_of(sum.parts[i]));
  return out;
}

std::string_view wrong_sum(const Schedule::Sum& sum, std::uint64_t bytes, const Schedule::Sum& other) noexcept {
  if (bytes % sum.element() != 0) return "the elements of the sum do not fill its bytes";
  const bool floats = sum.type != SumType::i32 && other.type != SumType::i32;
  if (floats && other && sum.type != other.type)
    return "the schedule adds f32 and bf16, but a run fills its buffers with numbers of one type";
  return {};
}

/// sum(PART, ..) type=f32 order=free, from `sum`, of so many bytes. A part is a range, one of each GPU (gpu*), or, with
/// `for`, one for each value.
std::optional<Schedule::Sum> ScheduleParser::sum(std::uint64_t bytes) {
  const Token begin = lex_.take();
  Schedule::Sum out;
  const auto one = [&] {
    const auto r = ref(true);
    const auto p = r ? part() : std::nullopt;
    return p && each_gpu(*r, [&](const Ref& of) {
             const auto some = range(of, *p);
             if (!some || !room(of.at)) return false;
             if (some->bytes != bytes && some->bytes != kLinkStride && bytes != kLinkStride)
               return fail(of.at,
                           "a part of " + size_text(some->bytes) + " bytes is added to a sum of " + size_text(bytes),
                           "the parts have the length of the sum: [0..+4K]");
             out.parts.push_back(*some);
             return true;
           });
  };
  do {
    lex_.take();  // the parenthesis or the comma
    const auto body = lex_.position();
    skip_to("for");
    const bool several = at("for");
    if (!several) lex_.go(body);
    if (!(several ? each_of(body, one) : one())) return {};
  } while (lex_.peek().is(","));
  if (!take(")")) return {};
  if (out.parts.empty()) return none(begin.at, "this sum has no parts");
  const bool good = fields("a sum", "type, order", "type", [&](const Token& t) -> std::optional<bool> {
    const Token word = lex_.take();
    const auto text = word.kind == Token::word ? expand(word) : word.text;
    if (!text) return false;
    if (t.text == "order") {
      out.any_order = *text == "free";
      return out.any_order || *text == "fixed" ||
             fail(word.at, quote(word) + " is not an order of additions", "write order=free or order=fixed");
    }
    if (t.text != "type") return {};
    const auto at = std::find(std::begin(kSumTypes), std::end(kSumTypes), *text) - std::begin(kSumTypes);
    out.type = static_cast<SumType>(at);
    return at != std::ssize(kSumTypes) ||
           fail(word.at, quote(word) + " is not a type of numbers", "write type=f32, type=bf16 or type=i32");
  });
  if (!good) return {};
  if (out.type == SumType::i32) out.any_order = false;
  if (const auto wrong = wrong_sum(out, bytes, floats_); !wrong.empty() && bytes != kLinkStride)
    return none(begin.at, std::string(wrong));
  if (out.type != SumType::i32) floats_ = out;
  return out;
}

}}}  // namespace sdma::v0_3::detail
