// SPDX-License-Identifier: MIT
#include "sdma/dump/descriptors.hpp"

#include "line.hpp"
#include "sdma/packets/encode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr std::string_view kProcess = "Process ", kNode = "Node ", kGpu = "gpu_id ", kQueue = "SDMA queue on device ",
                           kEngine = "SDMA Engine ", kSlot = "RLC ";
/// Headings of queues of other engines.
constexpr std::string_view kOthers[] = {"CP queue on device ", "Compute queue on device ", "CP Pipe ", "HIQ on "};

struct DescriptorField {
  FieldInfo bits;
  std::uint64_t unit = 1;  ///< what the field's number counts, in the unit of the value
  bool halves_swapped = false;
  bool power = false;  ///< the field stores a logarithm
};
constexpr DescriptorField field(std::string_view name, int dword, int lo, int hi, Kind kind, std::string_view doc) {
  DescriptorField f;
  f.bits.name = name;
  f.bits.doc = doc;
  f.bits.dword = static_cast<std::uint8_t>(dword);
  f.bits.lo = static_cast<std::uint8_t>(lo);
  f.bits.hi = static_cast<std::uint8_t>(hi);
  f.bits.kind = kind;
  return f;
}
constexpr DescriptorField times(std::uint64_t unit, DescriptorField f) { return f.unit = unit, f; }
constexpr DescriptorField swapped(DescriptorField f) { return f.halves_swapped = true, f; }
constexpr DescriptorField power(DescriptorField f) { return f.power = true, f; }

constexpr std::array kDescriptorFields{
    times(256, field("ring_base", 1, 0, 63, Kind::address, "VA of the ring")),
    times(4, power(field("ring_bytes", 0, 1, 5, Kind::bytes, "size of the ring"))),
    field("rptr", 3, 0, 63, Kind::hex, "how far the engine has read, in bytes"),
    field("wptr", 5, 0, 63, Kind::hex, "how far the producer has published, in bytes"),
    swapped(field("rptr_va", 8, 0, 63, Kind::address, "where the engine stores rptr")),
    field("ib_base", 13, 0, 63, Kind::address, "VA of the indirect buffer that it executes; 0: none"),
    field("ib_dwords", 15, 0, 31, Kind::count, "size of that buffer"),
    field("ib_rptr", 11, 0, 31, Kind::hex, "how far the engine has read in it"),
    field("ib_offset", 12, 0, 31, Kind::hex, "where in it the engine began"),
    field("engine", 126, 0, 31, Kind::count, "the engine"),
    field("queue", 127, 0, 31, Kind::count, "the queue of that engine"),
};

std::optional<std::uint64_t> value_in(const QueueDescriptor& d, const DescriptorField& f) {
  if (f.bits.dword + f.bits.hi / 32u >= d.dwords.size()) return {};
  const auto* from = d.dwords.data();
  std::array<std::uint32_t, 2> halves;
  auto bits = f.bits;
  if (f.halves_swapped) {
    halves = {from[bits.dword + 1u], from[bits.dword]};
    from = halves.data();
    bits.dword = 0;
  }
  const auto v = value_of(bits, from);
  return (f.power ? std::uint64_t{1} << v : v) * f.unit;
}

constexpr std::size_t kDescriptorDwords = 128;

bool put_value(std::vector<std::uint32_t>& dwords, const DescriptorField& f, std::uint64_t value) {
  if (value % f.unit != 0) return false;
  auto v = value / f.unit;
  if (f.power) {
    if (!std::has_single_bit(v)) return false;
    v = static_cast<std::uint64_t>(std::countr_zero(v));
  }
  if (v > f.bits.mask()) return false;
  store(f.bits, v, dwords.data());
  if (f.halves_swapped) std::swap(dwords[f.bits.dword], dwords[f.bits.dword + 1u]);
  return true;
}

std::optional<std::uint32_t> number_after(std::string_view line, std::string_view key, unsigned radix) noexcept {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return {};
  auto rest = line.substr(at + key.size());
  rest = rest.substr(0, rest.find_first_not_of("0123456789abcdefABCDEF"));
  std::uint64_t v = 0;
  if (rest.empty() || rest.size() > 10 || !detail::number_in(rest, radix, v)) return {};
  return static_cast<std::uint32_t>(v);
}

enum class Heading { none, sdma, other };

/// What a line, without its time stamp, is the heading of.
Heading heading(std::string_view line) noexcept {
  const auto has = [&](std::string_view s) { return line.find(s) != line.npos; };
  if (std::any_of(std::begin(kOthers), std::end(kOthers), has)) return Heading::other;
  return has(kQueue) || (has(kEngine) && has(kSlot)) ? Heading::sdma : Heading::none;
}

std::string heading_of(const QueueDescriptor& d) {
  std::string s = d.registers ? "registers of an sDMA queue" : "descriptor of an sDMA queue";
  if (d.device) s += fmt::format(", gpu_id {:x}", *d.device);
  if (d.process) s += fmt::format(", process {}", *d.process);
  if (const auto e = d.engine()) s += fmt::format(", engine {}", *e);
  if (const auto q = d.queue()) s += fmt::format(", queue {}", *q);
  return s;
}
std::string shown_value(const DescriptorField& f, std::uint64_t v) {
  return f.bits.kind == Kind::count || f.bits.kind == Kind::bytes ? fmt::to_string(v) : fmt::format("0x{:x}", v);
}

/// Takes the lines one after another.
class DescriptorReader {
 public:
  explicit DescriptorReader(std::string_view name) : name_(name) {}

  std::optional<Diagnostic> line(std::string_view raw, std::size_t number) {
    const auto text = detail::without_stamp(raw);
    if (const auto p = number_after(text, kProcess, 10)) process_ = p;
    if (const auto g = text.find(kNode) != text.npos ? number_after(text, kGpu, 16) : std::nullopt) device_ = g;
    const auto begins = heading(text);
    if (begins == Heading::other) {
      ++found_.others;
      open_ = false;
    } else if (begins == Heading::sdma) {
      const bool registers = text.find(kQueue) == text.npos;
      found_.queues.push_back({.registers = registers,
                               .process = registers ? std::nullopt : process_,
                               .device = registers ? device_ : number_after(text, kQueue, 16),
                               .named_engine = number_after(text, kEngine, 10),
                               .named_queue = registers ? number_after(text, kSlot, 10) : std::nullopt,
                               .line = number});
      open_ = true;
      next_.reset();
    } else if (open_) {
      return dwords(text, number);
    }
    return {};
  }

  Result<QueueDescriptors, Diagnostic> take() {
    for (const auto& d : found_.queues)
      if (d.dwords.empty())
        return wrong(d.line, "no dwords follow this heading", "give the lines below it too: `offset: dwords`");
    return std::move(found_);
  }

 private:
  std::optional<Diagnostic> dwords(std::string_view text, std::size_t number) {
    const auto l = detail::parse_line(text);
    if (l.cells.size() < 2 || l.marked() != 1 || !l.label.empty()) {
      if (!detail::is_blank(text)) open_ = false;
      return {};
    }
    auto& d = found_.queues.back();
    std::uint64_t at = 0;
    if (!detail::number_in(l.cells[0].without_prefix(), 16, at)) return wrong(number, "the offset is not a number", "");
    if (next_ && at != *next_) {
      // The driver leaves out registers, but no part of a descriptor.
      if (d.registers) return open_ = false, std::nullopt;
      return wrong(number, fmt::format("the offset is 0x{:x} after 0x{:x}: a line is missing", at, *next_ - 4),
                   "give all lines of the descriptor");
    }
    for (std::size_t i = 1; i < l.cells.size(); ++i) {
      const auto& c = l.cells[i];
      if (c.digits != 8) return wrong(number, fmt::format("'{}' is not a dword of 8 digits", c.text), "");
      d.dwords.push_back(static_cast<std::uint32_t>(c.value));
    }
    next_ = at + 4 * (l.cells.size() - 1);
    return {};
  }
  Diagnostic wrong(std::size_t line, std::string message, std::string hint) const {
    auto d = error_at({.file = std::string(name_), .line = line}, std::move(message), std::move(hint));
    d.rule = "dump";
    return d;
  }

  std::string_view name_;
  QueueDescriptors found_;
  std::optional<std::uint32_t> process_{}, device_{};
  std::optional<std::uint64_t> next_{};
  bool open_ = false;
};

}  // namespace

std::optional<std::uint64_t> QueueDescriptor::value(std::string_view name) const {
  for (const auto& f : kDescriptorFields)
    if (f.bits.name == name) return value_in(*this, f);
  return {};
}

bool QueueDescriptor::set(std::string_view name, std::uint64_t v) {
  if (dwords.size() < kDescriptorDwords) dwords.resize(kDescriptorDwords);
  for (const auto& f : kDescriptorFields)
    if (f.bits.name == name) return put_value(dwords, f, v);
  return false;
}

std::optional<std::uint64_t> QueueDescriptor::engine() const {
  if (named_engine) return *named_engine;
  return value("engine");
}
std::optional<std::uint64_t> QueueDescriptor::queue() const {
  if (named_queue) return *named_queue;
  return value("queue");
}

bool has_descriptors(std::string_view text) noexcept {
  bool any = false;
  detail::each_line(text, 1, [&](std::string_view line, std::size_t) {
    return !(any = heading(detail::without_stamp(line)) == Heading::sdma);
  });
  return any;
}

Result<QueueDescriptors, Diagnostic> read_descriptors(std::string_view text, std::string_view name) {
  DescriptorReader reader{name};
  std::optional<Diagnostic> wrong;
  detail::each_line(text, 1, [&](std::string_view line, std::size_t n) { return !(wrong = reader.line(line, n)); });
  if (wrong) return std::move(*wrong);
  return reader.take();
}

std::string to_debugfs(const QueueDescriptors& all) {
  constexpr std::size_t kLine = 8;
  constexpr std::uint32_t kFirstPasid = 0x8000;
  std::string out;
  std::optional<std::uint32_t> process;
  for (const auto& d : all.queues) {
    if (d.process && d.process != process)
      out += fmt::format("{}{} PASID {}:\n", kProcess, *d.process, kFirstPasid + *d.process % kFirstPasid);
    process = d.process;
    out += fmt::format("  {}{:x}\n", kQueue, d.device.value_or(0));
    for (std::size_t i = 0; i < d.dwords.size(); ++i)
      out += i % kLine == 0 ? fmt::format("{}    {:08x}: {:08x}", i == 0 ? "" : "\n", 4 * i, d.dwords[i])
                            : fmt::format(" {:08x}", d.dwords[i]);
    out += '\n';
  }
  return out;
}

std::string to_text(const QueueDescriptors& all) {
  std::string out;
  for (const auto& d : all.queues) {
    out += fmt::format("{}\n", heading_of(d));
    for (const auto& f : kDescriptorFields)
      if (const auto v = value_in(d, f))
        out += fmt::format("  {:<11} {:<18} {}\n", f.bits.name, shown_value(f, *v), f.bits.doc);
  }
  return out;
}

std::string to_json(const QueueDescriptors& all) {
  std::string out;
  for (const auto& d : all.queues) {
    out += fmt::format(R"({{"descriptor":"{}")", d.registers ? "registers" : "memory");
    if (d.process) out += fmt::format(R"(,"process":{})", *d.process);
    if (d.device) out += fmt::format(R"(,"gpu_id":{})", *d.device);
    out += ",\"fields\":{";
    bool first = true;
    for (const auto& f : kDescriptorFields) {
      const auto v = f.bits.name == "engine" ? d.engine() : f.bits.name == "queue" ? d.queue() : value_in(d, f);
      if (!v) continue;
      const bool number = f.bits.kind == Kind::count || f.bits.kind == Kind::bytes;
      out += fmt::format(R"({}"{}":{}{}{})", first ? "" : ",", f.bits.name, number ? "" : "\"", shown_value(f, *v),
                         number ? "" : "\"");
      first = false;
    }
    out += "}}\n";
  }
  return out;
}

}}  // namespace sdma::v0_3
