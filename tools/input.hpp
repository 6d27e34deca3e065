// SPDX-License-Identifier: MIT
#pragma once
// The source of a verb's dwords: a file or standard input, as the bytes of a ring, as hex text, or as a ring dump.
//
//   auto in = Input::open({.path = "ring.bin"});              // an error says what cannot be opened, and why
//   for_each_piece(*in, [&](std::span<const std::uint32_t> dwords, bool last) { return dwords_used; });
//
// The bytes of a ring are read once, 1 MiB at a time, after the first 4 MiB. Dwords that a piece leaves unused are put
// before the next piece, so memory is bounded by the longest packet. A text (sdma/dump/text.hpp) and a ring dump
// (sdma/queue/dump.hpp) are read whole: at most 4 GiB of text. Form::automatic: input that begins like a ring dump is
// one, input of printable characters is text, and anything else is the bytes of a ring. debugfs' amdgpu_ring_sdma*,
// which umr keeps as `.ring` too, has three dwords before its ring: rptr, wptr and the driver's wptr. Its size, a
// power of two and 12 bytes, tells. A compressed file, or a tar of one file, is unpacked in memory (archive.hpp); only
// `members` gives those of a larger archive. If a dump has positions, `more` gives the dwords from rptr to wptr, in
// order; a note says where the first of them is. Notes say what a text was taken for.
#include "archive.hpp"
#include "generation.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/file.hpp"
#include "sdma/core/result.hpp"
#include "sdma/dump/place.hpp"
#include "sdma/dump/text.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma::tool {

class VerbOptions;

enum class Form { automatic, binary, hex, dump, debugfs };

/// The dumps in a text; an error says if it is a schedule or JSON.
Result<TextDumps, Diagnostic> read_ring_text(std::string_view text, const std::string& name);
/// The first bytes of a file that a verb could not read otherwise, enough to say what it is; nothing for "-", and for
/// one that cannot be opened.
std::optional<std::string> beginning_of(const std::string& path);
/// A text without its UTF-8 byte order mark.
std::string_view without_mark(std::string_view) noexcept;

/// All dwords of a dump, and where the engine and the producer stand.
struct RingInput {
  std::vector<std::uint32_t> dwords{};
  RingPositions positions{};
  std::uint64_t offset = 0;  ///< what a text prints before its first dword
};

/// FILE, --input and --ring: options of every verb that reads a ring.
struct InputOptions {
  std::string path = "-";
  Form form = Form::automatic;
  std::string ring{};                      ///< its name, if a text has several; empty: the only one
  bool schedules = false;                  ///< the verb reads schedules too: a file that is called one is not an error
  std::optional<Generation> generation{};  ///< that of an option; otherwise, the dump's
  std::optional<std::string> contents{};   ///< what the file holds, if it was read already
  bool archives = false;                   ///< the verb reads all files of an archive
  bool streams = false;                    ///< the verb reads a text as it comes, by `next`
};
void add_input(VerbOptions&, InputOptions&);
/// --input alone.
void add_form(VerbOptions&, Form&, const std::string& doc);

class Input {
 public:
  static Result<Input, Diagnostic> open(const InputOptions&);

  /// Its name in diagnostics.
  const std::string& name() const noexcept { return name_; }
  /// The files of an archive, if InputOptions::archives is set and this is one. Call it once.
  std::optional<Unpacked> members() noexcept { return std::exchange(members_, std::nullopt); }
  /// The beginning, without a byte order mark: enough to detect the form.
  std::string_view beginning() const noexcept;
  /// The whole input as text. Call it before any dwords were taken.
  Result<std::string, Diagnostic> whole_text();
  /// Appends what has come of a text, and forgets it; false at its end. If a pipe or a terminal gives nothing for a
  /// while, `meanwhile` is called once, and Ctrl-C ends the text.
  Result<bool, Diagnostic> next(std::string& to, const std::function<void()>& meanwhile);
  /// Does it have positions, or a layout that had to be found? Then `ring` gives more than `more` does.
  bool is_placed() const noexcept { return form_ != Form::binary; }
  /// The whole input if it is a text with descriptors of queues (sdma/dump/descriptors.hpp); nothing if it is not.
  Result<std::optional<std::string>, Diagnostic> descriptors();
  /// Is it known to be a ring of the kernel: by debugfs, a devcoredump or umr? Known once the input was read.
  bool of_kernel() const noexcept { return of_kernel_ || form_ == Form::debugfs; }
  /// Is it text, of whatever kind?
  bool is_text() const noexcept { return form_ == Form::hex; }
  /// "reading ring.bin, after 4096 bytes"
  std::string doing() const;
  /// The whole input with its positions and its generation. Call it before any dwords were taken.
  Result<RingInput, Diagnostic> ring();
  /// The pending part of a dump, which may be empty; without positions, the whole dump. Call it before taking dwords.
  Result<RingPart, Diagnostic> pending();
  /// Whose packets these are, once the input was read.
  Generation generation() const noexcept { return generation_; }
  /// Neither an option nor the input says which generation it is.
  bool generation_assumed() const noexcept { return assumed_; }
  /// Appends at least one dword; false at the end. If a dump has positions, it gives the pending dwords.
  /// Diagnostics: more than a dump has (kMaxDumpDwords), which an input without an end reaches, too.
  Result<bool, Diagnostic> more(std::vector<std::uint32_t>&);

 private:
  explicit Input(const InputOptions& o)
      : file_(o.path),
        name_(shown(o.path)),
        ring_(o.ring),
        given_(o.generation),
        generation_(chosen(o.generation)),
        assumed_(!o.generation) {}
  Result<bool, Diagnostic> fill();
  Result<bool, Diagnostic> read_pipe();
  bool has_come(std::chrono::milliseconds patience) const;
  Result<void, Diagnostic> unpack(bool all);
  Result<void, Diagnostic> read_whole();
  Diagnostic too_much(std::uint64_t limit) const;
  Result<void, Diagnostic> take_binary(std::vector<std::uint32_t>&);
  Result<RingInput, Diagnostic> read_ring_file() const;
  Result<RingInput, Diagnostic> read_text();
  Result<RingInput, Diagnostic> read_binary();
  Result<RingInput, Diagnostic> read_debugfs();

  FileReader file_;
  std::shared_ptr<std::FILE> pipe_{};  // a named one, instead of file_
  std::string name_, ring_, buffer_;
  std::optional<Unpacked> members_{};
  Form form_ = Form::binary;
  std::optional<Generation> given_;
  Generation generation_;
  bool assumed_;
  bool ended_ = false, finished_ = false, waited_ = false, of_kernel_ = false;
  std::uint64_t taken_ = 0;  ///< dwords that `more` has given
  std::uint64_t read_ = 0;   ///< bytes of the file
};

/// A whole file as text, without a UTF-8 byte order mark; "-" is standard input.
Result<std::string, Diagnostic> read_text(const std::string& path);

/// That an input has other rings than the wanted one; "": it has several, and none is chosen.
Diagnostic no_such_ring(std::string where, std::string_view wanted, const std::vector<std::string_view>& rings);

/// Passes all dwords to `consume(dwords, last)`, piece by piece. It returns how many it used; with `last`, all.
template <class Fn> Result<void, Diagnostic> for_each_piece(Input& in, Fn consume) {
  std::vector<std::uint32_t> kept;
  Doing reading(in.doing());
  for (bool last = false; !last;) {
    auto more = in.more(kept);
    if (!more) return std::move(more.error());
    last = !*more;
    const auto used = consume(std::span<const std::uint32_t>(kept), last);
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(used));
    reading.now(in.doing());
  }
  return {};
}

}  // namespace sdma::tool
