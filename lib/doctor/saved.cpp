// SPDX-License-Identifier: MIT
// A snapshot as JSON. One list of the fields of each struct serves both directions.
#include "../core/json.hpp"
#include "sdma/doctor/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <type_traits>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

using detail::Json;

constexpr std::string_view kSnapshotHead = "{\"sdma_snapshot\":1,";

/// The last enumerator of each enumeration that a snapshot has.
template <class E> constexpr E kLast{};
template <> constexpr Source kLast<Source> = Source::node;
template <> constexpr Generation kLast<Generation> = Generation::v7_1;
template <> constexpr Range::Kind kLast<Range::Kind> = Range::Kind::doorbell;
template <> constexpr Compare kLast<Compare> = Compare::gt;
template <> constexpr FaultKind kLast<FaultKind> = FaultKind::reset;

template <class T>
concept Unit = std::same_as<T, GpuVa> || std::same_as<T, GpuId> || std::same_as<T, EngineId>;
template <class T, class U>
concept Like = std::same_as<std::remove_const_t<T>, U>;

template <class F> void fields(F& f, Like<Fault> auto& x) {
  f("kind", x.kind), f("anonymous", x.anonymous), f("position", x.position), f("va", x.va);
}
template <class F> void fields(F& f, Like<QueueSnapshot> auto& q) {
  f("name", q.name), f("id", q.id), f("process", q.process), f("gpu", q.gpu), f("engine", q.engine),
      f("generation", q.generation);
  f("rptr", q.rptr), f("wptr", q.wptr), f("rptr_first", q.rptr_first), f("positions_wrap", q.positions_wrap);
  f("doorbell", q.doorbell), f("committed", q.committed), f("reserved", q.reserved);
  f("exceptions", q.exceptions), f("fault", q.fault), f("fault_text", q.fault_text), f("destroyed", q.destroyed);
  f("engines", q.engines), f("host_atomics", q.host_atomics), f("first", q.first), f("part", q.part);
  f("ring_va", q.ring_va), f("ring_bytes", q.ring_bytes), f("ring", q.ring);
}
template <class F> void fields(F& f, Like<Range> auto& r) {
  f("va", r.va), f("bytes", r.bytes), f("name", r.name), f("kind", r.kind), f("gpu", r.gpu);
}
template <class F> void fields(F& f, Like<HostWait> auto& w) {
  f("name", w.name), f("signal", w.signal), f("func", w.func), f("reference", w.reference), f("bytes", w.bytes);
  f("asleep", w.asleep);
}
template <class F> void fields(F& f, Like<LogOrigin> auto& o) {
  f("host", o.host), f("boot", o.boot), f("start", o.start), f("words", o.words);
}
template <class F> void fields(F& f, Like<PageFault> auto& p) {
  f("page", p.page), f("gpu", p.gpu), f("device", p.device), f("process", p.process), f("program", p.program);
  f("seconds", p.seconds), f("hub", p.hub), f("client", p.client), f("die", p.die), f("vmid", p.vmid);
  f("pasid", p.pasid), f("status", p.status), f("write", p.write), f("reports", p.reports), f("copy", p.copy);
  f("from", p.from), f("origin", p.origin);
}
template <class F> void fields(F& f, Like<LogEvent> auto& e) {
  f("seconds", e.seconds), f("device", e.device), f("ring", e.ring), f("engine", e.engine), f("queue", e.queue);
  f("process", e.process), f("program", e.program), f("pasid", e.pasid), f("doorbell", e.doorbell);
  f("address", e.address), f("said", e.said), f("means", e.means), f("to_do", e.to_do), f("reports", e.reports);
  f("from", e.from), f("origin", e.origin);
}
template <class F> void fields(F& f, Like<HostPost> auto& p) {
  f("signal", p.signal), f("value", p.value), f("happened", p.happened);
}
template <class F> void fields(F& f, Like<MovingWord> auto& w) {
  f("va", w.va), f("first", w.first), f("last", w.last), f("changes", w.changes), f("looks", w.looks);
}
template <class F> void fields(F& f, Like<SharedRange> auto& r) {
  f("process", r.process), f("va", r.va), f("bytes", r.bytes), f("at", r.at);
}
template <class F> void fields(F& f, Like<Snapshot> auto& s) {
  f("from", s.from), f("queues", s.queues), f("words", s.words), f("ranges", s.ranges);
  f("ranges_complete", s.ranges_complete), f("page_faults", s.page_faults), f("events", s.events), f("waits", s.waits),
      f("posts", s.posts);
  f("all_queues", s.all_queues), f("all_threads", s.all_threads), f("others_run", s.others_run);
  f("watched_ns", s.watched_ns), f("stalls", s.stalls), f("after_reset", s.after_reset), f("moving", s.moving),
      f("shared", s.shared);
  f("notes", s.notes);
}

std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const auto b : bytes) fmt::format_to(std::back_inserter(out), "{:02x}", static_cast<unsigned>(b));
  return out;
}

struct JsonOut {
  Json& to;
  template <class T> void operator()(const char* key, const T& v) { to[key] = of(v); }

  template <std::integral T> static Json of(T v) { return v; }
  template <class E>
  requires std::is_enum_v<E>
  static Json of(E v) { return static_cast<std::uint64_t>(v); }
  static Json of(const std::string& v) { return v; }
  static Json of(double v) { return v; }
  template <class T> static Json of(const std::optional<T>& v) { return v ? of(*v) : Json(nullptr); }
  template <Unit T> static Json of(const T& v) { return v.value; }
  template <class T> static Json of(const Known<T>& k) {
    return k ? Json::array({of(k.value), of(k.from)}) : Json(nullptr);
  }
  static Json of(const std::vector<std::uint32_t>& dwords) { return hex(std::as_bytes(std::span(dwords))); }
  template <class T> static Json of(const std::vector<T>& all) {
    auto j = Json::array();
    for (const auto& v : all) j.push_back(of(v));
    return j;
  }
  static Json of(const Words& words) {
    auto j = Json::array();
    words.each([&](GpuVa va, std::span<const std::byte> bytes) { j.push_back(Json::array({va.value, hex(bytes)})); });
    return j;
  }
  template <class T>
  requires requires(JsonOut& w, const T& v) { fields(w, v); }
  static Json of(const T& v) {
    auto j = Json::object();
    JsonOut inner{j};
    fields(inner, v);
    return j;
  }
};

/// Leaves a field without a key as it is. `wrong`: the first key whose value does not fit.
struct JsonIn {
  const Json& from;
  std::string& wrong;
  template <class T> void operator()(const char* key, T& v) {
    if (const auto at = from.find(key); at != from.end() && !take(*at, v) && wrong.empty()) wrong = key;
  }

  bool take(const Json& j, bool& v) { return j.is_boolean() && (v = j.get<bool>(), true); }
  bool take(const Json& j, double& v) { return j.is_number() && (v = j.get<double>(), true); }
  template <class T> bool take(const Json& j, std::optional<T>& v) { return j.is_null() || take(j, v.emplace()); }
  bool take(const Json& j, std::string& v) { return j.is_string() && (v = j.get<std::string>(), true); }
  template <std::unsigned_integral T> bool take(const Json& j, T& v) {
    return j.is_number_unsigned() && std::in_range<T>(j.get<std::uint64_t>()) && (v = j.get<T>(), true);
  }
  template <class E>
  requires std::is_enum_v<E>
  bool take(const Json& j, E& v) {
    std::uint8_t n = 0;
    return take(j, n) && n <= static_cast<std::uint8_t>(kLast<E>) && (v = static_cast<E>(n), true);
  }
  template <Unit T> bool take(const Json& j, T& v) { return take(j, v.value); }
  template <class T> bool take(const Json& j, Known<T>& k) {
    if (j.is_null()) return true;
    return j.is_array() && j.size() == 2 && take(j[0], k.value) && take(j[1], k.from);
  }
  static bool take_hex(const Json& j, std::span<std::byte> bytes) {
    const auto& text = j.get_ref<const std::string&>();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      std::uint8_t v = 0;
      const auto *const at = text.data() + 2 * i, *const end = at + 2;
      if (std::from_chars(at, end, v, 16).ptr != end) return false;
      bytes[i] = std::byte{v};
    }
    return true;
  }
  bool take(const Json& j, std::vector<std::uint32_t>& dwords) {
    if (!j.is_string() || j.get_ref<const std::string&>().size() % 8 != 0) return false;
    dwords.resize(j.get_ref<const std::string&>().size() / 8);
    return take_hex(j, std::as_writable_bytes(std::span(dwords)));
  }
  bool take(const Json& j, Words& words) {
    return j.is_array() && std::all_of(j.begin(), j.end(), [&](const Json& w) {
             std::uint64_t va = 0;
             if (!w.is_array() || w.size() != 2 || !take(w[0], va) || !w[1].is_string()) return false;
             std::vector<std::byte> bytes(w[1].get_ref<const std::string&>().size() / 2);
             if (!take_hex(w[1], bytes)) return false;
             words.add(GpuVa{va}, bytes);
             return true;
           });
  }
  template <class T> bool take(const Json& j, std::vector<T>& all) {
    return j.is_array() && std::all_of(j.begin(), j.end(), [&](const Json& v) { return take(v, all.emplace_back()); });
  }
  template <class T>
  requires requires(JsonIn& r, T& v) { fields(r, v); }
  bool take(const Json& j, T& v) {
    if (!j.is_object()) return false;
    JsonIn inner{j, wrong};
    fields(inner, v);
    return wrong.empty();
  }
};

}  // namespace

void keep_what_is_read(Snapshot& s) {
  if (s.peek)
    s.peek = [&s, peek = std::move(s.peek)](GpuVa va, std::span<std::byte> out) {
      const auto e = peek(va, out);
      if (e == Errc::ok) s.words.add(va, out);
      return e;
    };
}

std::string to_json(const Snapshot& s) {
  Json j{{"sdma_snapshot", 1}};
  JsonOut w{j};
  fields(w, s);
  // The reason of a fault is in words, which name its packet and field.
  for (std::size_t q = 0; q < s.queues.size(); ++q)
    if (const auto& from = s.queues[q]; from.fault && *from.fault && from.fault_text.empty())
      j["queues"][q]["fault_text"] = describe(*from.fault);
  return detail::json_text(j) + "\n";
}

bool is_snapshot(std::string_view text) noexcept { return text.starts_with(kSnapshotHead); }

Result<Snapshot, Diagnostic> snapshot_from_json(std::string_view text, std::string_view file) {
  detail::JsonReader in{file};
  const auto j = in.parse(text, "`sdma doctor --save` writes such a file");
  if (in.failed()) return in.take();
  Snapshot s;
  std::string wrong;
  if (JsonIn r{j, wrong}; is_snapshot(text) && r.take(j, s)) return s;
  return Diagnostic{.where = std::string(file),
                    .message = wrong.empty() ? "is not a snapshot of version 1"
                                             : fmt::format("the value of \"{}\" does not fit", wrong),
                    .hint = "it may be from another version of sdma, or was changed"};
}

}}}  // namespace sdma::v0_3::doctor
