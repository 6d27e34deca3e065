// SPDX-License-Identifier: MIT
// Assembles a stream: statements and packets in text become dwords.
#include "blocks.hpp"
#include "packet_line.hpp"
#include "sdma/stream/text.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 {
namespace {

using namespace detail;

constexpr std::string_view kScheduleWords[] = {"sdma",   "param", "choose", "gpus",   "buffer",
                                               "signal", "queue", "host",   "kernel", "expect",
                                               "submit", "set",   "wait",   "sample", "repeat"};

class Assembler final : private Blocks {
 public:
  Assembler(Lexer& lex, Names& names, Source& source, const AssembleOptions& options)
      : Blocks(lex, names, source, {options.max_rounds, options.max_text}),
        max_dwords_(options.max_dwords),
        lines_(lex, names, source, nullptr, options.generation) {}

  std::vector<std::uint32_t> run() {
    block(0);
    return std::move(out_);
  }

 private:
  bool opens(const Token& t) const noexcept override {
    return t.kind == Token::word && (t.text == "for" || t.text == "if");
  }

  bool statement(int depth) override {
    const Token t = lex_.peek();
    if (at("let")) return let();
    if (at("require")) return require();
    if (at("when")) return when(depth);
    if (at("for")) return loop(depth);
    if (at("if")) return branches(depth);
    if (at("end")) {
      lex_.skip_line();
      return fail(t.at, "'end' without 'for' or 'if'");
    }
    const std::string_view packet = depth > 0 ? "a packet or 'end'" : "a packet";
    if (t.kind == Token::word &&
        std::find(std::begin(kScheduleWords), std::end(kScheduleWords), t.text) != std::end(kScheduleWords)) {
      expected(
          packet,
          t.text == "param" ? "a stream has no parameters: use let"
          : t.text == "sdma"
              ? "this is a schedule: read it with sdma run, check, simulate or fmt"
              : "this belongs to a schedule, whose first line is 'sdma 1'; a stream has packets and let, require, for, if, when");
      lex_.skip_line();
      return false;
    }
    return lines_.parse(packet, out_, max_dwords_ - out_.size());
  }

  std::size_t max_dwords_;
  PacketLines lines_;
  std::vector<std::uint32_t> out_;
};

}  // namespace

Result<std::vector<std::uint32_t>, std::vector<Diagnostic>> assemble(std::string_view text, std::string_view file,
                                                                     const AssembleOptions& options) {
  Source source{text, file};
  Lexer lex{text};
  Names names;
  auto out = Assembler{lex, names, source, options}.run();
  if (source.count() > 0) return source.take_errors();
  return out;
}

}}  // namespace sdma::v0_3
