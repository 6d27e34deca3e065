// SPDX-License-Identifier: MIT
#pragma once
// The text of a dump without what terminals, editors, mail and Markdown
// have put around it. Lines stay lines, so their numbers hold.
//
//   TextDecoder d;                                          // first: quotes and marks stay, for records of a log
//   while (more(bytes)) use(d.add(bytes));                  // whole lines
//   use(d.finish());
//   auto plain = plain_text(std::move(text));               // for a dump
//
//   UTF-16, with a mark or not      decoded; a letter that is not in ASCII becomes '?'
//   byte order mark, colours        removed
//   \r without \n                   ends a line
//   no-break and invisible blanks   blanks
//   mail in quoted-printable        its characters
//   HTML with <br> or <pre>         without tags
//                                                             ---- and only for a dump:
//   > quoted, | a | table |, `code` blanks
//   TIMEZ stdout F ...              what container runtimes put before each line: blanks
//   "0x5" '0x5'                     the quotes are blanks
//   00007ff8`a1b20000               one number: a debugger's mark in the middle
//   [1, 4294967295], dtype=int32    hexadecimal, if it is certain that these are decimals
//   0x0 <repeats 41 times>          written 41 times, at most 16 Mi in all; more is left as it is, and not a dump
//
// Pure but for TextDecoder, which one thread at a time uses; allocates. Any thread may call the functions. No errors.
#include <cstdint>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Decodes a text that comes in parts, which may end anywhere: gives its whole lines. What one part shows, such as that
/// this is a page of HTML, holds for it and for all later ones.
class TextDecoder {
 public:
  std::string add(std::string_view bytes);
  /// The last line, if nothing ends it.
  std::string finish();
  /// How many bytes of a line have come.
  std::size_t waiting() const noexcept { return tail_.size(); }

 private:
  std::string decoded(std::string lines);

  enum class Letters : std::uint8_t { unknown, bytes, little, big };
  Letters letters_ = Letters::unknown;
  std::string half_{}, tail_{};  // of a letter; of a line
  bool mail_ = false, page_ = false;
};
/// `text` is decoded.
std::string plain_text(std::string text);
/// Without the colours of terminals, also if ESC was written as #033, \x1b or \033, as syslog and the kernel do.
std::string without_colours(std::string_view text);
/// Is this UTF-16, with a mark or letters of ASCII alone?
bool is_utf16(std::string_view bytes) noexcept;

}}}  // namespace sdma::v0_3::detail
