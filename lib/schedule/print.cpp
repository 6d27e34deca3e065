// SPDX-License-Identifier: MIT
// Prints schedules as FLAT.
#include "../stream/print.hpp"
#include "lifetimes.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/stream/text.hpp"
#include "sums.hpp"
#include "symbols.hpp"

namespace sdma { inline namespace v0_3 {
namespace {

using namespace detail;

/// "epoch", "-epoch", "4*epoch+1".
std::string epoch_text(EpochValue v) {
  if (v.factor == 0) return value_text(static_cast<std::uint64_t>(v.constant));
  std::string out = v.factor == 1 ? "" : v.factor == -1 ? "-" : std::to_string(v.factor) + "*";
  out += "epoch";
  if (v.constant > 0) out += "+";
  if (v.constant != 0) out += std::to_string(v.constant);
  return out;
}

/// "4", "4*epoch+1", "n", "n+4", "n-epoch+1".
std::string thread_value(const ActionValue& v) {
  if (v.sample.empty()) return epoch_text(v.plus);
  std::string out = v.sample;
  if (v.plus.factor != 0) {
    if (v.plus.factor > 0) out += "+";
    out += epoch_text(v.plus);
  } else if (v.plus.constant != 0) {
    if (v.plus.constant > 0) out += "+";
    out += std::to_string(v.plus.constant);
  }
  return out;
}

class Printer {
 public:
  explicit Printer(const Schedule& s) noexcept : s_(s) {}

  std::string run() {
    out_ = "sdma 1\n";
    if (s_.gpus > 0) out_ += "gpus " + std::to_string(s_.gpus) + "\n";
    for (const auto& b : s_.buffers) buffer(b);
    for (const auto& g : s_.signals) signal(g);
    for (const auto& q : s_.queues) queue(q);
    for (const auto& a : actors(s_)) {
      out_ += a.title();
      if (a.of) settings(*a.of);
      out_ += (a.rank ? " rank=" + std::to_string(*a.rank) : "") + "\n";
      actions(*a.actions, 1);
      out_ += "end\n";
    }
    for (const auto& e : s_.expectations) out_ += to_text(s_, e) + "\n";
    return std::move(out_);
  }

  void settings(const Schedule::Kernel& k) {
    if (k.share != 100) out_ += " share=" + std::to_string(k.share);
    if (k.workgroups != 0) out_ += " workgroups=" + std::to_string(k.workgroups);
    if (k.protocol != Schedule::Protocol::plain) out_ += " protocol=" + std::string(name(k.protocol));
  }

  void action(const Schedule::Action& a, std::size_t depth) {
    using What = Schedule::Action::Kind;
    out_.append(2 * depth, ' ');
    switch (a.kind) {
      case What::submit: submit(a.queues); break;
      case What::set: synchronise("set", a, "="); break;
      case What::add: synchronise("add", a, "+="); break;
      case What::wait: synchronise("wait", a, sign_of(a.func)); break;
      case What::rptr: out_ += "wait " + queue_name(s_.queues[a.queues.front()]) + ".rptr == all"; break;
      case What::sample:
        out_ +=
            "sample " + a.value.sample + " = " + address_text(s_, a.signal) + (a.system_scope ? "" : " scope=agent");
        break;
      case What::compute:
        out_ += "compute ns=" + std::to_string(a.ns) + (a.hbm != 0 ? " hbm=" + size_text(a.hbm) : "");
        break;
      case What::load: out_ += "load " + range_text(s_, a.range); break;
      case What::expect:
        out_ += to_text(s_, Schedule::Expectation{.left = a.range, .right = a.right, .old = a.old, .sum = a.sum});
        break;
      case What::store:
        out_ += "store " + range_text(s_, a.range) + " = ";
        out_ += a.sum ? detail::to_text(s_, a.sum) : !a.byte ? "random" : *a.byte == 0 ? "zero" : value_text(*a.byte);
        break;
      case What::alloc:
      case What::free:
      case What::map:
      case What::unmap:
      case What::export_handle:
      case What::close_handle:
        out_.append(lifetime_word(a.kind)).append(" ").append(address_text(s_, a.buffer));
        if (a.kind == What::map || a.kind == What::unmap) out_ += " " + to_string(a.gpu);
        break;
      case What::repeat:
        out_ += "repeat " + std::to_string(a.rounds) + "\n";
        actions(a.body, depth + 1);
        out_.append(2 * depth, ' ').append("end");
        break;
    }
  }
  void one_packet(const Schedule::Queue& q, std::size_t dword) {
    const auto v = Reader{std::span(q.dwords).subspan(dword)}.next();
    const auto epochs = std::equal_range(q.epochs.begin(), q.epochs.end(), Schedule::EpochField{.packet = dword},
                                         [](const auto& a, const auto& b) { return a.packet < b.packet; });
    if (v.whole())
      packet(v, {q.epochs.data() + (epochs.first - q.epochs.begin()),
                 q.epochs.data() + (epochs.second - q.epochs.begin())});
    else plain_packets(v.dwords);
    out_.erase(0, 2);
    if (out_.ends_with('\n')) out_.pop_back();
  }
  std::string take() noexcept { return std::move(out_); }

 private:
  void actions(const std::vector<Schedule::Action>& all, std::size_t depth) {
    for (const auto& a : all) {
      action(a, depth);
      out_ += "\n";
    }
  }

  void synchronise(const char* what, const Schedule::Action& a, std::string_view sign) {
    out_ += what;
    out_.append(" ")
        .append(address_text(s_, a.signal))
        .append(" ")
        .append(sign)
        .append(" ")
        .append(thread_value(a.value));
    if (!a.system_scope) out_ += " scope=agent";
  }

  void submit(const std::vector<std::size_t>& queues) {
    bool all = queues.size() == s_.queues.size() && queues.size() > 1;
    for (std::size_t i = 0; all && i < queues.size(); ++i) all = queues[i] == i;
    out_ += "submit";
    if (all) out_ += " *";
    else
      for (const auto q : queues) out_ += " " + queue_name(s_.queues[q]);
  }

  void buffer(const Schedule::Buffer& b) {
    out_ += "buffer " + to_string(b.place) + "." + b.name + " bytes=" + size_text(b.bytes);
    if (b.alignment != 1) out_ += " align=" + size_text(b.alignment);
    if (b.at) out_ += " at=" + address_text(s_, *b.at);
    for (std::size_t i = 0; i < b.map.size(); ++i) out_ += (i == 0 ? " map=" : ",") + to_string(b.map[i]);
    if (b.init != Init::poison) out_ += b.init == Init::random ? " init=random" : " init=zero";
    out_ += "\n";
  }
  void signal(const Schedule::Signal& g) {
    out_ += "signal " + to_string(g.place) + "." + g.name + " value=" + value_text(g.value, g.bits);
    if (g.bits != 64) out_ += " bits=" + std::to_string(g.bits);
    if (g.at) out_ += " at=" + address_text(s_, *g.at);
    out_ += "\n";
  }

  void queue(const Schedule::Queue& q) {
    out_ += "queue " + queue_name(q);
    out_ += q.peer ? (q.from_host ? " from=" : " peer=") + to_string(*q.peer) : " engine=" + std::to_string(q.engine);
    if (q.network) out_ += " network=1";
    if (q.ring_bytes != 0) out_ += " ring=" + size_text(q.ring_bytes);
    if (q.doorbell_each) out_ += " doorbell=each";
    out_ += "\n";
    // Packets without names and epochs go to the disassembler together: it folds those that repeat.
    std::size_t plain = 0;
    auto epoch = q.epochs.begin();
    const std::span<const std::uint32_t> dwords = q.dwords;
    for (Reader r{dwords}; r;) {
      const auto begin = r.position_dwords();
      const auto v = r.next();
      const auto first = epoch;
      while (epoch != q.epochs.end() && epoch->packet == begin) ++epoch;
      if (first == epoch && !has_symbol(v)) continue;
      plain_packets(dwords.subspan(plain, begin - plain));
      plain = r.position_dwords();
      packet(v, {q.epochs.data() + (first - q.epochs.begin()), q.epochs.data() + (epoch - q.epochs.begin())});
    }
    plain_packets(dwords.subspan(plain));
    out_ += "end\n";
  }

  bool has_symbol(const PacketView& v) const {
    bool any = false;
    each_address(v, [&](const FieldInfo&, GpuVa va) { any = any || find_symbol(s_, va); });
    return any;
  }

  void plain_packets(std::span<const std::uint32_t> dwords) {
    const auto text = disassemble(dwords);
    for (std::size_t at = 0; at < text.size();) {
      const auto end = text.find('\n', at);
      auto line = std::string_view(text).substr(at, end - at);
      // FLAT has no comments: "# truncated ...", "# copy_tiled".
      if (const auto hash = line.find("  #"); hash != line.npos) line = line.substr(0, hash);
      out_.append("  ").append(line).append("\n");
      at = end + 1;
    }
  }

  void packet(const PacketView& v, std::span<const Schedule::EpochField> epochs) {
    // A field that depends on the epoch is zero, and zero may be a default, which is not printed.
    std::vector<std::uint32_t> dwords(v.dwords.begin(), v.dwords.end());
    const auto of = [&](const FieldInfo& f) -> const Schedule::EpochField* {
      for (const auto& e : epochs)
        if (e.field == f.name) return &e;
      return nullptr;
    };
    for (const auto& f : v.info->fields)
      if (of(f)) store(f, (f.default_value + 1) & f.mask(), dwords.data());
    auto line = to_text(PacketView{v.info, dwords, false}, [this](GpuVa va) { return name_of(s_, va); });
    for (const auto& f : v.info->fields)
      if (const auto* e = of(f)) replace(line, f.name, epoch_text(e->value));
    out_.append("  ").append(line).append("\n");
  }
  static void replace(std::string& line, std::string_view field, std::string_view by) {
    const auto key = " " + std::string(field) + "=";
    const auto at = line.find(key);
    if (at == line.npos) return;
    const auto begin = at + key.size(), end = std::min(line.find(' ', begin), line.size());
    line.replace(begin, end - begin, by);
  }

  const Schedule& s_;
  std::string out_;
};

}  // namespace

namespace detail {

std::string address_text(const Schedule& s, GpuVa va) {
  auto name = name_of(s, va);
  return name.empty() ? hex_text(va.value) : name;
}

std::string range_text(const Schedule& s, const Schedule::Range& r) {
  const auto l = find_symbol(s, r.va);
  if (!l) return hex_text(r.va.value) + "..+" + size_text(r.bytes);
  const auto name = name_of(s, SymbolOffset{l->signal, l->index, 0});
  if (l->offset == 0 && r.bytes == bytes_of(s, *l)) return name;
  return name + "[" + size_text(l->offset) + "..+" + size_text(r.bytes) + "]";
}

}  // namespace detail

std::string to_text(const Schedule& s) { return Printer{s}.run(); }

std::string to_text(const Schedule& s, const Schedule::Action& a) {
  Printer p{s};
  p.action(a, 0);
  return p.take();
}

std::string to_text(const Schedule& s, const Schedule::Queue& q, std::size_t dword) {
  Printer p{s};
  p.one_packet(q, dword);
  return p.take();
}

std::string to_text(const Schedule& s, const Schedule::Expectation& e) {
  using What = Schedule::Expectation::Kind;
  if (e.kind == What::finding) return "expect finding " + e.rule;
  const auto left = "expect " + range_text(s, e.left) + " == ";
  if (e.kind == What::value) return left + value_text(e.value, static_cast<unsigned>(8 * e.left.bytes));
  return left + (e.old ? "old " : "") + (e.sum ? detail::to_text(s, e.sum) : range_text(s, e.right));
}

}}  // namespace sdma::v0_3
