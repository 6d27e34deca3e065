#include "../core/write_all.hpp"
#include "json_lines.hpp"
#include "sdma/trace/lines.hpp"

#include <unistd.h>

namespace sdma::inline v0::trace {
namespace {

constexpr int kDigits = 20;  // digits of the largest 64-bit number

}  // namespace

LinesWriter::LinesWriter(int fd, std::string_view clock) : fd_(fd), clock_(clock) {
  put_header();
}

bool LinesWriter::put_header() {
  text_.clear();
  detail::append_header(text_, clock_, events_, lost_, kDigits);
  // Nothing of the old contents may follow the new ones.
  if (end_ == 0) return ::ftruncate(fd_, 0) == 0 && append(text_);
  return sdma::detail::write_all(fd_, text_, 0) == 0;
}

bool LinesWriter::append(std::string_view text) {
  if (sdma::detail::write_all(fd_, text, end_) == 0) {
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

}  // namespace sdma::inline v0::trace
