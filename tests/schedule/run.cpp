// SPDX-License-Identifier: MIT
#include "sdma/schedule/run.hpp"

#include "../../lib/schedule/compare.hpp"
#include "support.hpp"
#include "support/sanitizer.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;

namespace {

constexpr std::array kOrderings{Ordering::strict, Ordering::rocr, Ordering::adversarial};

std::string run_once(const std::string& text, const RunOptions& o = {}, Ordering order = Ordering::strict) {
  const auto d = node(4, order, 3);
  return lines(run(link(parse(text), *d), o).findings);
}

const std::string kCopy =
    "sdma 1\ngpus 2\nbuffer gpu0.in bytes=64K init=random\nbuffer gpu1.out bytes=64K init=zero\nsignal host.done "
    "value=0\n"
    "queue gpu0.q peer=gpu1\n  copy_linear bytes=32K src=gpu0.in dst=gpu1.out\n"
    "  atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\n  submit *\n  wait host.done == 1\nend\n";

}  // namespace

TEST_CASE("the examples run right for every number of GPUs, in all orderings") {
  for (const auto* name : {"1_copy", "2_allgather_b2b", "3_alltoall_swap", "4_broadcast", "5_allgather_prelaunch",
                           "6_kv_fetch", "9_allgather_open", "10_overlap", "11_stream_order"}) {
    const auto text = read(std::string("examples/schedules/") + name + ".sdma");
    const bool many = text.find("param N") != text.npos;
    for (const auto order : kOrderings)
      for (std::uint32_t n = 2; n <= (many ? 8u : 2u); n += address_sanitizer() ? 3 : 1) {
        ParseOptions options;
        if (many) options.set = {{"N", std::to_string(n)}};
        if (text.find("param chunk") != text.npos) options.set.push_back({"chunk", "4K"});
        const auto s = parse(text, options);
        const auto d = node(8, order, n);
        const auto r = run(link(s, *d), {.time_limit = 60s, .seed = n});
        INFO(name << " N=" << n << " " << sdma::name(order));
        CHECK(lines(r.findings) == "");
      }
  }
}

TEST_CASE("any GPUs of a node, and the same Bound again") {
  const auto d = node();
  const auto b = link(parse(read("examples/schedules/2_allgather_b2b.sdma"), {.set = {{"N", "3"}}}), *d,
                      {.gpus = {GpuId{6}, GpuId{1}, GpuId{4}}});
  for (std::uint64_t seed = 0; seed < 5; ++seed) CHECK(lines(run(b, {.time_limit = 60s, .seed = seed}).findings) == "");
}

TEST_CASE("a schedule for a checker is not run") {
  CHECK(run_once(read("examples/schedules/7_race.sdma"))
            .starts_with("expect finding: this schedule contains a deliberate error"));
}

TEST_CASE("an expectation that fails says which bytes of which buffer differ") {
  CHECK(run_once(kCopy +
                 "expect gpu1.out[0..32K] == gpu0.in[0..32K]\nexpect gpu1.out[32K..+32K] == old gpu1.out[0..32K]\n")
            .empty());
  const auto text = run_once(kCopy + "expect gpu1.out == old gpu0.in\n");
  CHECK(text.starts_with("expect gpu1.out == old gpu0.in: 32"));
  CHECK(text.find(" of 64K bytes differ: gpu1.out[32K..+") != std::string::npos);
  CHECK(text.find("gpu1.out[32K] is 0x00, not 0x") != std::string::npos);
  CHECK(run_once(kCopy + "expect host.done == 2\n") == "expect host.done == 2: host.done is 1");
  CHECK(run_once("sdma 1\nbuffer host.a bytes=16\nbuffer host.b bytes=16 init=zero\nexpect host.a[4..+4] == "
                 "host.b[0..+4]\n") ==
        "expect host.a[4..+4] == host.b[0..+4]: 4 of 4 bytes differ: host.a[4..+4]; host.a[4] is 0xdb (poison: "
        "possibly never written), not 0x00");
}

TEST_CASE("inputs replace first contents, and must fit") {
  const std::string text =
      "sdma 1\nbuffer host.a bytes=4 init=zero\nbuffer host.b bytes=4 init=zero\nexpect host.a == host.b\n";
  const std::vector<std::byte> two{std::byte{1}, std::byte{2}};
  CHECK(run_once(text, {.inputs = {{"host.a", two}}}).find("2 of 4 bytes differ: host.a[0..+2]") != std::string::npos);
  CHECK(run_once(text, {.inputs = {{"host.a", std::vector<std::byte>(5)}}}) ==
        "input host.a: 5 bytes do not fit: the buffer has 4");
  CHECK(run_once(text, {.inputs = {{"host.c", two}}}) == "input host.c: there is no such buffer");
}

TEST_CASE("contents depend on the seed and the buffer") {
  const auto d = node();
  const auto b = link(parse("sdma 1\nbuffer host.a bytes=101 init=random\nbuffer host.b bytes=101 init=random\n"), *d);
  const auto bytes = [&](std::size_t i, std::uint64_t seed) {
    REQUIRE(run(b, {.seed = seed}));
    const auto s = b.bytes({link_buffer(i), 101});
    return std::vector<std::byte>(s.begin(), s.end());
  };
  CHECK(bytes(0, 1) == bytes(0, 1));
  CHECK(bytes(0, 1) != bytes(0, 2));
  CHECK(bytes(0, 1) != bytes(1, 1));
}

TEST_CASE("a wait that does not end names the queues that stand, and what they wait for") {
  const auto d = node(2);
  const auto b = link(parse(read("examples/schedules/1_copy.sdma")), *d);
  auto s = parse(read("examples/schedules/1_copy.sdma"));
  s.hosts[0].actions[0].queues = {1};  // the echo alone
  CHECK(with_patience(500ms, [&](auto limit) {
    const auto r = run(link(s, *d), {.time_limit = limit});
    REQUIRE(r.findings.size() == 1);
    const auto& f = r.findings[0];
    return f.where == "host main: wait host.done == 1" &&
           f.message == "host.done is 0 after " + std::to_string(limit.count()) + "ms" &&
           f.excerpt.find("gpu1.echo, gpu 1 engine") != f.excerpt.npos && f.excerpt.find("poll_mem") != f.excerpt.npos;
  }));
}

TEST_CASE("a fault ends the run at once and names its queue") {
  const auto d = node(2);
  const auto b =
      link(parse("sdma 1\ngpus 2\nbuffer gpu1.out bytes=4K\nsignal host.done value=0\nqueue gpu0.good peer=gpu1\n"
                 "  nop\nend\nqueue gpu0.bad peer=gpu1\n  copy_linear bytes=4K src=0x1000 dst=gpu1.out\n"
                 "  atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\n  submit *\n  wait host.done == 1\n"
                 "end\nexpect gpu1.out == old gpu1.out\n"),
           *d);
  const auto r = run(b, {.time_limit = 60s});
  REQUIRE(r.findings.size() == 1);
  CHECK(r.findings[0].where == "gpu0.bad");
  CHECK(r.findings[0].message.find("copy_linear") != std::string::npos);
  CHECK(b.bytes({link_buffer(0), 4096})[0] == std::byte{kPoison});
}

TEST_CASE("host threads run side by side, with rounds of their own") {
  const std::string text =
      "sdma 1\ngpus 2\nsignal host.ping value=0\nsignal host.pong value=0 bits=32\nsignal gpu0.count value=0\n"
      "queue gpu0.q peer=gpu1\n  poll_mem addr=host.ping func=ge reference=epoch\n"
      "  atomic op=add_rtn_64 addr=gpu0.count value=2\n  fence addr=host.pong value=epoch\nend\n"
      "host a\n  repeat 20\n    submit gpu0.q\n    wait host.pong >= epoch\n  end\nend\n"
      "host b\n  repeat 20\n    set host.ping = epoch\n    wait gpu0.count >= 2*epoch\n  end\nend\n"
      "expect gpu0.count == 40\nexpect host.pong == 20\n";
  for (const auto order : kOrderings) CHECK(run_once(text, {.time_limit = 60s}, order) == "");
}

TEST_CASE("one host thread that fails stops the others") {
  CHECK(run_once("sdma 1\nsignal host.a value=0\nsignal host.b value=0 bits=32\nhost fails\n  repeat 2\n"
                 "    set host.b = 0xffffffff*epoch\n  end\nend\nhost waits\n  wait host.a == 1\nend\n",
                 {.time_limit = 60s}) ==
        "host fails: set host.b = 4294967295*epoch: the value of round 2 does not fit in 32 bits: 8589934590");
}

TEST_CASE("an epoch that does not fit its field ends the run") {
  const auto d = node(2);
  const auto b =
      link(parse("sdma 1\ngpus 1\nsignal host.s value=0\nqueue gpu0.q engine=0\n  fence addr=host.s value=2G*epoch-1\n"
                 "end\nhost main\n  repeat 5\n    submit gpu0.q\n  end\nend\n"),
           *d);
  CHECK(lines(run(b, {.time_limit = 60s}).findings) ==
        "host main: submit gpu0.q: a value of epoch 3 does not fit in its field");
}

TEST_CASE("signals inside of buffers: their own bits, and no neighbours") {
  CHECK(
      run_once(
          "sdma 1\ngpus 1\nbuffer host.b bytes=64 init=random\nsignal host.low value=0 bits=32 at=host.b[4]\n"
          "signal host.word value=7 at=host.b[8]\nqueue gpu0.q engine=0\n  poll_mem addr=host.low func=eq reference=5\n"
          "  atomic op=add_rtn_64 addr=host.word value=1\nend\nhost main\n  submit *\n  set host.low = 5\n"
          "  wait host.word == 8\n  wait host.low == 5\nend\nexpect host.b[4..+4] == host.low\n"
          "expect host.b[0..+4] == old host.b[0..+4]\n",
          {.time_limit = 60s}) == "");
}

TEST_CASE("the timeout ends every loop of a host, even one that does nothing") {
  const std::string begin = kCopy.substr(0, kCopy.find("host main")) + "host main\n  submit *\n", end = "  end\nend\n";
  for (const std::string body :
       {"", "    set host.done = epoch\n", "    wait host.done >= 0\n", "    repeat 1000000000\n    end\n"}) {
    INFO(body);
    SourceMap map;
    const auto s = parse(begin + "  repeat 1000000000000\n" + body + end, {.map = &map});
    const auto d = node(2);
    CHECK(with_patience(50ms, [&](auto limit) {
      const auto r = run(link(s, *d), {.time_limit = limit, .map = &map});
      REQUIRE(r.findings.size() == 1);
      const auto said = lines(r.findings);
      CHECK(said.starts_with("host main, line 1"));
      CHECK(said.find('\n') == said.npos);
      return said.find("the run has not ended after " + std::to_string(limit.count()) + "ms, in round ") != said.npos;
    }));
  }
}

TEST_CASE("a caller that ends the run gets the report of a timeout, and how long nothing has moved") {
  auto text = kCopy;
  text.replace(text.find("host.done == 1"), 14, "host.done == 2");
  for (const auto* loop : {"  wait host.done == 2", "  repeat 1000000000\n    set host.done = 1\n  end"}) {
    INFO(loop);
    auto one = text;
    one.replace(one.find("  wait host.done == 2"), 21, loop);
    const auto d = node(2);
    const auto s = parse(one);
    const auto b = link(s, *d);
    // The owner ends the run a few looks after the queue has read everything, however long that takes.
    std::atomic<int> asked = 0;
    const auto unfinished = [&] {
      return b.value(0) != 1 || b.ring(0).positions().read != b.ring(0).positions().committed;
    };
    const auto r = run(b, {.time_limit = 3600s, .proceed = [&] { return unfinished() || ++asked < 3; }});
    CHECK(r.ended);
    CHECK(r.still > 0ns);
    REQUIRE(r.findings.size() == 1);
    CHECK(r.findings[0].where.find("host main") == 0);
  }
  // A run in which nothing moves is still from its begin, even if the first look comes after the deadline.
  text.erase(text.find("  submit *\n"), 11);
  const auto d = node(2);
  const auto r = run(link(parse(text), *d), {.time_limit = 1ms});
  CHECK_FALSE(r.ended);
  CHECK(r.still >= 1ms);
}

TEST_CASE("what differs from the expectations is counted, and without contents nothing is filled or compared") {
  const auto d = node(2);
  auto text = kCopy + "expect gpu1.out == old gpu0.in\nexpect host.done == 2\n";
  const auto b = link(parse(text), *d);
  const auto whole = run(b, {.seed = 4});
  CHECK(whole.wrong > (32 << 10) - 1000);  // a byte of random contents may be zero
  CHECK(whole.wrong <= (32 << 10) + 1);
  b.bytes({link_buffer(0), 1})[0] = std::byte{7};
  b.bytes({link_buffer(1), 64 << 10})[0] = std::byte{9};
  const auto bare = run(b, {.seed = 5, .contents = false});
  CHECK(bare);
  CHECK(bare.wrong == 0);
  CHECK(b.bytes({link_buffer(0), 1})[0] == std::byte{7});
  CHECK(b.bytes({link_buffer(1), 1})[0] == std::byte{7});  // the packets ran
  CHECK(b.value(0) == 1);                                  // and the signal began at its initial value
}

TEST_CASE("the last round begins with its trigger, and ends with the waits after it") {
  const auto round = [](const std::string& host) {
    const auto d = node(2);
    const auto text = kCopy.substr(0, kCopy.find("host main")) + "signal host.go value=0\n" + host;
    const auto r = run(link(parse(text), *d), {.time_limit = 600s});
    CHECK(lines(r.findings) == "");
    CHECK((r.round.count() == 0 || r.round <= r.elapsed));
    return std::pair{r.round, r.elapsed};
  };
  // One of several attempts, because another process may hold up a part of one.
  const auto one_of_ten = [](const auto& holds) {
    for (int i = 0; i < 10; ++i)
      if (holds()) return true;
    return false;
  };
  CHECK(one_of_ten([&] {
    const auto [one, all] = round("host main\n  submit *\n  wait host.done == 1\nend\n");
    CHECK(one.count() > 0);
    return one > all / 2;
  }));
  // What comes before the trigger is not part of the round.
  const std::string many = "host main\n  repeat 200\n    submit *\n    wait host.done >= epoch\n  end\n";
  for (const std::string end : {"end\n", "  submit *\n  set host.go = 1\n  wait host.done == 201\nend\n"})
    CHECK(one_of_ten([&] {
      const auto [last, whole] = round(many + end);
      CHECK(last.count() > 0);
      return last < whole / 20;
    }));
  CHECK(round("host main\n  submit *\nend\n").first.count() == 0);
}

TEST_CASE("the map of a text names its params") {
  SourceMap map;
  parse("sdma 1\nparam N = 2\nlet x = 3\nparam bytes = 64*N\ngpus N\n", {.map = &map});
  CHECK(map.params == std::vector<std::string>{"N", "bytes"});
}

TEST_CASE("a run starts a limited number of threads") {
  CHECK(run_once("sdma 1\nfor i in 0..2000\nhost h{i}\nend\nend\n") ==
        "run: the schedule has 2000 host threads and kernels, but a run can have 1024");
}

TEST_CASE("bytes that change while they are compared are read once") {
  const auto s = parse("sdma 1\ngpus 1\nbuffer gpu0.a bytes=64\n");
  std::array<std::byte, 64> is{}, should{};
  std::atomic<bool> stop = false;
  // The race between the two is the subject, so under the thread sanitizer nothing changes.
  std::thread writer([&] {
    for (unsigned i = 0; !stop && !thread_sanitizer(); ++i)
      for (auto& b : is) reinterpret_cast<volatile std::byte&>(b) = static_cast<std::byte>(i % 2 * 0xe0);
  });
  bool same = false;
  for (int i = 0; i < 200000; ++i) {
    const auto text = detail::difference(s, {link_buffer(0), 64}, is, should);
    same =
        same || text.ends_with("is 0x00, not 0x00") || (!text.empty() && text.find("is 0xe0, not 0x00") == text.npos);
  }
  stop = true;
  writer.join();
  CHECK_FALSE(same);
}

TEST_CASE("a difference names its runs, wherever the pieces are divided that are compared") {
  const auto s = parse("sdma 1\ngpus 1\nbuffer gpu0.a bytes=256K\n");
  std::vector<std::byte> is(256 << 10), should(256 << 10);
  const auto differ = [&] { return detail::difference(s, {link_buffer(0), 256 << 10}, is, should); };
  CHECK(differ() == "");
  for (std::size_t i = 65530; i < 65540; ++i) is[i] = std::byte{7};    // across the end of a piece
  for (std::size_t i = 131070; i < 131072; ++i) is[i] = std::byte{7};  // up to the end of one
  is[262143] = std::byte{9};
  CHECK(differ() ==
        "13 of 256K bytes differ: gpu0.a[65530..+10], gpu0.a[131070..+2], gpu0.a[262143..+1]; gpu0.a[65530] is 0x07, "
        "not 0x00");
}

namespace {

/// A device that cannot start kernels, as hardware without a loader for them.
class NoKernels final : public ForwardingDevice {
 public:
  explicit NoKernels(Device& d) : ForwardingDevice(d) {}
  bool kernels_stand_in() const noexcept override { return false; }
};

const std::string kKernels =
    "sdma 1\ngpus 2\nbuffer gpu0.out bytes=64K init=random\nbuffer gpu1.in bytes=64K\nsignal gpu0.tile value=0\n"
    "signal host.done value=0\nsignal host.seen value=10 bits=32\n"
    "queue gpu0.q peer=gpu1\n  poll_mem addr=gpu0.tile func=ge reference=epoch\n"
    "  copy_linear bytes=64K src=gpu0.out dst=gpu1.in\n  atomic op=add_rtn_64 addr=host.done value=1\nend\n"
    "kernel gpu0.k\n  repeat 3\n    submit gpu0.q\n    store gpu0.out = random\n    compute ns=1000\n    set gpu0.tile "
    "= epoch\n"
    "    wait host.done >= epoch\n    add host.seen += -2\n  end\nend\n"
    "host main\n  wait host.done == 3\nend\nexpect gpu1.in == gpu0.out\nexpect host.seen == 4\n";

}  // namespace

TEST_CASE("a thread stands in for a kernel: it stores, computes, sets, adds and submits") {
  for (const auto order : kOrderings) {
    CHECK(run_once(kKernels, {.time_limit = 60s}, order) == "");
    // Each round stores other bytes, so the old contents are gone.
    const auto old = run_once(kKernels + "expect gpu1.in == old gpu0.out\n", {.time_limit = 60s}, order);
    CHECK(old.starts_with("expect gpu1.in == old gpu0.out: 65"));
  }
}

TEST_CASE("with kernels, which continue after the waits of the host, a run is one round, as a simulation is") {
  const std::string text =
      "sdma 1\ngpus 1\nsignal host.ready value=0\n"
      "kernel gpu0.k\n  set host.ready = 1\n  compute ns=5000000\nend\nhost main\n  wait host.ready == 1\nend\n";
  const auto d = node(1);
  const auto r = run(link(parse(text), *d), {.time_limit = 60s});
  CHECK(lines(r.findings) == "");
  CHECK(r.round >= 5ms);
  CHECK(r.round <= r.elapsed);
}

TEST_CASE("a thread compares bytes between waits, in each round") {
  const auto text = [](const std::string& expect) {
    return "sdma 1\ngpus 1\nbuffer host.in bytes=4K init=random\nbuffer gpu0.out bytes=4K\nsignal host.done value=0\n"
           "queue gpu0.q from=host\n  copy_linear bytes=4K src=host.in dst=gpu0.out\n"
           "  atomic op=add_rtn_64 addr=host.done value=1\nend\n"
           "host main\n  repeat 3\n    submit *\n    wait host.done >= epoch\n    " +
           expect + "\n    store host.in = random\n  end\nend\n";
  };
  for (const auto order : kOrderings)
    CHECK(run_once(text("expect gpu0.out == host.in"), {.time_limit = 60s}, order) == "");
  // In the first round, the bytes are the old ones.
  CHECK(run_once(text("expect gpu0.out[0..8] == old host.in[0..8]"))
            .starts_with("host main: expect gpu0.out[0..+8] == old host.in[0..+8]: 8 of 8 bytes differ: "));
  CHECK(run_once(text("expect gpu0.out[0..8] == old host.in[0..8]")).ends_with(", in round 2"));
  CHECK(run_once(text("expect gpu0.out == old host.in"), {.contents = false}) == "");
  const auto d = node(1);
  CHECK(run(link(parse(text("expect gpu0.out[0..8] == host.in[8..16]")), *d)).wrong == 8);
}

TEST_CASE("a wait for rptr ends when the engine has read everything, and not before") {
  const auto text = [](const char* first) {
    return std::string("sdma 1\ngpus 1\nsignal host.go value=0 bits=32\nsignal host.done value=0\n") +
           "queue gpu0.q engine=2\n" + first + "  atomic op=add_rtn_64 addr=host.done value=1\nend\n" +
           "host main\n  submit gpu0.q\n  wait gpu0.q.rptr == all\n  wait host.done == 1\nend\n";
  };
  for (const auto order : kOrderings) CHECK(run_once(text("  nop\n"), {}, order) == "");
  CHECK(with_patience(100ms, [&](auto limit) {
    const auto stuck = run_once(text("  poll_mem addr=host.go func=eq reference=1\n"), {.time_limit = limit});
    return stuck.find("the engine has not read everything") != stuck.npos;
  }));
}

TEST_CASE("a sample is what the word holds at that moment, in each round") {
  const std::string text =
      "sdma 1\ngpus 1\nsignal host.x value=7\nsignal host.y value=0 bits=32\n"
      "queue gpu0.q engine=2\n  atomic op=add_rtn_64 addr=host.x value=2\nend\n"
      "host main\n  sample first = host.x\n  repeat 3\n    sample n = host.x\n    submit *\n    wait host.x >= n + 2\n"
      "    set host.y = n + epoch\n  end\n  add host.x += first\nend\n";
  for (const auto order : kOrderings)
    CHECK(run_once(text + "expect host.x == 20\nexpect host.y == 14\n", {.time_limit = 60s}, order) == "");
  const auto one = [](const std::string& lines) {
    return "sdma 1\ngpus 1\nsignal host.x value=3\nsignal host.y value=0 bits=32\nkernel gpu0.k\n  sample n = "
           "host.x\n" +
           lines + "\nend\nexpect host.y == 0\n";
  };
  CHECK(run_once(one("  set host.y = n - 3")) == "");
  CHECK(run_once(one("  set host.y = n - 4")) ==
        "kernel gpu0.k: set host.y = n-4: the value does not fit in 32 bits: 18446744073709551615");
  CHECK(with_patience(500ms, [&](auto limit) {
    return run_once(one("  wait host.x == n + 1"), {.time_limit = limit})
        .starts_with("kernel gpu0.k: wait host.x == n+1: host.x is 3 after " + std::to_string(limit.count()) +
                     "ms, with n: it waits for 4");
  }));
}

TEST_CASE("what a kernel stores depends on the seed, the range and the round") {
  const auto stored = [](const std::string& store, std::uint64_t rounds, std::uint64_t seed) {
    const auto d = node(1);
    const auto b = link(parse("sdma 1\ngpus 1\nbuffer gpu0.b bytes=64\nkernel gpu0.k\n  repeat " +
                              std::to_string(rounds) + "\n    store " + store + "\n  end\nend\n"),
                        *d);
    CHECK(run(b, {.seed = seed}));
    const auto bytes = b.bytes({link_buffer(0), 64});
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const auto first = stored("gpu0.b = random", 1, 1);
  CHECK(first == stored("gpu0.b = random", 1, 1));
  CHECK(first != stored("gpu0.b = random", 2, 1));
  CHECK(first != stored("gpu0.b = random", 1, 2));
  const auto half = stored("gpu0.b[32..64] = random", 1, 1);
  CHECK(half[31] == std::byte{kPoison});
  CHECK_FALSE(std::equal(half.begin() + 32, half.end(), first.begin()));
  CHECK(stored("gpu0.b = 0x41", 1, 1) == std::vector<std::byte>(64, std::byte{0x41}));
  CHECK(stored("gpu0.b = zero", 1, 1) == std::vector<std::byte>(64));
}

TEST_CASE("compute takes its time, and ends with the run") {
  const auto text = [](const char* ns) {
    return std::string("sdma 1\ngpus 1\nkernel gpu0.k\n  compute ns=") + ns + "\n  compute ns=1\nend\n";
  };
  const auto d = node(1);
  const auto r = run(link(parse(text("30000000")), *d));
  CHECK(r);
  CHECK(r.elapsed >= 30ms);
  // A compute of a quarter of an hour ends with the run, and then the next action says that the run has ended.
  CHECK(with_patience(50ms, [&](auto limit) {
    const auto late = run(link(parse(text("1000000000000")), *d), {.time_limit = limit});
    CHECK(late.elapsed < 15min);
    REQUIRE(late.findings.size() == 1);
    return late.findings[0].where == "kernel gpu0.k: compute ns=1";
  }));
}

TEST_CASE("a device that cannot start kernels says so, and runs nothing") {
  const auto soft = node(2);
  NoKernels d{*soft};
  const auto b = link(parse(kKernels), d);
  CHECK(lines(run(b).findings) ==
        "kernel gpu0.k: this device cannot start the kernels of a schedule, so the schedule is not run");
  CHECK(b.epoch(0) == 0);
}
