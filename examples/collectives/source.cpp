// SPDX-License-Identifier: MIT
#include "source.hpp"

#include "sdma/core/number.hpp"
#include "sdma/schedule/text.hpp"

#include <algorithm>

namespace collectives {
namespace {

using Lines = std::vector<std::string>;
using sdma::size_text;

/// 0 for 0, and 1 for a number from 1 to 2^20.
std::string at_most_one(const std::string& number) { return "((" + number + "+1M-1)/1M)"; }

/// "1..N" for "N-1".
std::string from_one_to(const std::string& count) { return "1.." + (count == "N-1" ? "N" : count + "+1"); }
/// In a name: "{k}", or the digit itself.
std::string in_name(const std::string& number) { return number == "0" ? number : "{" + number + "}"; }
/// "a*b", without a factor of 1.
std::string product(const std::string& a, const std::string& b) { return b == "1" ? a : a == "1" ? b : a + "*" + b; }

/// A buffer of a GPU, and the bytes before an address in it.
struct Address {
  std::string buffer{}, offset{};
  std::string text(const std::string& more = "") const { return buffer + "[" + offset + more + "]"; }
};

/// The command groups of one GPU, in a loop of `open`.
struct Group {
  Lines open{};
  std::string number{}, peer{};
  Lines packets{};
};

/// What one GPU sends to its peers: peer t, from 1 to `count`, is GPU `peer(t)`, called d. The others may use i and d.
struct Sends {
  Lines each{};                             ///< loops over the GPUs that send; they define i
  std::string count{}, first{}, of_peer{};  ///< `of_peer`: a let in terms of d
  Address from{}, to{};
  std::string bytes{};
};

class Source {
 public:
  explicit Source(const Options& o) : o_(o) {}

  std::string why_not() const {
    const auto& offsets = o_.offsets;
    if (std::any_of(offsets.begin(), offsets.end(), [&](auto v) { return v != offsets.front(); }))
      return "the buffers' offsets differ";
    for (std::size_t k = 2; k < o_.engines.size(); ++k)
      if (engine_step(k) != engine_step(1)) return "the engines of its list are not evenly spaced";
    return "";
  }

  std::string text() {
    heading();
    groups();
    lines({"gpus N"});
    buffers();
    signals();
    queues();
    expectations();
    host();
    return sdma::format_source(text_);
  }

 private:
  bool rooted() const { return o_.collective != Collective::all_gather && o_.collective != Collective::all_to_all; }
  bool swap() const { return o_.variant == Variant::swap; }
  bool out_of_place() const { return o_.collective == Collective::all_to_all && !swap(); }
  bool broadcast() const { return o_.collective == Collective::broadcast; }
  bool gather() const { return o_.collective == Collective::gather; }
  std::int64_t engine_step(std::size_t k) const {
    return static_cast<std::int64_t>(o_.engines[k]) - static_cast<std::int64_t>(o_.engines[k - 1]);
  }
  std::string plus_offset(const std::string& v) const {
    const auto offset = offset_of(o_, 0);
    return offset == 0 ? v : size_text(offset) + "+" + v;
  }

  void lines(const Lines& all) {
    for (const auto& l : all) text_ += l + "\n";
  }
  /// The lines that begin with `for` need an end each.
  void inside(const Lines& open, const Lines& body) {
    lines(open);
    lines(body);
    for (const auto& l : open)
      if (l.starts_with("for ")) text_ += "end\n";
  }

  void heading() {
    lines({"sdma 1",
           "# " + std::string(name(o_.collective)) + " by " + std::string(name(o_.variant)) +
               (o_.prelaunch == Prelaunch::off ? "" : std::string(kPrelaunched)) +
               ": give N and bytes, and the rest follows",
           "param N = " + std::to_string(o_.gpus), "param bytes = " + size_text(o_.bytes)});
    if (rooted()) lines({"param root = " + std::to_string(o_.root)});
    if (broadcast()) return;
    lines({"let even = (bytes+N-1)/N"});
    if (o_.granule == 1) lines({"let chunk = even"});
    else
      lines({"let rounded = (even+" + size_text(o_.granule - 1) + ")/" + size_text(o_.granule) + "*" +
                 size_text(o_.granule),
             "let fits = 1-" + at_most_one("rounded*(N-1)/bytes") + "   # if so, each GPU still has a part",
             "let chunk = fits*rounded+(1-fits)*even"});
    lines({"let each_gpu_has_a_part = 1/(1-" + at_most_one("(N-1)*chunk/bytes") + ")   # otherwise an error"});
    if (swap()) lines({"let parts_are_equal_multiples_of_64 = 1/(1-" + at_most_one("(N*chunk-bytes+chunk%64)") + ")"});
  }

  static std::string part_of_gpu(const std::string& g) { return "chunk-(" + g + "+1)/N*(N*chunk-bytes)"; }
  static std::string gpu(const std::string& g, const char* buffer) { return "gpu{" + g + "}." + buffer; }

  Sends sends() const {
    const auto at = [&](const char* g) { return plus_offset(std::string(g) + "*chunk"); };
    if (o_.collective == Collective::all_gather)
      return {.each = {"for i in 0..N", "let part = " + part_of_gpu("i")},
              .count = "N-1",
              .first = "i",
              .from = {gpu("i", "buf"), at("i")},
              .to = {gpu("d", "buf"), at("i")},
              .bytes = "part"};
    if (out_of_place())
      return {.each = {"for i in 0..N"},
              .count = o_.own_part ? "N" : "N-1",
              .first = "i",
              .of_peer = "let part = " + part_of_gpu("d"),
              .from = {gpu("i", "in"), at("d")},
              .to = {gpu("d", "out"), at("i")},
              .bytes = "part"};
    const auto offset = broadcast() ? plus_offset("0") : at("d");
    Sends s{.each = {"for i in root..root+1"},
            .count = "N-1",
            .first = "root",
            .of_peer = broadcast() ? "" : "let part = " + part_of_gpu("d"),
            .from = {gpu("i", "buf"), offset},
            .to = {gpu("d", "buf"), offset},
            .bytes = broadcast() ? "bytes" : "part"};
    if (gather()) std::swap(s.from, s.to);
    return s;
  }

  /// A packet, or as many as its bytes need.
  Lines packets(const std::string& kind, const std::string& bytes,
                const std::vector<std::pair<const char*, Address>>& at) const {
    const bool whole = o_.packet_bytes == Options{}.packet_bytes && o_.bytes <= o_.packet_bytes;
    const auto most = size_text(o_.packet_bytes), pieces = "((" + bytes + "+" + most + "-1)/" + most + ")";
    auto line = kind + " bytes=" + bytes;
    if (!whole) line = kind + " bytes=" + most + "-(p+1)/" + pieces + "*(" + pieces + "*" + most + "-" + bytes + ")";
    for (const auto& [field, a] : at) line += std::string(" ") + field + "=" + a.text(whole ? "" : "+p*" + most);
    if (whole) return {line};
    return {"for p in 0.." + pieces, line, "end"};
  }
  static Lines all(Lines a, const Lines& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  void groups() {
    if (swap()) return pairs_of_gpus();
    const auto s = sends();
    const auto peer = [&](const std::string& t) { return "(" + s.first + "+" + t + ")%N"; };
    const auto to_d = [&](const std::string& t) {
      Lines l{"let d = " + peer(t)};
      if (!s.of_peer.empty()) l.push_back(s.of_peer);
      return l;
    };
    const auto copy = packets("copy_linear", s.bytes, {{"src", s.from}, {"dst", s.to}});
    each_ = s.each;
    if (gather() && o_.variant == Variant::pcpy) {
      // Each GPU pushes with an engine of its own.
      each_ = {"for t in 1..N", "let i = (root+t)%N"};
      Lines body{"let part = " + part_of_gpu("i")};
      groups_ = {{.number = "0",
                  .peer = "root",
                  .packets = all(body, packets("copy_linear", "part",
                                               {{"src", {gpu("i", "buf"), plus_offset("i*chunk")}},
                                                {"dst", {gpu("root", "buf"), plus_offset("i*chunk")}}}))}};
      count_ = "(N-1)";
      return;
    }
    const auto times_senders = [&](const std::string& n) { return rooted() ? n : product("N", n); };
    const auto count = "(" + s.count + ")";
    if (o_.variant == Variant::pcpy) {
      groups_ = {{all({"for k in 0.." + s.count}, to_d("k+1")), "k", "d", copy}};
      count_ = times_senders(count);
    } else if (o_.variant == Variant::bcst) {
      auto second = s.to;
      second.buffer = gpu("d2", "buf");
      groups_ = {{{"for k in 0..(N-1)/2", "let d = " + peer("2*k+1"), "let d2 = " + peer("2*k+2")},
                  "k",
                  "d2",
                  packets("copy_broadcast", s.bytes, {{"src", s.from}, {"dst1", s.to}, {"dst2", second}})},
                 {all({"for k in (N-1)/2..N/2   # a peer that is left over"}, to_d("N-1")), "k", "d", copy}};
      count_ = times_senders("(N/2)");
    } else if (o_.peers_per_engine == 0) {
      groups_ = {{{}, "0", peer("1"), all(all({"for t in " + from_one_to(s.count)}, to_d("t")), all(copy, {"end"}))}};
      count_ = times_senders("1");
    } else {
      const auto m = std::to_string(o_.peers_per_engine);
      const auto number = "((" + s.count + "+" + m + "-1)/" + m + ")";
      groups_ = {{{"for k in 0.." + number, "let rest = " + s.count + "-k*" + m,
                   "let peers = " + m + "-(" + m + "-rest)*" + at_most_one(m + "/(rest+1)")},
                  "k",
                  peer("(k*" + m + "+1)"),
                  all(all({"for t in k*" + m + "+1..k*" + m + "+1+peers"}, to_d("t")), all(copy, {"end"}))}};
      count_ = times_senders(number);
    }
  }

  /// GPU i drives the pair (i, j), i < j, if i + j is even, and
  /// j otherwise: driver, peer and number of the driver's group.
  void pairs_of_gpus() {
    each_ = {"for a in 0..N", "for b in a+1..N", "let odd = (a+b)%2", "let i = a+(b-a)*odd", "let d = a+b-i"};
    groups_ = {{{},
                "odd*(a/2)+(1-odd)*((a+1)/2+(b-a)/2-1)",
                "d",
                packets("copy_swap", "chunk",
                        {{"a", {gpu("i", "buf"), plus_offset("d*chunk")}},
                         {"b", {gpu("d", "buf"), plus_offset("i*chunk")}}})}};
    count_ = "(N*(N-1)/2)";
  }

  void buffers() {
    const auto one = [&](const char* name, const char* bytes) {
      return "buffer gpu*." + std::string(name) + " bytes=" + plus_offset(bytes) +
             (o_.alignment == 1 ? "" : " align=" + size_text(o_.alignment)) + " init=random";
    };
    if (out_of_place()) lines({one("in", "bytes"), one("out", "N*chunk")});
    else lines({one("buf", swap() ? "N*chunk" : "bytes")});
  }

  /// The lines for each group, in the order of the groups.
  template <class Body> void each_group(Body body) {
    lines(each_);
    for (const auto& g : groups_) inside(g.open, body(g));
    for (const auto& l : each_)
      if (l.starts_with("for ")) text_ += "end\n";
  }
  static std::string word(const char* what, const Group& g) {
    return "host." + std::string(what) + "{i}_" + in_name(g.number);
  }
  bool one_done() const { return o_.completion == Completion::atomic; }
  bool one_go() const { return o_.prelaunch == Prelaunch::shared; }
  bool many_go() const { return o_.prelaunch == Prelaunch::per_group; }

  void signals() {
    if (one_go()) lines({"signal host.go value=0"});
    if (one_done()) lines({"signal host.done value=0"});
    if (one_done() && !many_go()) return;
    each_group([&](const Group& g) {
      Lines l;
      if (many_go()) l.push_back("signal " + word("go", g) + " value=0");
      if (!one_done())
        l.push_back("signal " + word("done", g) + " value=0" + (o_.completion == Completion::fence ? " bits=32" : ""));
      return l;
    });
  }

  std::string engine(const Group& g) const {
    const auto& all = o_.engines;
    if (all.empty()) return "peer=gpu{" + g.peer + "}";
    const auto first = "engine=" + std::to_string(all.front());
    if (all.size() == 1) return first;
    const auto step = engine_step(1);
    return first + (step < 0 ? "-" : "+") + std::to_string(std::abs(step)) + "*((" + g.number + ")%" +
           std::to_string(all.size()) + ")";
  }

  void queues() {
    each_group([&](const Group& g) {
      Lines l{"queue gpu{i}." + std::string(name(o_.variant)) + in_name(g.number) + " " + engine(g) +
              (o_.ring_bytes == 0 ? "" : " ring=" + size_text(o_.ring_bytes))};
      if (o_.prelaunch != Prelaunch::off)
        l.push_back("poll_mem addr=" + (one_go() ? "host.go" : word("go", g)) + " func=ge reference=epoch");
      l = all(l, g.packets);
      if (one_done()) l.push_back("atomic op=add_rtn_64 addr=host.done value=1");
      if (o_.completion == Completion::two_fences) l.push_back("fence addr=" + word("done", g) + "[4] value=0");
      if (!one_done()) l.push_back("fence addr=" + word("done", g) + " value=epoch");
      l.emplace_back("end");
      return l;
    });
  }

  void expectations() {
    const auto expect = [](const Address& to, const Address& from, const std::string& bytes) {
      const auto range = [&](const Address& a) { return a.buffer + "[" + a.offset + "..+" + bytes + "]"; };
      return "expect " + range(to) + " == old " + range(from);
    };
    if (swap()) {
      const Address a{gpu("i", "buf"), plus_offset("d*chunk")}, b{gpu("d", "buf"), plus_offset("i*chunk")};
      // After an even number of exchanges, everything is back in its place.
      const bool back = o_.epochs % 2 == 0;
      return inside(each_, {expect(b, back ? b : a, "chunk"), expect(a, back ? a : b, "chunk")});
    }
    const auto s = sends();
    Lines open = s.each;
    open.push_back("for t in " + from_one_to(s.count));
    open.push_back("let d = (" + s.first + "+t)%N");
    if (!s.of_peer.empty()) open.push_back(s.of_peer);
    inside(open, {expect(s.to, s.from, s.bytes)});
  }

  /// Stores to the triggers, and waits for the completions, of one round.
  void triggers(const std::string& value) {
    if (one_go()) lines({"set host.go = " + value});
    else each_group([&](const Group& g) { return Lines{"set " + word("go", g) + " = " + value}; });
  }
  void waits(const std::string& value) {
    if (one_done()) lines({"wait host.done >= " + product(count_, value)});
    else each_group([&](const Group& g) { return Lines{"wait " + word("done", g) + " >= " + value}; });
  }

  void host() {
    const auto last = std::to_string(o_.epochs);
    lines({"host main"});
    if (o_.prelaunch == Prelaunch::off) {
      if (o_.epochs > 1) lines({"repeat " + last});
      lines({"submit *"});
      waits(o_.epochs > 1 ? "epoch" : "1");
      if (o_.epochs > 1) lines({"end"});
    } else {
      lines({"submit *"});
      if (o_.epochs > 1) {
        lines({"repeat " + std::to_string(o_.epochs - 1)});
        triggers("epoch");
        waits("epoch");
        lines({"submit *", "end"});
      }
      triggers(last);
      waits(last);
    }
    lines({"end"});
  }

  const Options& o_;
  std::string text_{};
  Lines each_{};  ///< loops over the GPUs whose queues `groups_` are; they define i
  std::vector<Group> groups_{};
  std::string count_{};  ///< how many groups there are
};

}  // namespace

PlanSource source_of(const Plan& p) {
  Source source{p.options};
  if (auto why = source.why_not(); !why.empty()) return {.why_not = std::move(why)};
  auto text = source.text();
  const auto read = sdma::parse_schedule(text);
  if (read && *read == p.schedule) return {.text = std::move(text)};
  const auto& o = p.options;
  if (o.collective != Collective::broadcast && chunk_of(o) * (o.gpus - 1) >= o.bytes)
    return {.why_not = "some GPU has no part"};
  if (!p.notes.empty() || o.variant == Variant::swap)
    return {.why_not = "it needs other packets than " + std::string(name(o.variant))};
  return {.why_not = "its groups have no form with loops"};
}

}  // namespace collectives
