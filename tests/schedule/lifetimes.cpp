// SPDX-License-Identifier: MIT
// Memory that comes and goes: the text of it, its errors, and what a run does with it.
#include "support.hpp"

using namespace sdma;
using namespace sdma::test;
using namespace std::chrono_literals;

namespace {

/// A copy from gpu0 to host.out; `main` are the actions of the thread.
std::string text(const std::string& main, const std::string& more = "") {
  return "sdma 1\ngpus 2\nbuffer gpu0.in bytes=64K init=random\nbuffer gpu1.out bytes=64K\n"
         "buffer gpu0.block bytes=4K at=gpu0.in\nsignal host.done value=0\n"
         "queue gpu0.put peer=gpu1\n  copy_linear bytes=64K src=gpu0.in dst=gpu1.out\n"
         "  atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\n" +
         main + "end\n" + more;
}
/// The findings of a run, those with an address shortened to what follows it.
std::string ran(const std::string& whole, Ordering order = Ordering::strict, std::uint64_t seed = 1) {
  const auto d = node(2, order, seed);
  return lines(run(link(parse(whole), *d), {.time_limit = 20s, .seed = seed}).findings);
}
bool contains(const std::string& all, std::string_view part) { return all.find(part) != all.npos; }

std::string error(const std::string& whole) {
  const auto s = parse_schedule(whole, "t");
  REQUIRE_FALSE(s);
  const auto& e = s.error().front();
  return e.message + (e.hint.empty() ? "" : " | " + e.hint);
}

}  // namespace

TEST_CASE("actions on memory are printed as they are written, in C++ too") {
  const auto whole = text(
      "  alloc gpu0.in\n  alloc gpu0.block\n  map gpu0.in gpu1\n  export gpu1.out\n  submit gpu0.put\n"
      "  wait host.done == 1\n  close gpu1.out\n  unmap gpu0.in gpu1\n  free gpu0.block\n  free gpu0.in\n");
  const auto s = parse(whole);
  CHECK(to_text(s) == whole);
  auto built = s;
  built.hosts.clear();
  const auto in = link_buffer(0), out = link_buffer(1), block = link_buffer(2);
  built.add_host("main")
      .alloc(in)
      .alloc(block)
      .map(in, Place::gpu(1))
      .export_handle(out)
      .submit(built.queues[0])
      .wait(link_signal(0), Compare::eq, 1)
      .close_handle(out)
      .unmap(in, Place::gpu(1))
      .free(block)
      .free(in);
  CHECK(built == s);
  CHECK(problems(built).empty());
}

TEST_CASE("what is wrong with an action on memory") {
  CHECK(contains(error(text("  free host.done\n")), "is a signal, and only buffers are allocated"));
  CHECK(contains(error(text("  free gpu0.put\n")), "is a queue, which has no memory"));
  CHECK(contains(error(text("  map gpu0.in host\n")), "the host always has access"));
  CHECK(contains(error(text("  map gpu0.in gpu2\n")), "gpu2 is not in this schedule"));
  CHECK(contains(error(text("  map gpu0.in\n")), "expected a GPU"));
  CHECK(error(text("  map gpu0.block gpu1\n")) ==
        "gpu0.block is an alias, which has no mapping and no handle of its own | name the buffer that has the bytes: "
        "gpu0.in");
  CHECK(contains(error(text("  free gpu0.in 4K\n")), "expected the end of the line"));
  CHECK(contains(error(text("  fre gpu0.in\n")), "free"));
  CHECK(contains(error(text("", "kernel gpu0.k\n  alloc gpu0.in\nend\n")), "belongs in a host thread"));
  CHECK(contains(error("sdma 1\nbuffer host.b bytes=4K at=0x7f0000000000\nhost main\n  free host.b\nend\n"),
                 "has a fixed address"));
  auto s = parse(text("  free gpu0.in\n"));
  s.hosts[0].actions[0].buffer = link_signal(0);
  CHECK(lines(problems(s)) == "host main: 'free' is about something that is not a buffer");
  s.hosts[0].actions[0] = {.kind = Schedule::Action::Kind::map, .buffer = link_buffer(0), .gpu = Place::host()};
  CHECK(lines(problems(s)) == "host main: 'map' is for a GPU that is not in this schedule");
}

TEST_CASE("a run of memory that is there while it is used ends well, as often as it is repeated") {
  const auto whole = text(
      "  repeat 3\n    alloc gpu0.in\n    export gpu1.out\n    submit gpu0.put\n    wait host.done >= epoch\n"
      "    close gpu1.out\n    free gpu0.in\n  end\n",
      "expect gpu1.out == old gpu0.in\n");
  for (const auto order : {Ordering::strict, Ordering::rocr, Ordering::adversarial}) {
    const auto d = node(2, order, 5);
    const auto b = link(parse(whole), *d);
    for (std::uint64_t seed = 0; seed < 3; ++seed)
      CHECK(lines(run(b, {.time_limit = 20s, .seed = seed}).findings) == "");
  }
}

TEST_CASE("an engine that uses memory that is gone faults, and the run says who took it") {
  const auto freed = ran(text("  free gpu0.in\n  submit gpu0.put\n  wait host.done == 1\n"));
  CHECK(contains(freed, "gpu0.put: "));
  CHECK(contains(freed, "gpu0.in is gone: host main has freed it"));
  CHECK(contains(ran(text("  submit gpu0.put\n  wait host.done == 1\n  alloc gpu0.in\n")),
                 "gpu0.in is not allocated yet"));
  CHECK(contains(ran(text("  submit gpu0.put\n  wait host.done == 1\n  map gpu1.out gpu0\n")),
                 "gpu0 has not mapped gpu1.out"));
  CHECK(contains(ran(text("  submit gpu0.put\n  wait host.done == 1\n  export gpu1.out\n")),
                 "gpu1.out is not exported yet"));
  CHECK(contains(ran(text("  export gpu1.out\n  close gpu1.out\n  submit gpu0.put\n  wait host.done == 1\n")),
                 "has closed its handle"));
  // The GPU's own engines need no handle.
  CHECK(ran(text("  export gpu0.in\n  close gpu0.in\n  submit gpu0.put\n  wait host.done == 1\n")) == "");
}

TEST_CASE("a free under a copy is seen with weakly ordered engines") {
  const auto whole = text("  submit gpu0.put\n  free gpu0.in\n  wait host.done == 1\n");
  bool seen = false;
  for (std::uint64_t seed = 0; seed < 20 && !seen; ++seed)
    seen = contains(ran(whole, Ordering::adversarial, seed), "gpu0.in is gone");
  CHECK(seen);
}

TEST_CASE("a poll of memory that is gone ends the run") {
  const auto whole =
      "sdma 1\ngpus 1\nbuffer host.words bytes=64 init=zero\nsignal host.go value=0 at=host.words[0]\n"
      "signal host.done value=0\nqueue gpu0.q engine=2\n  poll_mem addr=host.go func=ge reference=1\n"
      "  atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\n  submit gpu0.q\n  free host.words\n"
      "  wait host.done == 1\nend\n";
  CHECK(contains(ran(whole), "host.words is gone"));
}

TEST_CASE("a thread that uses memory that is gone is stopped, also by the name of a block of a pool") {
  CHECK(contains(ran(text("  free gpu0.in\n  load gpu0.in\n")), "host main: load gpu0.in: gpu0.in is gone"));
  CHECK(contains(ran(text("  free gpu0.block\n  store gpu0.block = zero\n")), "gpu0.block is gone"));
  CHECK(contains(ran(text("  free gpu0.in\n  load gpu0.block\n")), "gpu0.in is gone"));
  CHECK(contains(ran(text("  free gpu0.in\n", "expect gpu0.in == old gpu0.in\n")), "gpu0.in is gone"));
  CHECK(contains(ran(text("  free gpu0.in\n  free gpu0.in\n")), "gpu0.in is gone"));
  CHECK(contains(ran(text("  alloc gpu0.in\n  alloc gpu0.in\n")), "gpu0.in is there already"));
  CHECK(contains(ran(text("  export gpu1.out\n  free gpu1.out\n")), "the handle of gpu1.out is still open"));
  CHECK(contains(ran(text("  unmap gpu1.out gpu0\n  unmap gpu1.out gpu0\n")), "gpu0 has not mapped gpu1.out"));
}

TEST_CASE("an engine that uses a block that is gone faults, whatever else is in its bytes") {
  // Two blocks of one pool, of which the second one is in the bytes of the first.
  const auto pool = [](const std::string& main, const std::string& more = "", const std::string& src = "gpu0.one") {
    return "sdma 1\ngpus 2\nbuffer gpu0.pool bytes=64K init=random\nbuffer gpu0.one bytes=4K at=gpu0.pool[4K]\n"
           "buffer gpu0.two bytes=4K at=gpu0.pool[4K]\nbuffer gpu0.inner bytes=2K at=gpu0.one[1K]\n"
           "buffer gpu1.out bytes=4K\nsignal gpu0.word value=0 at=gpu0.one[8]\nsignal host.done value=0\n" +
           more + "queue gpu0.put peer=gpu1\n  copy_linear bytes=2K src=" + src +
           " dst=gpu1.out\n  atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\n" + main + "end\n";
  };
  const std::string use = "  submit gpu0.put\n  wait host.done == 1\n";
  CHECK(contains(ran(pool("  free gpu0.one\n" + use)), "gpu0.one is gone: host main has freed it"));
  CHECK(contains(ran(pool("  alloc gpu0.one\n  free gpu0.one\n  alloc gpu0.two\n" + use)), "gpu0.one is gone"));
  CHECK(contains(ran(pool("  free gpu0.one\n" + use, "", "gpu0.inner")), "gpu0.one is gone"));
  CHECK(contains(ran(pool(use + "  alloc gpu0.one\n")), "gpu0.one is not allocated yet"));
  CHECK(contains(ran(pool("  free gpu0.pool\n" + use + "  free gpu0.one\n")), "gpu0.pool is gone"));
  CHECK(contains(ran(pool("  unmap gpu0.pool gpu0\n" + use + "  free gpu0.one\n")), "has unmapped it for gpu0"));
  // The pool's own name, and that of the next block, are for the same bytes.
  CHECK(ran(pool("  free gpu0.one\n" + use, "", "gpu0.pool[4K]")) == "");
  CHECK(ran(pool("  alloc gpu0.one\n  free gpu0.one\n  alloc gpu0.two\n" + use + "  free gpu0.two\n", "",
                 "gpu0.two")) == "");
  CHECK(ran(pool("  alloc gpu0.one\n" + use + "  free gpu0.one\n", "", "gpu0.inner")) == "");
  // What is stored under one name is seen under the others, by engines and by threads.
  const auto words = pool(
      "  alloc gpu0.one\n  submit gpu0.put\n  submit gpu0.tell\n  wait gpu0.word == 7\n"
      "  wait host.done == 1\n  expect gpu0.pool[4K..+2K] == gpu0.two[0..+2K]\n"
      "  expect gpu0.one[0..+2K] == gpu0.two[0..+2K]\n  free gpu0.one\n",
      "queue gpu0.tell engine=3\n  fence addr=gpu0.two[8] value=7\nend\n");
  CHECK(ran(words) == "");
}

TEST_CASE("a condition reads its word, whatever its outcome") {
  const auto whole = [](const std::string& main) {
    return "sdma 1\ngpus 1\nbuffer host.words bytes=64 init=zero\nbuffer host.block bytes=8 at=host.words[8]\n"
           "signal host.go value=0 bits=32 at=host.block[0]\nsignal host.done value=0\nqueue gpu0.q engine=2\n"
           "  cond_exec addr=host.go reference=5 dwords=4\n  fence addr=host.done value=2\n"
           "  fence addr=host.done value=1\nend\nhost main\n" +
           main + "  submit gpu0.q\n  wait host.done == 1\nend\n";
  };
  CHECK(ran(whole("")) == "");
  CHECK(contains(ran(whole("  free host.words\n")), "host.words is gone"));
  CHECK(contains(ran(whole("  free host.block\n")), "host.block is gone"));
  CHECK(contains(ran(whole("  unmap host.words gpu0\n")), "has unmapped it for gpu0"));
}

TEST_CASE("memory of a device stays where it is when GPUs lose access to it") {
  const auto d = node(2);
  auto m = d->allocate({.where = GpuId{0}, .bytes = 4096});
  REQUIRE(m);
  REQUIRE(d->takes_memory());
  m->host()[0] = std::byte{7};
  CHECK(d->allow(m->va(), 0, Deadline::in(1s)) == Errc::ok);
  CHECK(m->host()[0] == std::byte{7});
  CHECK(d->allow(m->va() + 8, 0, Deadline::in(1s)) == Errc::unmapped);
  CHECK(d->allow(m->va(), 3, Deadline::in(1s)) == Errc::ok);
}
