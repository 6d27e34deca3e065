#pragma once
// Where a verb's dwords come from: a file or standard input, as the bytes of a ring, as hex text, or as a dump of a ring.
//
//   auto in = Input::open("ring.bin", Form::automatic);       // an error says what could not be opened, and why
//   for_each_piece(*in, [&](std::span<const std::uint32_t> dwords, bool last) { return dwords_used; });
//
// Read once, a MiB at a time; what a piece leaves unused stands in front of the next, so that memory is bounded by the
// longest packet. automatic: what begins as a dump of a ring is one, what holds printable characters only is hex text,
// everything else the ring's bytes. Of a dump (sdma/queue/dump.hpp) these are the dwords from read to wptr, in order; a note
// says where the first of them lies.
#include "hex_text.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace sdma::tool {

enum class Form { automatic, binary, hex, dump };

class Input {
 public:
  static Result<Input, Diagnostic> open(const std::string& path, Form);
  Input(Input&&) noexcept;
  Input& operator=(Input&&) = delete;
  ~Input();

  /// What diagnostics call it.
  const std::string& name() const noexcept { return name_; }
  /// What it begins with, without the mark of UTF-8: by this one sees what it is.
  std::string_view beginning() const noexcept;
  /// All of it as text, before any dwords were taken.
  Result<std::string, Diagnostic> whole_text();
  /// Appends dwords, at least one; false at the end.
  Result<bool, Diagnostic> more(std::vector<std::uint32_t>&);

 private:
  Input(int fd, std::string name) : fd_(fd), name_(name), text_(std::move(name)) {}
  Result<bool, Diagnostic> fill();
  Result<void, Diagnostic> take_binary(std::vector<std::uint32_t>&);
  Result<void, Diagnostic> take_dump(std::vector<std::uint32_t>&);
  Result<void, Diagnostic> take_text(std::vector<std::uint32_t>&);

  int fd_;
  std::string name_, buffer_;
  Form form_ = Form::binary;
  bool ended_ = false, finished_ = false;
  HexText text_;
};

/// A whole file as text, without the mark that some editors set in front of UTF-8; "-" is standard input.
Result<std::string, Diagnostic> read_text(const std::string& path);
/// The same, as the bytes that it holds.
Result<std::string, Diagnostic> read_bytes(const std::string& path);

/// Gives `consume(dwords, last)` all dwords, piece by piece; it returns how many it used (with `last`: all).
template <class Fn> Result<void, Diagnostic> for_each_piece(Input& in, Fn consume) {
  std::vector<std::uint32_t> kept;
  for (bool last = false; !last;) {
    auto more = in.more(kept);
    if (!more) return std::move(more.error());
    last = !*more;
    const auto used = consume(std::span<const std::uint32_t>(kept), last);
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(used));
  }
  return {};
}

/// FILE and --input, which every verb that reads a ring has.
struct InputOptions {
  std::string path = "-";
  Form form = Form::automatic;
};
void add_input(CLI::App&, InputOptions&);

}  // namespace sdma::tool
