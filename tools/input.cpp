#include "input.hpp"

#include "sdma/dump/text.hpp"
#include "sdma/queue/dump.hpp"
#include "verb.hpp"

#include <bit>
#include <cstring>

namespace sdma::tool {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kSniffed = 4096;
constexpr std::size_t kMostText = std::size_t{1} << 32;

static_assert(std::endian::native == std::endian::little, "a ring's bytes are copied as they are");

/// A log may have letters of any language, colours, or two bytes per letter (if it begins with a byte order mark). A ring has
/// zeros in every header.
bool is_text(std::string_view bytes) noexcept {
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff")) return true;
  std::size_t others = 0;
  for (const char c : bytes) {
    const bool high = static_cast<unsigned char>(c) >= 0x80;
    if (!(high || (c >= ' ' && c <= '~') || c == '\t' || c == '\n' || c == '\r' || c == '\033')) return false;
    others += high || c == '\033';
  }
  return !bytes.empty() && others <= bytes.size() / 4;
}

/// The form of input that begins with these bytes. A new form of input is added here.
Form detect(std::string_view head) noexcept {
  if (is_dump(std::as_bytes(std::span(head)))) return Form::dump;
  return is_text(head) ? Form::hex : Form::binary;
}

}  // namespace

std::string_view without_mark(std::string_view text) noexcept {
  constexpr std::string_view kUtf8 = "\xef\xbb\xbf";
  return text.starts_with(kUtf8) ? text.substr(kUtf8.size()) : text;
}

Result<Input, Diagnostic> Input::open(const std::string& path, Form form) {
  Input in{path};
  while (in.buffer_.size() < kSniffed && !in.ended_)
    if (auto more = in.fill(); !more) return std::move(more.error());
  in.form_ = form == Form::automatic ? detect(std::string_view(in.buffer_).substr(0, kSniffed)) : form;
  return in;
}

Result<bool, Diagnostic> Input::fill() {
  auto more = file_.read(buffer_, kPiece);
  if (more && !*more) ended_ = true;
  return more;
}

std::string_view Input::beginning() const noexcept { return without_mark(buffer_); }

Result<std::string, Diagnostic> Input::whole_text() {
  while (!ended_)
    if (auto more = fill(); !more) return std::move(more.error());
  return std::string(beginning());
}

Result<bool, Diagnostic> Input::more(std::vector<std::uint32_t>& out) {
  const auto before = out.size();
  while (out.size() == before) {
    if (finished_) return false;
    auto done = form_ == Form::hex ? take_text(out) : form_ == Form::dump ? take_dump(out) : take_binary(out);
    if (!done) return std::move(done.error());
    if (ended_) finished_ = true;
    else if (auto more = fill(); !more) return std::move(more.error());
  }
  return true;
}

Result<void, Diagnostic> Input::take_binary(std::vector<std::uint32_t>& out) {
  const auto n = buffer_.size() / 4, before = out.size();
  out.resize(before + n);
  if (n > 0) std::memcpy(out.data() + before, buffer_.data(), n * 4);
  buffer_.erase(0, n * 4);
  if (ended_ && !buffer_.empty())
    return Diagnostic{
        .where = name_,
        .message = "the size is not a multiple of 4 bytes: " + std::to_string(buffer_.size()) + " left over at the end",
        .hint = "a ring consists of whole dwords; if this is text, use --input=hex"};
  return {};
}

Result<void, Diagnostic> Input::take_dump(std::vector<std::uint32_t>& out) {
  // The positions come before the dwords, so a dump is read whole; its size is limited.
  if (buffer_.size() > (kMaxDumpDwords + kMaxDumpLabel) * 4)
    return Diagnostic{.rule = "dump", .where = name_, .message = "this is larger than 1 GiB, so it is not a ring dump"};
  if (!ended_) return {};
  const auto d = from_bytes(std::as_bytes(std::span(buffer_)), name_);
  if (!d) return d.error();
  const auto p = pending(*d, name_);
  if (!p) return p.error();
  out.insert(out.end(), p->dwords.begin(), p->dwords.end());
  Diagnostic note{
      .severity = Severity::note, .where = name_, .message = std::to_string(p->dwords.size()) + " dwords are pending"};
  if (!p->dwords.empty()) note.message += ", starting at byte " + std::to_string(p->ring_offset(0)) + " of the ring";
  report(note);
  return {};
}

Result<void, Diagnostic> Input::take_text(std::vector<std::uint32_t>& out) {
  if (buffer_.size() > kMostText)
    return Diagnostic{.where = name_,
                      .message = "a text of more than 4 GiB is not read",
                      .hint = "give only the part that has packets"};
  // The layout of a dump is found from the whole text.
  if (!ended_) return {};
  auto text = read_text_dump(buffer_, name_);
  if (!text) return std::move(text.error());
  if (text->dumps.size() > 1) {
    std::string rings;
    for (const auto& d : text->dumps) rings += (rings.empty() ? "" : ", ") + d.ring;
    return Diagnostic{.where = name_,
                      .message = "this text has the rings " + rings,
                      .hint = "give the lines of one ring: from its `ring name:` to the next"};
  }
  const auto& d = text->dumps.front();
  if (!d.form.empty()) report({.severity = Severity::note, .where = name_, .message = "read as " + d.form});
  for (const auto& n : text->notes) report(n);
  out.insert(out.end(), d.dwords.begin(), d.dwords.end());
  return {};
}

Result<std::string, Diagnostic> read_text(const std::string& path) {
  auto text = read_file(path);
  if (text) text->erase(0, text->size() - without_mark(*text).size());
  return text;
}

void add_input(VerbOptions& verb, InputOptions& o) {
  verb.value("FILE", o.path, "input file; - is standard input").shown("-");
  add_choice<Form>(
      verb, "--input", o.form,
      {{"auto", Form::automatic}, {"binary", Form::binary}, {"hex", Form::hex}, {"dump", Form::dump}},
      "contents of FILE: the ring's bytes, hex text such as a log, or a dump with positions (default: detect)");
}

}  // namespace sdma::tool
