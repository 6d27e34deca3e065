// SPDX-License-Identifier: MIT
// Several nodes: what reaches into another one is an error with its line.
#include "checked.hpp"
#include "sdma/device/topology.hpp"

using namespace sdma;
using sdma::test::checked;
using sdma::test::has;
using sdma::test::said;

namespace {

const std::string kStart =
    "gpus 4\nbuffer gpu0.a bytes=4K\nbuffer gpu1.b bytes=4K\nbuffer gpu2.c bytes=4K\nsignal gpu2.at value=0\n"
    "signal host.x value=0\nsignal host.y value=0\n";
/// Two nodes of two GPUs.
CheckReport on_nodes(const std::string& text) {
  const auto node = *layout("nodes:2x2");
  return checked(kStart + text, {.topology = &node});
}
std::string queue(const std::string& head, const std::string& packets) {
  return "queue " + head + "\n" + packets + "end\n";
}
std::string host(const std::string& name, const std::string& actions) {
  return "host " + name + "\n" + actions + "end\n";
}
const std::string kInside = "  copy_linear bytes=4K src=gpu0.a dst=gpu1.b\n",
                  kCounts = "  atomic op=add_rtn_64 addr=host.x value=1\n";
const std::string kMain = host("main", "  submit gpu0.q\n  wait host.x == 1\n");

}  // namespace

TEST_CASE("an engine reaches its own node") {
  CHECK(said(on_nodes(queue("gpu0.q peer=gpu1", kInside + kCounts) + kMain)) == "");
  const auto r =
      on_nodes(queue("gpu0.q peer=gpu2", "  copy_linear bytes=4K src=gpu0.a dst=gpu2.c\n" + kCounts) + kMain);
  CHECK(said(r) == "other-node: gpu0.q: an engine of node 0 writes gpu2.c, which is in node 1\n");
  REQUIRE(r.findings.size() == 1);
  CHECK(r.findings[0].diagnostic.where == "case.sdma:10:3");
  CHECK(r.verdict() == Verdict::refuted);
  CHECK(said(on_nodes(queue("gpu0.q peer=gpu2", "  copy_linear bytes=4K src=gpu2.c dst=gpu0.a\n" + kCounts) + kMain)) ==
        "other-node: gpu0.q: an engine of node 0 reads gpu2.c, which is in node 1\n");
  CHECK(said(on_nodes(queue("gpu0.q peer=gpu1", "  fence addr=gpu2.at value=1\n" + kCounts) + kMain))
            .starts_with("other-node: gpu0.q: an engine of node 0 writes gpu2.at, which is in node 1\n"));
}

TEST_CASE("host memory and host threads are in the node of what uses them") {
  const auto both = queue("gpu0.q peer=gpu1", kInside + kCounts) + queue("gpu2.r peer=gpu3", kCounts);
  CHECK(said(on_nodes(both + host("main", "  submit *\n  wait host.x == 2\n"))) ==
        "other-node: host main: a host thread of node 0 submits gpu2.r, whose doorbell is in node 1\n"
        "other-node: gpu2.r: an engine of node 1 writes host.x, which is in node 0\n");
  const auto r = on_nodes(queue("gpu0.q peer=gpu1", kInside + kCounts) +
                          host("main", "  submit gpu0.q\n  wait host.x == 1\n  add gpu2.at += 1\n"));
  CHECK(said(r).starts_with("other-node: host main: a host thread of node 0 stores to gpu2.at, which is in node 1\n"));
  CHECK(r.findings[0].diagnostic.where == "case.sdma:16:3");
  CHECK(said(on_nodes(queue("gpu0.q peer=gpu1", kInside + kCounts) +
                      host("main", "  submit gpu0.q\n  wait host.x == 1\n  load gpu2.c\n")))
            .starts_with("other-node: host main: a host thread of node 0 reads gpu2.c, which is in node 1\n"));
  // One node has the words of one thread, and the other those of the other.
  CHECK(said(on_nodes(queue("gpu0.q peer=gpu1", kInside + kCounts) +
                      queue("gpu2.r peer=gpu3", "  atomic op=add_rtn_64 addr=host.y value=1\n") + kMain +
                      host("other", "  submit gpu2.r\n  wait host.y == 1\n"))) == "");
  CHECK(said(on_nodes(queue("gpu0.q peer=gpu1", kInside + kCounts) + kMain +
                      "kernel gpu2.k\n  wait host.x == 1\nend\n")) ==
        "other-node: kernel gpu2.k: a kernel of node 1 waits for host.x, which is in node 0\n");
}

// A thread of node 0 sends, one of node 1 sees that the bytes are there.
namespace {

const std::string kSend = "  copy_linear bytes=4K src=gpu0.a dst=gpu2.c\n  fence addr=gpu2.at value=1\n";
std::string send(const std::string& packets, const std::string& receives) {
  return queue("gpu0.net peer=gpu2 network=1", packets + "  atomic op=add_rtn_64 addr=host.x value=1\n") +
         queue("gpu2.q peer=gpu3", receives + "  atomic op=add_rtn_64 addr=host.y value=1\n") +
         host("zero", "  submit gpu0.net\n  wait host.x == 1\n") +
         host("one", "  submit gpu2.q*\n  wait host.y == 1\n");
}
const std::string kPoll = "  poll_mem addr=gpu2.at func=ge reference=1\n",
                  kRead = "  copy_linear bytes=2K src=gpu2.c dst=gpu2.c[2K]\n";

}  // namespace

TEST_CASE("the network sends: the bytes are there when its word is set, and nothing else is promised") {
  CHECK(said(on_nodes(send(kSend, kPoll + kRead))) == "");
  CHECK(has(on_nodes(send(kSend, kRead)), "race"));
  CHECK(
      has(on_nodes(send("  fence addr=gpu2.at value=1\n  copy_linear bytes=4K src=gpu0.a dst=gpu2.c\n", kPoll + kRead)),
          "race"));
  // No profile orders what the network sends.
  const auto node = *layout("nodes:2x2");
  const auto twice = "  copy_linear bytes=4K src=gpu0.a dst=gpu2.c\n" + kSend;
  for (const auto& p : {Profile::conservative(), Profile::rocr(), Profile::strict()})
    CHECK(has(checked(kStart + send(twice, kPoll), {.profile = p, .topology = &node}), "race"));
}

TEST_CASE("the network leads to another node, and executes few packets") {
  CHECK(said(on_nodes(queue("gpu0.q peer=gpu1 network=1", kInside + kCounts) + kMain)) ==
        "other-node: gpu0.q: the network leads to another node, but gpu0 and gpu1 are in node 0\n");
  CHECK(said(on_nodes(send("  copy_linear bytes=4K src=gpu2.c dst=gpu0.a\n  fence addr=gpu2.at value=1\n", kPoll)))
            .starts_with("other-node: gpu0.net: the network of node 0 reads gpu2.c, which is in node 1\n"));
  CHECK(said(on_nodes(send("  poll_mem addr=gpu2.at func=eq reference=0\n" + kSend, kPoll)))
            .starts_with("other-node: gpu0.net: the network of node 0 reads gpu2.at, which is in node 1\n"));
  const auto r = on_nodes(send("  nop\n" + kSend, kPoll));
  CHECK(said(r).starts_with("engine-refused: gpu0.net: the network does not execute nop\n"));
  CHECK(r.findings[0].diagnostic.where == "case.sdma:10:3");
}
