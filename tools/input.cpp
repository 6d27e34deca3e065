// SPDX-License-Identifier: MIT
#include "input.hpp"

#include "../lib/core/words.hpp"
#include "core/plural.hpp"
#include "json/json.hpp"
#include "sdma/core/number.hpp"
#include "sdma/dump/descriptors.hpp"
#include "sdma/queue/dump.hpp"
#include "sdma/schedule/text.hpp"
#include "verb.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace sdma::tool {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kSniffed = 4096;
constexpr std::uint64_t kMostText = std::uint64_t{1} << 30;
/// A pipe that gives nothing for so long may do so for ever.
constexpr std::chrono::milliseconds kPatience{1000};

static_assert(std::endian::native == std::endian::little, "a ring's bytes are copied as they are");

/// A log may have letters of any language, colours, separators of JSON, or two bytes per letter. A ring has zeros in
/// every header.
bool is_text(std::string_view bytes) noexcept {
  if (is_wide_text(bytes)) return true;
  // journald's export form has lengths in binary between its texts.
  for (const std::string_view journal : {"__CURSOR=", "__REALTIME_TIMESTAMP="})
    if (bytes.starts_with(journal)) return true;
  std::size_t others = 0;
  for (const char c : bytes) {
    const bool high = static_cast<unsigned char>(c) >= 0x80;
    if (!(high || (c >= ' ' && c <= '~') || c == '\t' || c == '\n' || c == '\r' || c == '\033' || c == '\x1e'))
      return false;
    others += high || c == '\033';
  }
  return !bytes.empty() && others <= bytes.size() / 4;
}

/// The form of input that begins with these bytes. A new form of input is added here.
Form detect(std::string_view head) noexcept {
  if (is_dump(std::as_bytes(std::span(head.data(), head.size())))) return Form::dump;
  return is_text(head) ? Form::hex : Form::binary;
}

// A ring file of debugfs: three dwords of positions, then a power of two of dwords.
struct DebugfsHead {
  std::uint32_t rptr, wptr, driver_wptr;
};
constexpr std::size_t kDebugfsHead = sizeof(DebugfsHead) / 4, kLeastRing = 64, kMostRing = std::size_t{1} << 20;

bool is_debugfs(std::string_view all) noexcept {
  const auto dwords = all.size() / 4;
  if (all.size() % 4 != 0 || dwords < kLeastRing + kDebugfsHead || dwords > kMostRing + kDebugfsHead) return false;
  const auto ring = dwords - kDebugfsHead;
  DebugfsHead head;
  std::memcpy(&head, all.data(), sizeof head);
  return std::has_single_bit(ring) && std::max({head.rptr, head.wptr, head.driver_wptr}) < ring;
}

/// A named pipe, whose end only the one that opened it sees.
std::shared_ptr<std::FILE> open_pipe(const std::string& path) {
  struct stat is {};
  if (path == "-" || ::stat(path.c_str(), &is) != 0 || !S_ISFIFO(is.st_mode)) return nullptr;
  auto* const file = std::fopen(path.c_str(), "re");
  return file ? std::shared_ptr<std::FILE>(file, std::fclose) : nullptr;
}

bool has_string(const json::Json& j) {
  return j.is_string() || (j.is_structured() && std::any_of(j.begin(), j.end(), has_string));
}

/// JSON that no dump is. Logs of containers are an object per line, with texts, and dumps in JSON have hexadecimal
/// numbers: those are JSON only where they cannot be read.
bool is_json(std::string_view text, bool unread) {
  text = detail::trimmed(text, " \t\r\n");
  const auto line = text.substr(0, text.find('\n'));
  if (!text.starts_with('{')) return false;
  if (unread) return json::Json::accept(line) || json::Json::accept(text);
  if (text.find("0x") != text.npos || !json::Json::accept(text)) return false;
  return line.size() < text.size() || !has_string(json::Json::parse(text));
}

/// What a text is that cannot be read as a ring: a schedule, or JSON.
std::optional<Diagnostic> other_than_ring(std::string_view text, const std::string& name) {
  if (is_schedule(text))
    return Diagnostic{.where = name,
                      .message = "this is a schedule, and not a ring",
                      .hint = "sdma check, run and simulate read schedules"};
  if (!is_json(text, true)) return {};
  return Diagnostic{.where = name,
                    .message = "this is JSON, and neither a ring nor a schedule",
                    .hint =
                        "--topology reads what sdma topology --json prints, and --machine what sdma simulate "
                        "--show-machine --json prints; sdma trace reads a trace"};
}

}  // namespace

Result<TextDumps, Diagnostic> read_ring_text(std::string_view text, const std::string& name) {
  const auto begin = without_mark(text);
  auto dump = is_json(begin, false) ? Diagnostic{} : read_text_dump(text, name);
  if (dump || dump.error().rule == kLogWithoutDump) return dump;
  auto other = other_than_ring(begin, name);
  return other ? *std::move(other) : std::move(dump);
}

std::optional<std::string> beginning_of(const std::string& path) {
  constexpr std::size_t kBytes = 4096;
  std::ifstream file(path, std::ios::binary);
  if (path == "-" || !file) return {};
  std::string begin(kBytes, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(kBytes));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  return begin;
}

std::string_view without_mark(std::string_view text) noexcept {
  constexpr std::string_view kUtf8 = "\xef\xbb\xbf";
  return text.starts_with(kUtf8) ? text.substr(kUtf8.size()) : text;
}

Result<Input, Diagnostic> Input::open(const InputOptions& o) {
  // A name that nothing has is a missing file, whatever it ends with.
  const auto is_there = [&o] { return o.contents || ::access(o.path.c_str(), F_OK) == 0; };
  if (o.form == Form::automatic && !o.schedules && is_schedule_name(o.path) && is_there())
    return Diagnostic{.where = o.path,
                      .message = "this is a schedule by its name, and not a ring",
                      .hint = "sdma check, run and simulate read schedules; if it is a ring, say so: --input=hex"};
  Input in{o};
  if (o.contents) {
    in.buffer_ = *o.contents;
    in.ended_ = true;
  }
  if (o.streams) in.pipe_ = open_pipe(o.path);
  while (in.buffer_.size() < kSniffed && !in.ended_) {
    // A log of few lines may be all for a long time.
    if (o.streams && in.buffer_.ends_with('\n') && tool::is_text(in.buffer_) && !in.has_come(kPatience)) break;
    if (auto more = in.fill(); !more) return std::move(more.error());
  }
  if (o.form == Form::automatic && is_packed(in.buffer_))
    if (auto done = in.unpack(o.archives); !done) return std::move(done.error());
  in.form_ = o.form == Form::automatic ? detect(std::string_view(in.buffer_).substr(0, kSniffed)) : o.form;
  if (o.form != Form::automatic || in.form_ != Form::binary) return in;
  // Its size says whether this is debugfs' file.
  while (in.buffer_.size() <= (kMostRing + kDebugfsHead) * 4 && !in.ended_)
    if (auto more = in.fill(); !more) return std::move(more.error());
  if (in.ended_ && is_debugfs(in.buffer_)) in.form_ = Form::debugfs;
  return in;
}

std::string Input::doing() const { return fmt::format("reading {}, after {} bytes", name_, read_); }

Result<bool, Diagnostic> Input::fill() {
  const Doing reading(doing());
  const auto before = buffer_.size();
  auto more = pipe_ ? read_pipe() : file_.read(buffer_, kPiece);
  if (more && !*more) ended_ = true;
  read_ += buffer_.size() - before;
  return more;
}

Result<bool, Diagnostic> Input::read_pipe() {
  const auto before = buffer_.size();
  buffer_.resize(before + kPiece);
  ssize_t n = 0;
  do n = ::read(::fileno(pipe_.get()), buffer_.data() + before, kPiece);
  while (n < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(before + static_cast<std::size_t>(n > 0 ? n : 0));
  if (n < 0) return Diagnostic{.where = name_, .message = std::string("cannot be read: ") + std::strerror(error)};
  return n > 0;
}

/// Can more be read at once, or does the input end here?
bool Input::has_come(std::chrono::milliseconds patience) const {
  if (!pipe_ && name_ != shown("-")) return true;
  pollfd one{.fd = pipe_ ? ::fileno(pipe_.get()) : STDIN_FILENO, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, static_cast<int>(patience.count())) != 0;
}

Result<bool, Diagnostic> Input::next(std::string& to, const std::function<void()>& meanwhile) {
  if (buffer_.empty() && !ended_) {
    if (!has_come(kPatience)) {
      // From now on, what is known is worth an answer.
      if (!std::exchange(waited_, true)) keep_what_is_known();
      meanwhile();
    }
    while (interrupted == 0 && !has_come(kPatience)) {}
    if (interrupted != 0) ended_ = true;
    else if (auto more = fill(); !more) return std::move(more.error());
  }
  if (buffer_.empty()) return false;
  if (to.empty()) to.swap(buffer_);  // each keeps its memory
  else to += std::exchange(buffer_, {});
  return true;
}

/// Replaces the bytes of an archive by those of its only file; if the verb reads `all` of them, keeps them.
Result<void, Diagnostic> Input::unpack(bool all) {
  if (auto whole = read_whole(); !whole) return std::move(whole.error());
  auto members = tool::unpack_parts(buffer_, name_);
  if (!members) return std::move(members.error());
  buffer_.clear();
  if (all) return members_ = std::move(*members), Result<void, Diagnostic>{};
  if (members->rest) return std::move(*members->rest);
  if (members->members.size() != 1) {
    std::vector<std::string_view> names;
    for (const auto& m : members->members) names.push_back(m.name);
    return Diagnostic{
        .where = name_,
        .message = fmt::format("the archive has {} files, and not one: {}", names.size(), fmt::join(names, ", ")),
        .hint = "unpack it, and give one file; sdma doctor reads all files of an archive"};
  }
  buffer_ = std::move(members->members.front().bytes);
  return {};
}

std::string_view Input::beginning() const noexcept { return without_mark(buffer_); }

Result<std::string, Diagnostic> Input::whole_text() {
  if (auto whole = read_whole(); !whole) return std::move(whole.error());
  return std::string(beginning());
}

Result<bool, Diagnostic> Input::more(std::vector<std::uint32_t>& out) {
  if (finished_) return false;
  if (is_placed()) {
    auto part = pending();
    if (!part) return std::move(part.error());
    out.insert(out.end(), part->dwords.begin(), part->dwords.end());
    return !out.empty();
  }
  const auto before = out.size();
  while (out.size() == before) {
    if (finished_) return false;
    if (auto done = take_binary(out); !done) return std::move(done.error());
    taken_ += out.size() - before;
    if (taken_ > kMaxDumpDwords) return too_much(kMaxDumpDwords * 4);
    if (ended_) finished_ = true;
    else if (auto more = fill(); !more) return std::move(more.error());
  }
  return true;
}

Result<RingPart, Diagnostic> Input::pending() {
  auto r = ring();
  if (!r) return std::move(r.error());
  auto placed = place_ring(r->dwords, r->positions, name_);
  if (!placed) return std::move(placed.error());
  report(placed->notes);
  for (auto& part : placed->parts)
    if (!part.is_old()) return std::move(part);
  return RingPart{.kind = RingPartKind::pending};
}

Result<std::optional<std::string>, Diagnostic> Input::descriptors() {
  if (form_ != Form::hex) return std::optional<std::string>{};
  if (auto whole = read_whole(); !whole) return std::move(whole.error());
  return has_descriptors(buffer_) ? std::optional(std::string(beginning())) : std::nullopt;
}

/// An input without an end stops here.
Diagnostic Input::too_much(std::uint64_t limit) const {
  return {.where = name_,
          .message = "this has more than " + size_text(limit) + ", so it is not read as a dump",
          .hint = "give only the part that has packets"};
}

/// Everything, if it is not too much for a dump.
Result<void, Diagnostic> Input::read_whole() {
  const auto limit = form_ == Form::hex    ? kMostText
                     : form_ == Form::dump ? (kMaxDumpDwords + kMaxDumpLabel) * 4
                                           : kMaxDumpDwords * 4;
  while (!ended_) {
    if (buffer_.size() > limit) return too_much(limit);
    if (auto more = fill(); !more) return std::move(more.error());
  }
  return {};
}

Result<RingInput, Diagnostic> Input::ring() {
  if (auto whole = read_whole(); !whole) return std::move(whole.error());
  finished_ = true;
  auto all = form_ == Form::dump      ? read_ring_file()
             : form_ == Form::hex     ? read_text()
             : form_ == Form::debugfs ? read_debugfs()
                                      : read_binary();
  if (all) all->positions.generation = generation_;
  return all;
}

Result<RingInput, Diagnostic> Input::read_binary() {
  RingInput all;
  if (auto done = take_binary(all.dwords); !done) return std::move(done.error());
  return all;
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

Result<RingInput, Diagnostic> Input::read_ring_file() const {
  auto d = from_bytes(std::as_bytes(std::span(buffer_)), name_);
  if (!d) return std::move(d.error());
  const auto p = sdma::pending(*d, name_);
  if (!p) return p.error();
  Diagnostic note{
      .severity = Severity::note, .where = name_, .message = std::to_string(p->dwords.size()) + " dwords are pending"};
  if (!p->dwords.empty()) note.message += ", starting at byte " + std::to_string(p->ring_offset(0)) + " of the ring";
  report(note);
  return RingInput{std::move(d->dwords), {.rptr = d->read, .wptr = d->wptr}};
}

Result<RingInput, Diagnostic> Input::read_debugfs() {
  RingInput all;
  if (auto done = take_binary(all.dwords); !done) return std::move(done.error());
  if (all.dwords.size() <= kDebugfsHead)
    return Diagnostic{.where = name_,
                      .message = "a ring of debugfs has three dwords of positions, and the ring after them",
                      .hint = "--input=binary reads it as the ring's bytes"};
  DebugfsHead head;
  std::memcpy(&head, all.dwords.data(), sizeof head);
  all.positions.rptr = std::uint64_t{head.rptr} * 4;
  all.positions.wptr = std::uint64_t{head.wptr} * 4;
  all.dwords.erase(all.dwords.begin(), all.dwords.begin() + kDebugfsHead);
  report({.severity = Severity::note,
          .where = name_,
          .message = fmt::format("read as a ring file of debugfs: rptr {:#x}, wptr {:#x}, then {}", *all.positions.rptr,
                                 *all.positions.wptr, plural(all.dwords.size(), "dword")),
          .hint = "--input=binary reads it as the ring's bytes"});
  return all;
}

Diagnostic no_such_ring(std::string where, std::string_view wanted, const std::vector<std::string_view>& rings) {
  const auto found = rings.empty() || rings == std::vector<std::string_view>{""}
                         ? std::string(rings.empty() ? "no ring with a name" : "one ring, without a name")
                         : fmt::format("the {} {}", rings.size() == 1 ? "ring" : "rings", fmt::join(rings, ", "));
  return {.where = std::move(where),
          .message = "this input has " + found,
          .hint = wanted.empty() ? fmt::format("choose one: --ring={}", rings.front())
                                 : "--ring names one of them" + did_you_mean(wanted, rings)};
}

Result<RingInput, Diagnostic> Input::read_text() {
  auto text = read_ring_text(buffer_, name_);
  if (!text) return std::move(text.error());
  std::vector<std::string_view> rings;
  for (const auto& d : text->dumps) rings.push_back(d.ring);
  const auto wanted = std::find(rings.begin(), rings.end(), ring_);
  if (wanted == rings.end() && !(ring_.empty() && rings.size() == 1)) return no_such_ring(name_, ring_, rings);
  auto& d = ring_.empty() ? text->dumps.front() : text->dumps[static_cast<std::size_t>(wanted - rings.begin())];
  generation_ = chosen(given_, d.generation);
  assumed_ = !given_ && !d.generation;
  of_kernel_ = d.form.starts_with("ring ") || d.form.starts_with("umr's print of ring ");
  if (!d.form.empty())
    report({.severity = Severity::note,
            .where = name_,
            .message = "read as " + d.form + generation_text(given_, d.generation)});
  report(text->notes);
  if (d.wptr && !d.rptr)
    report({.severity = Severity::note,
            .where = name_,
            .message = fmt::format("the text marks wptr {:#x}, and no rptr: the whole ring is shown", *d.wptr)});
  if (!d.rptr) d.wptr.reset();
  // Without positions, where the text begins is an address, not a position of the ring.
  const bool placed = d.rptr || d.wptr;
  const auto offset = d.first.value_or(0);
  return RingInput{std::move(d.dwords), {.rptr = d.rptr, .wptr = d.wptr, .first = placed ? offset : 0}, offset};
}

Result<std::string, Diagnostic> read_text(const std::string& path) {
  const Doing reading("reading " + shown(path));
  auto text = read_file(path);
  if (text) text->erase(0, text->size() - without_mark(*text).size());
  return text;
}

void add_form(VerbOptions& verb, Form& form, const std::string& doc) {
  add_choice<Form>(verb, "--input", form,
                   {{"auto", Form::automatic},
                    {"binary", Form::binary},
                    {"hex", Form::hex},
                    {"dump", Form::dump},
                    {"debugfs", Form::debugfs}},
                   doc);
}

void add_input(VerbOptions& verb, InputOptions& o) {
  verb.value("FILE", o.path, "input file; - is standard input (default)");
  add_form(
      verb, o.form,
      "contents of FILE: the ring's bytes, hex text such as a log, a dump with positions, or a ring file of debugfs "
      "(default: detect)");
  verb.value("--ring", o.ring, "name of the ring, if FILE has several: sdma0").type("NAME");
}

}  // namespace sdma::tool
