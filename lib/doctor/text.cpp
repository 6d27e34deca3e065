// SPDX-License-Identifier: MIT
// A diagnosis as text for people, and as JSON.
#include "../core/aligned.hpp"
#include "../core/json.hpp"
#include "../sync/phrases.hpp"
#include "sdma/doctor/diagnose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

constexpr std::size_t kWidth = 110;

/// Breaks a paragraph into lines at spaces. `indent`: of all lines but the first.
std::string wrapped(std::string_view text, std::size_t indent = 0) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    if (!out.empty()) {
      const bool fits = column + 1 + word.size() <= kWidth;
      out += fits ? " " : "\n" + std::string(indent, ' ');
      column = fits ? column + 1 : indent;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return out + "\n";
}

std::string duration(std::uint64_t ns) {
  if (ns >= 1'000'000'000) return fmt::format("{:.3g} s", static_cast<double>(ns) / 1e9);
  return fmt::format("{:.3g} ms", static_cast<double>(ns) / 1e6);
}

std::string in_words(const Statement& s) {
  return s.rests_on.empty() ? fmt::format("{} [{}]", s.text, name(s.basis))
                            : fmt::format("{} [{}: {}]", s.text, name(s.basis), s.rests_on);
}

std::string condition(const WordSeen& w) {
  auto s = fmt::format("{:#x}", w.va.value);
  if (!w.name.empty()) s += fmt::format(" ({})", w.name);
  if (w.mask != ~0u) s += fmt::format(" & {:#x}", w.mask);
  s += fmt::format(" {} {}", detail::compare_text(w.func), detail::number_text(w.reference));
  return s + (w.value ? fmt::format("; the word holds {}", detail::number_text(*w.value)) : "; the word was not read");
}

std::string released_by(const Diagnosis& d, const Finding& f) {
  switch (f.release.by) {
    case Release::By::unknown: return {};
    case Release::By::nobody: return "No packet and no thread can satisfy it. ";
    case Release::By::host: return {};  // the statements say so
    case Release::By::packet:
      if (!f.release.place || f.what == HangClass::cycle) return {};
      return fmt::format("{} at {:#x} would satisfy it. ", d.queues[f.release.place->queue].name,
                         f.release.place->position);
  }
  return {};
}

std::string_view opening(const Diagnosis& d, const Finding& f) {
  const auto v = d.verdict(f);
  if (v == Verdict::hung) return "Hung";
  if (f.what == HangClass::unknown) return "Not decided";
  if (v == Verdict::waits) return "Waits for the host";
  return f.release.by == Release::By::host ? "Perhaps waits for the host" : "Perhaps hung";
}

std::string paragraph(const Diagnosis& d, const Finding& f) {
  if (f.what == HangClass::healthy) {
    std::string text = "Nothing hangs.";
    for (const auto& s : f.statements) text += " " + in_words(s);
    return text;
  }
  const bool unexplained = f.what == HangClass::unknown && d.verdict(f) == Verdict::hung;
  auto text = fmt::format("{}: {}. ", opening(d, f), unexplained ? "the reason is not known" : title(f.what));
  if (f.queue && f.at)
    text +=
        fmt::format("{} is at position {:#x}{}: {}. ", d.queues[*f.queue].name, f.at->position,
                    d.watched_ns > 0 ? fmt::format(", and has not moved for at least {}", duration(d.watched_ns)) : "",
                    f.at->packet);
  else if (f.queue)
    text += fmt::format(
        "{}{}. ", d.queues[*f.queue].name,
        d.watched_ns > 0 ? fmt::format(" has not moved for at least {}", duration(d.watched_ns)) : " stalls");
  if (f.word && f.queue && f.at && f.what != HangClass::no_mailbox)
    text += fmt::format("It waits for {}. ", condition(*f.word));
  text += released_by(d, f);
  for (const auto& s : f.statements) text += in_words(s) + " ";
  if (!f.cycle.empty()) {
    text += "The cycle: ";
    for (const auto& p : f.cycle) text += fmt::format("{} -> ", d.queues[p.queue].name);
    text += fmt::format("{}. ", d.queues[f.cycle.front().queue].name);
  }
  if (!f.to_do.empty()) text += fmt::format("To do: {}.", f.to_do);
  return text;
}

std::string position(const Known<std::uint64_t>& p) { return p ? fmt::format("{:#x}", *p) : "?"; }

/// ", 1.2e+04 bytes of packets per second"
std::string rate(const Diagnosis& d, const QueueState& q) {
  if (d.watched_ns == 0) return {};
  return fmt::format(", {:.3g} bytes of packets per second",
                     static_cast<double>(q.moved_bytes) * 1e9 / static_cast<double>(d.watched_ns));
}

std::string table(const Diagnosis& d) {
  std::vector<std::vector<std::string>> rows{
      {"queue", "gpu", "engine", "rptr", "wptr", "doorbell", "pending", "state"}};
  for (const auto& q : d.queues)
    rows.push_back({q.name, q.gpu ? fmt::format("{}", q.gpu.value.value) : "?",
                    q.engine ? fmt::format("{}", q.engine.value.value) : "?", position(q.rptr), position(q.wptr),
                    position(q.doorbell), fmt::format("{}", q.pending_packets),
                    q.moved ? "moves" + rate(d, q) : std::string(name(q.what))});
  return detail::aligned(rows);
}

std::string packets(const QueueState& q) {
  std::string out;
  for (const auto& p : q.near)
    out += fmt::format("  {} {:#x} {}\n",
                       p.part == Part::at_rptr    ? "rptr ->"
                       : p.part == Part::consumed ? "  read "
                                                  : "       ",
                       p.position, p.text);
  return out;
}

/// "gpu 0 queue 2: complete before 0x40; 2 packets are sent again (14 dwords), 1 is held", and these packets.
std::string after_reset(const Diagnosis& d) {
  std::string out;
  if (!d.after_reset.empty())
    out += "\nafter the reset of the engine (completions are inferred from the words of fences, taken for epochs):\n";
  for (const auto& a : d.after_reset) {
    const auto& name = d.queues[a.queue].name;
    if (a.state == "unknown") {
      out += "  " + wrapped(fmt::format("{}: not known to be whole: {}.", name, a.why), 4);
      continue;
    }
    if (a.state == "whole") {
      out += "  " + wrapped(fmt::format("{}: whole: all that was published is complete.", name), 4);
      continue;
    }
    out += "  " + wrapped(fmt::format("{}: complete before {:#x}; {} to repeat, {} to send, {} dwords; {} held{}", name,
                                      a.from, a.repeat, a.send, a.dwords, a.held,
                                      a.held != 0 ? ": decide whether they were executed." : "."),
                          4);
    for (const auto& p : a.packets) out += fmt::format("    {:6} {:#x} {}: {}\n", p.fate, p.position, p.text, p.why);
    if (const auto more = a.repeat + a.send + a.held - a.packets.size(); more != 0)
      out += fmt::format("    and {} more\n", more);
  }
  return out;
}

/// What logs say, of each machine, each of its starts and each GPU in the order of time.
std::string timeline(const Diagnosis& d) {
  struct Row {
    std::optional<double> seconds;
    std::string text;
  };
  using Gpu = std::array<std::string, 3>;  // its log, origin and address
  std::map<Gpu, std::vector<Row>> all;
  for (const auto& f : d.page_faults) {
    auto text = "page fault at " + in_words(f);
    if (!f.hub.empty()) text += ", " + f.hub;
    if (!f.die.empty()) text += ", die " + f.die;
    if (f.vmid && f.pasid) text += fmt::format(", VMID {}, PASID {}", *f.vmid, *f.pasid);
    all[Gpu{f.from, f.origin.words, f.device}].push_back({f.seconds, std::move(text)});
  }
  for (const auto& e : d.events) {
    auto text = fmt::format("\"{}\"", e.said);
    if (e.reports > 1) text += fmt::format(", {} times", e.reports);
    if (e.process)
      text += fmt::format(", process {}{}", *e.process, e.program.empty() ? "" : fmt::format(" ({})", e.program));
    text += ": " + e.means;
    if (!e.to_do.empty()) text += fmt::format(" To do: {}.", e.to_do);
    all[Gpu{e.from, e.origin.words, e.device}].push_back({e.seconds, std::move(text)});
  }
  std::string out;
  for (auto& [of, rows] : all) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.seconds.value_or(-1) < b.seconds.value_or(-1); });
    const auto& [log, origin, device] = of;
    out +=
        fmt::format("\n{}{}{}:\n", log, origin.empty() ? "" : ", " + origin, device.empty() ? "" : ", GPU " + device);
    for (const auto& r : rows)
      out += "  " + wrapped(fmt::format("{} {}", r.seconds ? fmt::format("{:.3f} s", *r.seconds) : "-", r.text), 6);
  }
  return out;
}

template <class T, class To> detail::Json known(const Known<T>& k, To to) {
  return k ? detail::Json{{"value", to(*k)}, {"from", name(k.from)}} : detail::Json(nullptr);
}
/// A member only if it is known.
template <class T> void put(detail::Json& j, const char* key, const std::optional<T>& v) {
  if (v) j[key] = *v;
}
void put(detail::Json& j, const char* key, const std::string& v) {
  if (!v.empty()) j[key] = v;
}
void put(detail::Json& j, const LogOrigin& o) {
  put(j, "host", o.host), put(j, "boot", o.boot);
  if (o.start != 0) j["start"] = o.start;
}
detail::Json json_of(const PageFault& f) {
  detail::Json j{{"page", f.page.value}, {"from", f.from}, {"reports", f.reports}};
  put(j, "seconds", f.seconds), put(j, "device", f.device), put(j, "hub", f.hub), put(j, "client", f.client);
  put(j, "die", f.die), put(j, "vmid", f.vmid), put(j, "pasid", f.pasid), put(j, "status", f.status);
  put(j, "write", f.write), put(j, "program", f.program), put(j, "copy", f.copy);
  if (f.gpu) j["gpu"] = f.gpu.value.value;
  if (f.process != 0) j["process"] = f.process;
  put(j, f.origin);
  return j;
}
detail::Json json_of(const LogEvent& e) {
  detail::Json j{{"said", e.said}, {"means", e.means}, {"to_do", e.to_do}, {"from", e.from}, {"reports", e.reports}};
  put(j, "seconds", e.seconds), put(j, "device", e.device), put(j, "ring", e.ring), put(j, "engine", e.engine);
  put(j, "queue", e.queue), put(j, "process", e.process), put(j, "program", e.program), put(j, "pasid", e.pasid);
  put(j, "doorbell", e.doorbell), put(j, "address", e.address);
  put(j, e.origin);
  return j;
}
detail::Json json_of(const Place& p, const Diagnosis& d) {
  return {{"queue", d.queues[p.queue].name}, {"position", p.position}, {"packet", p.packet}};
}
detail::Json json_of(const Finding& f, const Diagnosis& d) {
  detail::Json j{
      {"class", name(f.what)}, {"title", title(f.what)}, {"verdict", name(d.verdict(f))}, {"basis", name(f.basis)}};
  if (f.queue) j["queue"] = d.queues[*f.queue].name;
  if (f.at) j["at"] = json_of(*f.at, d);
  if (f.word) {
    j["word"] = {{"va", f.word->va.value},
                 {"name", f.word->name},
                 {"func", detail::compare_text(f.word->func)},
                 {"reference", f.word->reference},
                 {"mask", f.word->mask}};
    j["word"]["value"] = f.word->value ? detail::Json(*f.word->value) : detail::Json(nullptr);
    j["released_by"] = {{"by", name(f.release.by)}};
    if (f.release.place) j["released_by"]["packet"] = json_of(*f.release.place, d);
  }
  if (!f.cycle.empty()) {
    j["cycle"] = detail::Json::array();
    for (const auto& p : f.cycle) j["cycle"].push_back(json_of(p, d));
  }
  j["statements"] = detail::Json::array();
  for (const auto& s : f.statements)
    j["statements"].push_back({{"text", s.text}, {"basis", name(s.basis)}, {"rests_on", s.rests_on}});
  j["to_do"] = f.to_do;
  return j;
}

}  // namespace

std::string summary(const Diagnosis& d) { return paragraph(d, d.findings.front()); }

std::string to_text(const Diagnosis& d) {
  std::string out;
  for (const auto& f : d.findings) {
    out += wrapped(paragraph(d, f));
    out += '\n';
  }
  if (d.queues.empty()) out.pop_back();
  else out += table(d);
  for (const auto& q : d.queues) {
    if (q.what == HangClass::healthy || q.near.empty()) continue;
    out += fmt::format("\n{}:\n", q.name) + packets(q);
  }
  out += after_reset(d);
  out += timeline(d);
  for (const auto& n : d.notes) out += (&n == d.notes.data() ? "\n" : "") + wrapped("note: " + n, 6);
  return out;
}

std::string to_json(const Diagnosis& d) {
  const auto number = [](std::uint64_t v) { return v; };
  detail::Json j{{"from", d.from}, {"verdict", name(d.verdict())}, {"watched_ns", d.watched_ns}};
  j["findings"] = detail::Json::array();
  for (const auto& f : d.findings) j["findings"].push_back(json_of(f, d));
  j["queues"] = detail::Json::array();
  for (const auto& q : d.queues) {
    detail::Json queue{{"name", q.name},
                       {"gpu", known(q.gpu, [](GpuId g) { return g.value; })},
                       {"engine", known(q.engine, [](EngineId e) { return e.value; })},
                       {"ring_bytes", q.ring_bytes},
                       {"rptr", known(q.rptr, number)},
                       {"wptr", known(q.wptr, number)},
                       {"doorbell", known(q.doorbell, number)},
                       {"pending_packets", q.pending_packets},
                       {"moved", q.moved},
                       {"moved_bytes", q.moved_bytes},
                       {"class", name(q.what)}};
    queue["packets"] = detail::Json::array();
    for (const auto& p : q.near)
      queue["packets"].push_back({{"part", p.part == Part::at_rptr    ? "at_rptr"
                                           : p.part == Part::consumed ? "consumed"
                                                                      : "pending"},
                                  {"position", p.position},
                                  {"text", p.text}});
    j["queues"].push_back(std::move(queue));
  }
  j["page_faults"] = detail::Json::array();
  for (const auto& f : d.page_faults) j["page_faults"].push_back(json_of(f));
  j["events"] = detail::Json::array();
  for (const auto& e : d.events) j["events"].push_back(json_of(e));
  for (const auto& a : d.after_reset) {
    detail::Json queue{{"queue", d.queues[a.queue].name},
                       {"state", a.state},
                       {"why", a.why},
                       {"from", a.from},
                       {"done", a.done},
                       {"repeat", a.repeat},
                       {"send", a.send},
                       {"held", a.held},
                       {"dwords", a.dwords},
                       {"packets", detail::Json::array()}};
    for (const auto& p : a.packets)
      queue["packets"].push_back({{"position", p.position}, {"fate", p.fate}, {"text", p.text}, {"why", p.why}});
    j["after_reset"].push_back(std::move(queue));
  }
  j["notes"] = d.notes;
  return detail::json_text(j) + "\n";
}

}}}  // namespace sdma::v0_3::doctor
