// SPDX-License-Identifier: MIT
#pragma once
// A text that describes many small files, in sections, with places for values. Internal.
//
//   [gpu]
//   vendor = 0x1002                 a file of one line
//   uevent                          a file of the lines below it, which two blanks indent: here, of two
//     MAJOR=226
//     MINOR={minor:04x}             a value; the formats are those of fmt
//   holders/                        an empty directory
//   device -> /sys/bus/{slot}       a link
//   # ...                           a remark
//
//   const FileTexts texts(kTexts);
//   texts.fill("gpu", FileValues()("minor", 128)("slot", "10:00"), [&](FileText f) { files[f.path] = f.text; });
//
// Any thread may fill. It allocates. A section that the text does not have, or a place for which there is no value, is
// a mistake in our own text: std::invalid_argument, or fmt's exception.
#include <fmt/args.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

/// FileValues by their names: texts and numbers. It copies them.
class FileValues {
 public:
  template <class T> FileValues& operator()(const char* name, const T& value) {
    store_.push_back(fmt::arg(name, value));
    return *this;
  }
  std::string filled(std::string_view text) const { return fmt::vformat(text, store_); }

 private:
  fmt::dynamic_format_arg_store<fmt::format_context> store_;
};

struct FileText {
  enum class Kind : std::uint8_t { file, directory, link };
  Kind kind{};
  std::string path{}, text{};  ///< text: of a link, its target
};

class FileTexts {
 public:
  explicit constexpr FileTexts(std::string_view text) noexcept : text_(text) {}
  /// Calls `take` for each file of a section, in the order of the text.
  void fill(std::string_view section, const FileValues&, const std::function<void(FileText)>& take) const;

 private:
  std::string_view text_;
};

}}}  // namespace sdma::v0_3::detail
