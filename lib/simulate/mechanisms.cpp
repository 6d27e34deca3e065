// SPDX-License-Identifier: MIT
// The schedules of mechanisms, as texts.
#include "sdma/simulate/mechanisms.hpp"

#include "../schedule/lifetimes.hpp"
#include "settings.hpp"

#include "sdma/core/number.hpp"
#include "sdma/schedule/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr std::uint64_t K = 1024, M = K * K;

/// The text of a mechanism: declarations, and queues that may wait for a trigger and each store a word.
class Text {
 public:
  Text(std::string_view about, std::uint32_t gpus, bool triggered) : triggered_(triggered) {
    declared_ = fmt::format("sdma 1\n# {}\n", about);
    body_ = fmt::format("gpus {}\n", gpus);
    if (triggered_) body_ += "signal host.go value=0\n";
  }
  Text& param(std::string_view name, std::string_view value) {
    declared_ += fmt::format("param {} = {}\n", name, value);
    return *this;
  }
  Text& buffer(std::string_view ref, std::string_view bytes) {
    body_ += fmt::format("buffer {} bytes={} align=4K\n", ref, bytes);
    return *this;
  }
  /// `where`: "peer=gpu1" or "engine=3". `work`: lines.
  Text& queue(std::uint32_t gpu, std::string_view where, std::string_view work, bool atomic = false) {
    const auto n = done_++;
    body_ += fmt::format("signal host.done{} value=0\n", n);
    queues_ += fmt::format("queue gpu{}.q{} {}\n", gpu, n, where);
    if (triggered_) queues_ += "  poll_mem addr=host.go func=ge reference=epoch\n";
    queues_ += work;
    queues_ += atomic ? fmt::format("  atomic op=add_rtn_64 addr=host.done{} value=1\nend\n", n)
                      : fmt::format("  fence addr=host.done{} value=epoch\nend\n", n);
    return *this;
  }
  std::string text() const {
    auto all = declared_ + body_ + queues_ + "host main\n  submit *\n";
    if (triggered_) all += "  set host.go = 1\n";
    for (std::uint32_t i = 0; i < done_; ++i) all += fmt::format("  wait host.done{} >= 1\n", i);
    return all + "end\n";
  }

 private:
  bool triggered_;
  std::uint32_t done_ = 0;
  std::string declared_{}, body_{}, queues_{};
};

/// Finds the trigger and the completions. Returns why the schedule is not one round that can be timed, or "".
std::string refuse(const Schedule& s, Mechanism& m) {
  using Kind = Schedule::Action::Kind;
  if (!s.kernels.empty()) return "it has kernels";
  if (s.hosts.size() != 1) return "it has more than one host thread";
  std::vector<std::size_t> submitted;
  for (const auto& a : s.hosts.front().actions) {
    const auto word = find_symbol(s, a.signal);
    const auto signal = word ? word->index : 0;
    if (a.kind == Kind::repeat) return "it repeats";
    if (a.kind == Kind::sample) return "it samples a signal";
    if (a.kind == Kind::rptr) return "it waits for a ring's rptr";
    if (detail::is_lifetime(a)) return "it manages memory";
    if (a.kind == Kind::submit) {
      if (m.trigger || !m.completions.empty()) return "it submits after it has set or waited";
      submitted.insert(submitted.end(), a.queues.begin(), a.queues.end());
    } else if (a.kind == Kind::set) {
      if (m.trigger || !m.completions.empty() || a.value != EpochValue{1}) return "it sets more than one trigger";
      m.trigger = signal;
    } else {
      if (a.func != Compare::ge || a.value != EpochValue{1}) return "it waits for something else than a signal >= 1";
      m.completions.push_back(signal);
    }
  }
  if (m.completions.empty()) return "it waits for nothing";
  std::sort(submitted.begin(), submitted.end());
  for (std::size_t i = 0; i < s.queues.size(); ++i)
    if (submitted.size() != s.queues.size() || submitted[i] != i) return "it does not submit each queue once";
  return {};
}

constexpr std::string_view kCopy = "  copy_linear bytes=bytes src={} dst={}\n";

class Workbench {
 public:
  Workbench(const Topology& t, const MechanismOptions& o) : node_(t), gpus_(static_cast<std::uint32_t>(t.gpus.size())) {
    for (auto bytes = 4 * K; bytes <= std::max(o.most_bytes, M); bytes *= 4) sizes_.push_back(bytes);
  }

  std::vector<Mechanism> run() {
    if (gpus_ == 0 || engines() == 0) return {};
    far_ = gpus_ > 1 ? "gpu1" : "host";
    submits();
    copies();
    if (engines() > 1) pairs();
    if (gpus_ > 1) swaps();
    if (gpus_ > 2) broadcasts();
    links();
    return std::move(all_);
  }

 private:
  std::uint32_t engines() const { return static_cast<std::uint32_t>(std::popcount(node_.gpus[0].live_engines())); }
  /// "engine=3": the nth live engine of GPU 0.
  std::string engine(std::uint32_t n) const {
    auto live = node_.gpus[0].live_engines();
    for (; n > 0; --n) live &= live - 1;
    return fmt::format("engine={}", std::countr_zero(live));
  }
  bool atomics() const { return node_.completion(GpuId{0}, std::nullopt) == Completion::atomic; }
  Text text(std::string_view about, bool triggered = true) const { return {about, gpus_, triggered}; }

  void add(std::string stem, const std::string& text, const std::string& settings = {}) {
    auto m = mechanism(std::move(stem) + ".sdma", text, settings);
    if (m) all_.push_back(*std::move(m));  // a test parses all of them
  }
  static std::string sized(std::uint64_t bytes) { return "bytes=" + size_text(bytes); }
  static std::string copy(std::string_view from, std::string_view to) { return fmt::format(kCopy, from, to); }

  void submits() {
    const auto fences = text("a doorbell: n fences", false)
                            .param("n", "1")
                            .buffer("host.words", "4K")
                            .queue(0, engine(0), "  for i in 1..n\n    fence addr=host.words[64*i] value=i\n  end\n")
                            .text();
    for (const auto* n : {"n=1", "n=8"}) add("submit_fences", fences, n);
    for (const std::uint32_t n : {2u, 4u}) {
      if (engines() < n) continue;
      auto t = text(fmt::format("a doorbell for each of {} queues", n), false);
      for (std::uint32_t i = 0; i < n; ++i) t.queue(0, engine(i), "");
      add(fmt::format("submit_{}_queues", n), t.text());
    }
    if (atomics()) add("submit_atomic", text("a doorbell: one atomic", false).queue(0, engine(0), "", true).text());
    auto one = text("a doorbell: one copy", false).param("bytes", "4K");
    one.buffer("gpu0.a0", "bytes")
        .buffer(far_ + ".b0", "bytes")
        .queue(0, "peer=" + far_, copy("gpu0.a0", far_ + ".b0"));
    for (const auto bytes : {4 * K, M}) add("submit_copy_gpu0_" + far_, one.text(), sized(bytes));
    if (engines() < 2) return;
    auto two = text("a doorbell for each of two queues: a copy each", false).param("bytes", "4K");
    add("submit_2_copies_gpu0_" + far_, two_queues(two, "gpu0", far_), sized(4 * K));
  }

  /// Two engines of GPU 0 that suit copies to `far_`: the recommended one first.
  std::array<std::string, 2> two_engines() const {
    if (gpus_ == 1) return {engine(0), engine(1)};
    const auto best = node_.engine_for(GpuId{0}, GpuId{1});
    auto others = node_.gpus[0].live_engines() & ~node_.gpus[0].live_host_engines();
    if (best) others &= ~(std::uint64_t{1} << best->value);
    return {"peer=gpu1", others == 0 ? engine(0) : fmt::format("engine={}", std::countr_zero(others))};
  }

  /// Two engines, a copy each.
  std::string two_queues(Text& t, const std::string& from, const std::string& to) const {
    for (std::uint32_t i = 0; i < 2; ++i) {
      const auto a = fmt::format("{}.a{}", from, i), b = fmt::format("{}.b{}", to, i);
      t.buffer(a, "bytes").buffer(b, "bytes").queue(0, two_engines()[i], copy(a, b));
    }
    return t.text();
  }

  /// Copies in a row by GPU 0, from or to itself.
  std::string row(const std::string& from, const std::string& to) const {
    const auto peer = from == "gpu0" ? to : from;
    return text("a trigger, then n copies in a row")
        .param("n", "1")
        .param("bytes", "64K")
        .buffer(from + ".a", "n*bytes")
        .buffer(to + ".b", "n*bytes")
        .queue(0, "peer=" + peer, "  for i in 0..n\n  " + copy(from + ".a[i*bytes]", to + ".b[i*bytes]") + "  end\n")
        .text();
  }

  void copies() {
    std::vector<std::pair<std::string, std::string>> paths{{"gpu0", "gpu0"}, {"gpu0", "host"}, {"host", "gpu0"}};
    if (gpus_ > 1) paths.insert(paths.end(), {{"gpu0", "gpu1"}, {"gpu1", "gpu0"}});
    for (const auto& [from, to] : paths)
      for (const auto bytes : sizes_) add("copy_" + from + "_" + to, row(from, to), "n=1 " + sized(bytes));
    for (const auto n : {2, 4, 8, 16})
      for (const auto bytes : {4 * K, 64 * K})
        add("copy_gpu0_" + far_, row("gpu0", far_), fmt::format("n={} {}", n, sized(bytes)));
    add("copy_gpu0_" + far_, row("gpu0", far_), "n=4 " + sized(M));
    for (const auto n : {4, 16}) add("copy_host_gpu0", row("host", "gpu0"), fmt::format("n={} {}", n, sized(4 * K)));
    if (!atomics()) return;
    auto t = text("a trigger, then a copy and an atomic").param("bytes", "4K");
    t.buffer("gpu0.a0", "bytes").buffer(far_ + ".b0", "bytes");
    add("atomic_gpu0_" + far_, t.queue(0, "peer=" + far_, copy("gpu0.a0", far_ + ".b0"), true).text(), sized(4 * K));
  }

  void pairs() {
    auto same = text("a trigger, then a copy on each of two engines").param("bytes", "4K");
    const auto one_path = two_queues(same, "gpu0", far_);
    for (const auto bytes : {4 * K, 64 * K, sizes_.back() / 4}) add("engines_gpu0_" + far_, one_path, sized(bytes));
    auto t = text("a trigger, then a copy to the host and one from it").param("bytes", "4K");
    t.buffer("gpu0.a0", "bytes").buffer("host.b0", "bytes").buffer("host.a1", "bytes").buffer("gpu0.b1", "bytes");
    t.queue(0, engine(0), copy("gpu0.a0", "host.b0")).queue(0, engine(1), copy("host.a1", "gpu0.b1"));
    add("engines_gpu0_host_both", t.text(), sized(sizes_.back() / 4));
  }

  void swaps() {
    auto t = text("a trigger, then a swap").param("bytes", "64K").buffer("gpu0.a", "bytes").buffer("gpu1.b", "bytes");
    t.queue(0, "peer=gpu1", "  copy_swap bytes=bytes a=gpu0.a b=gpu1.b\n");
    for (const auto bytes : sizes_) add("swap_gpu0_gpu1", t.text(), sized(bytes));
  }

  void broadcasts() {
    auto t =
        text("a trigger, then a broadcast").param("bytes", "64K").buffer("gpu0.a", "bytes").buffer("gpu1.b", "bytes");
    t.buffer("gpu2.c", "bytes")
        .queue(0, "peer=gpu1", "  copy_broadcast bytes=bytes src=gpu0.a dst1=gpu1.b dst2=gpu2.c\n");
    for (const auto bytes : sizes_) add("broadcast_gpu0_gpu1_gpu2", t.text(), sized(bytes));
  }

  /// The two largest sizes between all pairs but the one that has been measured in full.
  void links() {
    for (std::uint32_t from = 0; from < gpus_; ++from)
      for (std::uint32_t to = 0; to < gpus_; ++to) {
        if (from == to || (from == 0 && to == 1)) continue;
        auto t = text("a trigger, then a copy by the GPU that has the bytes").param("bytes", "64M");
        const auto a = fmt::format("gpu{}.a", from), b = fmt::format("gpu{}.b", to);
        t.buffer(a, "bytes").buffer(b, "bytes").queue(from, fmt::format("peer=gpu{}", to), copy(a, b));
        for (const auto bytes : {sizes_[sizes_.size() - 2], sizes_.back()})
          add(fmt::format("push_gpu{}_gpu{}", from, to), t.text(), sized(bytes));
      }
  }

  const Topology& node_;
  std::uint32_t gpus_;
  std::string far_{};  ///< GPU 1, or the host
  std::vector<std::uint64_t> sizes_{};
  std::vector<Mechanism> all_{};
};

}  // namespace

Result<Mechanism, std::vector<Diagnostic>> mechanism(std::string file, std::string text, std::string settings) {
  Mechanism m{.file = std::move(file), .settings = std::move(settings), .text = std::move(text)};
  auto options = detail::settings_of(m.settings);
  if (!options) {
    options.error().where = m.file;
    return std::vector{std::move(options.error())};
  }
  auto parsed = parse_schedule(m.text, m.file, *options);
  if (!parsed) return std::move(parsed.error());
  if (const auto why = refuse(*parsed, m); !why.empty())
    return std::vector{
        Diagnostic{.where = m.file,
                   .message = why,
                   .hint = "it submits its queues, sets at most one signal to 1, and waits for signals >= 1"}};
  m.schedule = std::make_shared<const Schedule>(std::move(*parsed));
  return m;
}

std::vector<Mechanism> mechanisms(const Topology& t, const MechanismOptions& o) { return Workbench{t, o}.run(); }

}}  // namespace sdma::v0_3
