// SPDX-License-Identifier: MIT
#include "lines_writer.hpp"
#include "../core/write_all.hpp"
#include "json_lines.hpp"

#include <unistd.h>
#include <new>

namespace sdma { inline namespace v0_3 { namespace trace {
namespace {

constexpr int kDigits = 20;  // digits of the largest 64-bit number

}  // namespace

LinesWriter::LinesWriter(int fd, std::string_view clock) : fd_(fd), clock_(clock) { put_header(); }

bool LinesWriter::put_header() noexcept {
  try {
    text_.clear();
    detail::append_header(text_, clock_, events_, lost_, kDigits);
  } catch (const std::bad_alloc&) {
    return false;
  }
  // Nothing of the old contents may follow the new ones.
  if (end_ == 0) return ::ftruncate(fd_, 0) == 0 && append(text_);
  return sdma::detail::write_all(fd_, text_, 0) == 0;
}

bool LinesWriter::append(std::string_view text) noexcept {
  if (sdma::detail::write_all(fd_, text, end_) == 0) {
    end_ += text.size();
    return true;
  }
  // Remove the part of the line that was written.
  [[maybe_unused]] const int cut = ::ftruncate(fd_, static_cast<off_t>(end_));
  return false;
}

bool LinesWriter::put(const Trace& names, const Event& e) noexcept {
  if (end_ == 0 && !put_header()) return false;
  try {
    text_.clear();
    for (auto i = lanes_; i < names.lanes.size(); ++i) detail::append_lane(text_, i, names.lanes[i]);
    for (auto i = texts_; i < names.texts.size(); ++i) detail::append_text(text_, i, names.texts[i]);
    const auto& ranges = names.names.ranges();
    for (auto i = ranges_; i < ranges.size(); ++i) detail::append_range(text_, i, ranges[i]);
    detail::append_event(text_, e, names.names);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (!append(text_)) return false;
  lanes_ = names.lanes.size();
  texts_ = names.texts.size();
  ranges_ = names.names.ranges().size();
  return true;
}

bool LinesWriter::write(const Trace& names, const Event& e) noexcept {
  const bool kept = put(names, e);
  ++(kept ? events_ : lost_);
  if (end_ != 0) put_header();
  return kept;
}

void LinesWriter::lose() noexcept {
  ++lost_;
  if (end_ != 0) put_header();
}

}}}  // namespace sdma::v0_3::trace
