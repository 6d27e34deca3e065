#include "json_lines.hpp"
#include "sdma/trace/lines.hpp"

#include <unistd.h>

#include <cerrno>

namespace sdma {
inline namespace v0 {
namespace trace {
namespace {

constexpr int kDigits = 20;  // digits of the largest 64-bit number

/// Writes all bytes, or returns false; then some of them may be in the file.
bool put(int fd, std::string_view text, std::uint64_t at) {
  while (!text.empty()) {
    const auto n = ::pwrite(fd, text.data(), text.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<std::uint64_t>(n);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

LinesWriter::LinesWriter(int fd, std::string_view clock) : fd_(fd), clock_(clock) {
  if (::ftruncate(fd_, 0) == 0) put_header();
}

bool LinesWriter::put_header() {
  text_.clear();
  detail::append_header(text_, clock_, events_, lost_, kDigits);
  if (end_ == 0) return append(text_);
  return put(fd_, text_, 0);
}

bool LinesWriter::append(std::string_view text) {
  if (put(fd_, text, end_)) {
    end_ += text.size();
    return true;
  }
  // Remove the part of the line that was written.
  [[maybe_unused]] const int cut = ::ftruncate(fd_, static_cast<off_t>(end_));
  return false;
}

bool LinesWriter::write(const Trace& names, const Event& e) {
  bool kept = end_ != 0 || put_header();
  if (kept) {
    text_.clear();
    for (auto i = lanes_; i < names.lanes.size(); ++i) detail::append_lane(text_, i, names.lanes[i]);
    for (auto i = texts_; i < names.texts.size(); ++i) detail::append_text(text_, i, names.texts[i]);
    detail::append_event(text_, e);
    kept = append(text_);
  }
  if (kept) {
    lanes_ = names.lanes.size();
    texts_ = names.texts.size();
  }
  ++(kept ? events_ : lost_);
  if (end_ != 0) put_header();
  return kept;
}

}  // namespace trace
}  // namespace v0
}  // namespace sdma
