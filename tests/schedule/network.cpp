// SPDX-License-Identifier: MIT
// Ranks of several nodes: the transport, what binds and what is refused, and what a word of the network says.
#include "sdma/schedule/exchange.hpp"
#include "support.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <deque>

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;

namespace {

/// A GPU of one node sends to one of another, and each host waits for a word of its own.
const std::string kSends =
    "sdma 1\ngpus 2\nbuffer gpu0.in bytes=3M init=random\nbuffer gpu1.out bytes=3M init=zero\n"
    "signal host.sent value=0\nsignal gpu1.there value=0 bits=32\n"
    "queue gpu0.q peer=gpu1 network=1\n  copy_linear bytes=3M src=gpu0.in dst=gpu1.out\n"
    "  fence addr=gpu1.there value=epoch\n  atomic op=add_rtn_64 addr=host.sent value=1\nend\n"
    "host sender\n  submit gpu0.q\n  wait host.sent == 1\nend\n"
    "host receiver\n  wait gpu1.there == 1\nend\n"
    "expect gpu1.out == old gpu0.in\nexpect host.sent == 1\n";

/// Keeps what rank 0 has sent, from the first large message on, until rank 0 has ended.
class Slow final : public Transport {
 public:
  Slow(Transport& t, bool keeps) : to_(t), keeps_(keeps) {}
  void send(std::uint32_t rank, std::vector<std::byte> message) override { to_.send(rank, std::move(message)); }
  std::optional<Message> receive() override {
    auto m = to_.receive();
    if (m && keeps_ && (m->bytes.size() > 1000 || !kept_.empty())) {
      kept_.push_back(*std::move(m));
      return {};
    }
    if (m || kept_.empty() || !to_.ended(0)) return m;
    m = std::move(kept_.front());
    kept_.pop_front();
    return m;
  }
  std::uint64_t unsent() const noexcept override { return to_.unsent(); }
  bool ended(std::uint32_t rank) const noexcept override { return to_.ended(rank) && kept_.empty(); }

 private:
  Transport& to_;
  bool keeps_;
  std::deque<Message> kept_;
};

struct How {
  std::chrono::nanoseconds timeout = 60s;
  NodeSizes per_node{{1}}, odd{};  ///< odd: of rank 1, if it has sizes
  bool slow = false;               ///< rank 1 receives no bytes, and has time
  std::uint32_t gpus = 0;          ///< of each node's device; 0: all
  std::uint64_t seed = 0;          ///< of rank 0
};
/// What the ranks find, in their order.
std::vector<std::string> found(const std::string& text, std::uint32_t ranks, const How& how = {}) {
  const auto s = parse(text);
  const auto all = in_ranks(ranks, 60s, [&](std::uint32_t rank, Exchange& exchange, Transport& sockets) -> std::string {
    const auto d = node(how.gpus != 0 ? how.gpus : s.gpus, Ordering::adversarial, how.seed + rank);
    Slow network(sockets, how.slow && rank == 1);
    const auto b = bind(s, *d,
                        {.rank = rank,
                         .ranks = ranks,
                         .exchange = &exchange,
                         .ranks_per_node = rank == 1 && how.odd.grouped() ? how.odd : how.per_node,
                         .transport = &network});
    if (!b) return lines(b.error());
    const auto r = run(*b, {.time_limit = rank == 0 ? how.timeout : 60s, .contents = !how.slow});
    return lines(r.findings);
  });
  REQUIRE(all);
  std::vector<std::string> out(ranks);
  for (const auto& r : *all) out[r.rank] = r.answer ? *r.answer : r.end;
  return out;
}
std::string joined(const std::vector<std::string>& all) {
  std::string out;
  for (const auto& one : all) out += one;
  return out;
}

}  // namespace

TEST_CASE("a socket carries whole messages, in their order, and says that a rank has ended") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  SocketTransport a({-1, ends[0]}), b({ends[1], -1});
  const std::vector<std::size_t> sizes{0, 1, 300, 5'000'000, 7};
  for (const auto n : sizes) a.send(1, std::vector<std::byte>(n, std::byte(n % 251)));
  CHECK(a.unsent() > 4'000'000);  // more than a socket holds
  for (const auto n : sizes) {
    std::optional<Transport::Message> m;
    for (int i = 0; i < 100'000 && !m; ++i) {
      m = b.receive();
      CHECK_FALSE(a.receive());
    }
    REQUIRE(m);
    CHECK(m->from == 0);
    CHECK(m->bytes == std::vector<std::byte>(n, std::byte(n % 251)));
  }
  CHECK(a.unsent() == 0);
  CHECK_FALSE(b.receive());
  CHECK_FALSE(b.ended(0));
  a.send(1, {std::byte{9}});
  close(ends[0]);
  CHECK(b.receive());  // what came before the end
  CHECK_FALSE(b.receive());
  CHECK(b.ended(0));
  b.send(0, {std::byte{1}});
  CHECK(b.unsent() == 0);
  close(ends[1]);
}

TEST_CASE("what a rank throws ends its process, and does not go on in a copy of the caller") {
  const auto all = in_ranks(2, 60s, [](std::uint32_t rank, Exchange&) -> std::string {
    if (rank == 1) throw std::runtime_error("it cannot work");
    return "well";
  });
  REQUIRE(all);
  REQUIRE(all->size() == 2);
  CHECK((*all)[0].end.ends_with("ended with code 127 before it had an answer"));
  CHECK((*all)[1].answer == "well");
}

TEST_CASE("an adversarial run between nodes follows from its seed, and shows words that change in another order") {
  // The first word travels to the other node and back, so it may come after the answer to the second one.
  const std::string out_of_order =
      "sdma 1\ngpus 2\nsignal gpu1.w value=0 bits=32\nsignal host.a value=0 bits=32\nsignal host.z value=0 bits=32\n"
      "queue gpu0.out peer=gpu1 network=1\n  fence addr=host.a value=1\n  fence addr=gpu1.w value=1\nend\n"
      "queue gpu1.back peer=gpu0 network=1\n  poll_mem addr=gpu1.w func=eq reference=1\n"
      "  fence addr=host.z value=1\nend\n"
      "host a\n  submit gpu0.out\n  wait host.z == 1\n  set host.a = 2\nend\n"
      "host b rank=1\n  submit gpu1.back\nend\nexpect host.a == 2\n";
  // An addition by the network to the memory of a GPU goes over the bus: an engine's addition gets lost between.
  const std::string two_adders =
      "sdma 1\ngpus 2\nsignal gpu1.w value=0\nsignal host.done value=0\n"
      "queue gpu0.out peer=gpu1 network=1\n  atomic op=add_rtn_64 addr=gpu1.w value=1\n"
      "  atomic op=add_rtn_64 addr=host.done value=1\nend\n"
      "queue gpu1.x engine=0\n  atomic op=add_rtn_64 addr=gpu1.w value=1\nend\n"
      "host a\n  submit gpu0.out\n  wait host.done == 1\nend\n"
      "host b rank=1\n  submit gpu1.x\n  wait gpu1.w >= 1\nend\nexpect gpu1.w == 2\n";
  for (const auto& text : {out_of_order, two_adders}) {
    std::size_t failed = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto first = found(text, 2, {.seed = seed});
      CAPTURE(seed, text);
      CHECK(found(text, 2, {.seed = seed}) == first);
      failed += !joined(first).empty();
    }
    CHECK(failed >= 2);
    CHECK(failed < 20);
  }
}

TEST_CASE("bytes of a queue of the network are in the other node before its words change") {
  for (int i = 0; i < 3; ++i) CHECK(joined(found(kSends, 2)).empty());
}

TEST_CASE("a node's device need not have the GPUs of other nodes") {
  CHECK(joined(found(kSends, 2, {.gpus = 1})).empty());
}

TEST_CASE("a word of the sender says what the other node has, and not only what was sent") {
  const auto all = found(kSends, 2, {.timeout = 2s, .slow = true});
  CHECK(all[0].find("host.sent is 0 after 2000ms") != std::string::npos);
}

TEST_CASE("what cannot work between nodes is refused when it is bound") {
  const auto s = parse(kSends);
  const auto d = node(2);
  SocketExchange none({-1, -1});
  const auto refused = [&](const Schedule& schedule, const BindOptions& o) {
    return lines(bind(schedule, *d, o).error());
  };
  CHECK(refused(s, {.ranks = 2, .exchange = &none, .ranks_per_node = {{1}}}) ==
        "bind: the nodes have no way to pass each other bytes");
  auto five = s;
  five.gpus = 5;
  CHECK(refused(five, {.ranks = 5, .exchange = &none, .ranks_per_node = {{3}}}) ==
        "bind: 5 ranks are not whole nodes of 3");
  SocketTransport network({-1, -1});
  const auto of_text = [&](std::string text, const std::string& was, const std::string& now) {
    text.replace(text.find(was), was.size(), now);
    return refused(parse(text), {.ranks = 2, .exchange = &none, .ranks_per_node = {{1}}, .transport = &network});
  };
  CHECK(of_text(kSends, "== old gpu0.in", "== gpu0.in") ==
        "expect gpu1.out == gpu0.in: it compares bytes of two nodes, and each sees only its own");
  CHECK(of_text(kSends, "  wait host.sent == 1\n", "  wait host.sent == 1\n  wait gpu1.there == 1\n") ==
        "host sender: a host thread of node 0 waits for gpu1.there, which is in node 1");
  CHECK(of_text(kSends, " network=1", "").find("which is in node 1") != std::string::npos);
  CHECK(of_text(kSends, "host sender", "host sender rank=1") ==
        "host sender: it is of rank 1, and what it uses is in node 0");
}

TEST_CASE("ranks that disagree about nodes are refused") {
  auto text = kSends;
  text.replace(text.find("gpus 2"), 6, "gpus 4");
  for (auto at = text.find("gpu1"); at != text.npos; at = text.find("gpu1")) text[at + 3] = '2';
  const auto all = found(text, 4, {.per_node = {{2}}, .odd = {{1, 3}}});
  CHECK(all[0].starts_with("rank 1: it does not group the ranks to the nodes that rank 0 has"));
}
