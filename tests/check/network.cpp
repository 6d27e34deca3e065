// SPDX-License-Identifier: MIT
// The network's own rules: words of two nodes, what its additions are, who sees its bytes, and what that assumes.
#include "checked.hpp"
#include "sdma/device/topology.hpp"

using namespace sdma;
using sdma::test::checked;
using sdma::test::has;
using sdma::test::said;

namespace {

const std::string kTwoNodes =
    "gpus 4\nbuffer gpu0.s bytes=4K init=random\nbuffer gpu2.d bytes=4K\nbuffer gpu3.e bytes=4K\n"
    "buffer host.h bytes=4K\n"
    "signal gpu2.w value=0\nsignal host.a value=0 bits=32\nsignal host.z value=0 bits=32\nsignal host.done value=0\n";
/// Two nodes of two GPUs.
CheckReport on_two_nodes(const std::string& text, CheckOptions o = {}) {
  const auto node = *layout("nodes:2x2");
  o.topology = &node;
  return checked(kTwoNodes + text, std::move(o));
}
std::string out(const std::string& packets) { return "queue gpu0.out peer=gpu2 network=1\n" + packets + "end\n"; }

/// A thread of node 0 sends; one of node 1 answers by way of its own network when it has seen gpu2.w.
std::string answered(const std::string& packets, const std::string& last = "set host.a = 2", const char* rounds = "1") {
  return out(packets) +
         "queue gpu3.back peer=gpu1 network=1\n  poll_mem addr=gpu2.w func=ge reference=1\n"
         "  fence addr=host.z value=1\nend\n"
         "host a\n  repeat " +
         rounds + "\n    submit gpu0.out\n  end\n  wait host.z == 1\n  " + last +
         "\nend\n"
         "host b\n  submit gpu3.back\nend\n";
}
const std::string kOwn = "  fence addr=host.a value=1\n", kPeers = "  atomic op=add_rtn_64 addr=gpu2.w value=1\n";

/// The network's bytes go on to another GPU of their node.
std::string passed_on(const std::string& word, const std::string& more = "", const std::string& from = "gpu2.d") {
  return out("  copy_linear bytes=4K src=gpu0.s dst=" + from + "\n  " + word + "\n") + more +
         "queue gpu2.fwd peer=gpu3\n  poll_mem addr=gpu2.w func=ge reference=1\n  copy_linear bytes=4K src=" + from +
         " dst=gpu3.e\n  atomic op=add_rtn_64 addr=host.done value=1\nend\n"
         "host a\n  submit gpu0.out\nend\nhost b\n  submit gpu2.fwd\n  wait host.done == 1\nend\n";
}
const std::string kFence = "fence addr=gpu2.w value=1", kAdd = "atomic op=add_rtn_64 addr=gpu2.w value=1";

bool assumes(const CheckReport& r, const std::string& option) {
  return std::find(r.assumes.begin(), r.assumes.end(), option) != r.assumes.end();
}

}  // namespace

TEST_CASE("a word of the sender's node may change after a word of the peer's that comes later in the queue") {
  CHECK(has(on_two_nodes(answered(kOwn + kPeers)), "fence-race"));
  CHECK(said(on_two_nodes(answered(kPeers + kOwn, "wait host.a == 1"))) == "");
  CHECK(said(on_two_nodes(answered(kOwn + kPeers, "wait host.a == 1"))) == "");
  // The next submit brings the peer's word, too.
  CHECK(has(on_two_nodes(answered(kPeers + kOwn), {}), "fence-race"));
  CHECK(has(on_two_nodes(answered(kPeers + kOwn, "set host.a = 2", "2")), "fence-race"));
}

TEST_CASE("a word that no thread uses may be in either node, so nothing is concluded from a word of the peer's node") {
  const auto ends = [](const std::string& packets) {
    return on_two_nodes(answered(packets, "") + "expect host.a == 1\n");
  };
  const auto before = ends(kOwn + kPeers);
  CHECK_FALSE(before.proved());
  CHECK(has(before, "freed-while-polled"));
  CHECK_FALSE(ends(kPeers + kOwn).proved());
  CHECK(on_two_nodes(answered(kOwn + kPeers, "wait host.a == 1") + "expect host.a == 1\n").proved());
}

TEST_CASE("words of one node change in the order of the queue") {
  const std::string order = "  fence addr=host.a value=1\n  atomic op=add_rtn_64 addr=host.done value=1\n";
  // host.done says that host.a is 1, though a word of the peer comes after both.
  const auto text = out(order + kPeers) +
                    "host a\n  submit gpu0.out\n  wait host.done == 1\n  set host.a = 2\nend\n"
                    "host b\n  wait gpu2.w == 1\nend\n";
  Profile reads;
  reads.bar_read_free = true;
  CHECK(on_two_nodes(text, {.profile = reads}).proved());
}

TEST_CASE("what the network adds to VRAM, no other agent adds to") {
  CHECK(said(on_two_nodes(passed_on(kAdd))) == "");
  auto both = passed_on(kAdd, "queue gpu3.x peer=gpu2\n  " + kAdd + "\nend\nhost c\n  submit gpu3.x\nend\n");
  both.replace(both.find("reference=1"), 11, "reference=2");
  const auto r = on_two_nodes(both);
  CHECK(r.verdict() == Verdict::unproved);
  CHECK(said(r).find("host-vram: gpu0.out adds to gpu2.w as a thread of the host does") != std::string::npos);
  Profile coherent;
  coherent.host_link_xgmi = true;
  CHECK_FALSE(has(on_two_nodes(both, {.profile = coherent}), "host-vram"));
}

TEST_CASE("two queues of the network add to one word: in VRAM, an addition may be lost, whatever thread serves them") {
  const auto two = [](const std::string& word, const std::string& second) {
    const auto add = "atomic op=add_rtn_64 addr=" + word + " value=1\n";
    return on_two_nodes(out("  " + add) + "queue " + second + " network=1\n  " + add +
                        "end\nhost a\n  submit *\nend\nhost b\n  wait " + word + " == 2\nend\n");
  };
  // Of the peer's node, for the same peer and for another one; of the sender's, where each sender has a thread.
  for (const auto* second : {"gpu1.x peer=gpu2", "gpu0.x peer=gpu2", "gpu1.x peer=gpu3"}) {
    INFO(second);
    const auto r = two("gpu2.w", second);
    CHECK(r.verdict() == Verdict::unproved);
    CHECK(said(r).find("host-vram: gpu0.out adds to gpu2.w as a thread of the host does") != std::string::npos);
  }
  CHECK_FALSE(has(two("host.done", "gpu1.x peer=gpu2"), "host-vram"));
  // One queue passes one packet on after another.
  CHECK(said(on_two_nodes(passed_on(kAdd, "", "gpu2.d"))) == "");
  const auto twice = on_two_nodes(out("  " + kAdd + "\n  " + kAdd + "\n") +
                                  "queue gpu2.fwd peer=gpu3\n  poll_mem addr=gpu2.w func=ge reference=2\n"
                                  "  atomic op=add_rtn_64 addr=host.done value=1\nend\n"
                                  "host a\n  submit gpu0.out\nend\n"
                                  "host b\n  submit gpu2.fwd\n  wait host.done == 1\nend\n");
  CHECK(said(twice) == "");
}

TEST_CASE("an engine reads what the network has stored in VRAM: proved where the network flushes, and said so") {
  const auto r = on_two_nodes(passed_on(kFence));
  CHECK(r.proved());
  CHECK(r.assumes == std::vector<std::string>{"network_data=flushed"});
  Profile none;
  none.network_flushes = false;
  const auto unflushed = on_two_nodes(passed_on(kFence), {.profile = none});
  CHECK(said(unflushed) ==
        "network-unflushed: gpu2.fwd reads gpu2.d, which the network (gpu0.out) has stored in VRAM: without a flush "
        "there, it may read old bytes\n");
  CHECK(unflushed.findings.at(0).rests_on.at(0)->id == "C7");
  const auto by_host = on_two_nodes(passed_on(kFence, "", "host.h"), {.profile = none});
  CHECK_FALSE(has(by_host, "network-unflushed"));
  CHECK(by_host.proved());
  CHECK(on_two_nodes(passed_on(kFence, "", "host.h")).assumes.empty());
}

TEST_CASE("with a queue of the network, what is not assumed about the order inside queues is not said to be") {
  const auto r = on_two_nodes(passed_on(kFence), {.profile = Profile::strict()});
  CHECK(r.proved());
  CHECK_FALSE(assumes(r, "copies=inorder"));
  CHECK_FALSE(assumes(r, "fence=full"));
  CHECK(assumes(r, "poll_yields=yes"));
  CHECK(assumes(checked("gpus 1\nhost main\nend\n", {.profile = Profile::strict()}), "copies=inorder"));
}
