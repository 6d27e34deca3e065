// SPDX-License-Identifier: MIT
// What is proved: schedules that no execution breaks under an assumption, although the checker once reported them.
// Beside each stands what it must not prove: the schedule with one change that breaks it, and the schedule without
// the assumption.
#include "checked.hpp"

#include <sstream>

using namespace sdma;
using test::checked, test::has;

namespace {

struct Proof {
  const char* why;
  const char* assume;         ///< options, "" for the default profile
  const char *right, *wrong;  ///< the text that one change replaces, and what it becomes
  const char* rule;           ///< what the checker reports then
  const char* text;
};

// clang-format off
constexpr Proof kProofs[] = {
{"a counter is sampled before each round, and its next value is waited for", "", "n + 2", "n + 1", "unawaited", R"(gpus 1
buffer gpu0.a bytes=8K
buffer gpu0.b bytes=8K
signal host.x value=7
queue gpu0.p engine=2
  copy_linear bytes=4K src=gpu0.a dst=gpu0.b
  atomic op=add_rtn_64 addr=host.x value=1
  copy_linear bytes=4K src=gpu0.a[4K] dst=gpu0.b[4K]
  atomic op=add_rtn_64 addr=host.x value=1
end
host main
  repeat 3
    sample n = host.x
    submit *
    wait host.x >= n + 2
  end
end)"},
{"the sample after a wait is what was waited for", "", "wait host.x >= 2", "wait host.x >= 1", "unknown-sample", R"(gpus 1
signal host.x value=0
signal host.y value=0
queue gpu0.p engine=2
  atomic op=add_rtn_64 addr=host.x value=1
  atomic op=add_rtn_64 addr=host.x value=1
  poll_mem addr=host.y func=ge reference=3
  fence addr=host.y value=4
end
host main
  submit *
  wait host.x >= 2
  sample n = host.x
  set host.y = n + 1
  wait host.y == n + 2
end)"},
{"a sample that is added orders what waits for the sum", "", "value=5", "value=4", "unreachable-count", R"(gpus 1
buffer host.in bytes=4K
buffer gpu0.b bytes=4K
signal host.n value=5
signal host.go value=0
signal host.x value=0
queue gpu0.p from=host
  poll_mem addr=host.go func=ge reference=5
  copy_linear bytes=4K src=host.in dst=gpu0.b
  fence addr=host.x value=1
end
host main
  sample n = host.n
  submit *
  store host.in = random
  add host.go += n
  wait host.x == 1
end)"},
{"a sample whose word another thread changes only afterwards", "", "wait host.go == 1\n  set host.n = 9", "set host.n = 9", "unknown-sample", R"(gpus 1
signal host.n value=5
signal host.go value=0
signal host.x value=0
queue gpu0.p engine=2
  fence addr=host.x value=6
end
host main
  submit *
  sample n = host.n
  set host.go = 1
  wait host.x == n + 1
end
host other
  wait host.go == 1
  set host.n = 9
end)"},
{"a kernel's sample is followed by an acquire at system scope", "", "sample n = gpu0.n", "sample n = gpu0.n scope=agent", "unknown-sample", R"(gpus 1
signal gpu0.n value=5
signal host.x value=0
queue gpu0.p engine=2
  fence addr=host.x value=6
end
kernel gpu0.k
  sample n = gpu0.n
  wait host.x == n + 1
end
host main
  submit *
  wait host.x == 6
end)"},
{"a WRITE comes after the copies and writes before it", "write=ordered",
 "copy_linear bytes=4K src=gpu0.a dst=gpu1.b\n  write dst=host.f data=[1]",
 "write dst=host.f data=[1]\n  copy_linear bytes=4K src=gpu0.a dst=gpu1.b", "race", R"(gpus 2
buffer gpu0.a bytes=4K init=zero
buffer gpu1.b bytes=4K
buffer gpu1.c bytes=4K
signal host.f value=0 bits=32
signal host.x value=0
queue gpu0.p engine=2
  write dst=gpu0.a data=[7]
  copy_linear bytes=4K src=gpu0.a dst=gpu1.b
  write dst=host.f data=[1]
end
queue gpu1.q engine=2
  poll_mem addr=host.f func=eq reference=1
  copy_linear bytes=4K src=gpu1.b dst=gpu1.c
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"a WRITE between two copies orders them", "write=ordered", "write dst=gpu0.d data=[1]", "nop", "race", R"(gpus 1
buffer gpu0.a bytes=4K init=zero
buffer gpu0.b bytes=4K
buffer gpu0.c bytes=4K
buffer gpu0.d bytes=4K
signal host.x value=0
queue gpu0.p engine=2
  copy_linear bytes=4K src=gpu0.a dst=gpu0.b
  write dst=gpu0.d data=[1]
  copy_linear bytes=4K src=gpu0.b dst=gpu0.c
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"a WRITE at the end of a round orders its copies before those of the next", "write=ordered", "write dst=gpu0.d data=[1]", "nop",
 "race", R"(gpus 1
buffer gpu0.a bytes=4K init=zero
buffer gpu0.b bytes=4K
buffer gpu0.d bytes=4K
signal host.x value=0
queue gpu0.p engine=2
  copy_linear bytes=4K src=gpu0.a dst=gpu0.b
  atomic op=add_rtn_64 addr=host.x value=1
  write dst=gpu0.d data=[1]
  atomic op=add_rtn_64 addr=host.x value=1
end
host main
  submit *
  submit *
  wait host.x == 4
end)"},
{"a fence covers the FILL that clears a word", "fence_covers=copies", "fill dst=gpu1.w data=0 bytes=4 unit=dword",
 "write dst=gpu1.w data=[0]", "race", R"(gpus 2
buffer gpu0.a bytes=4K init=zero
buffer gpu1.b bytes=4K
buffer gpu1.c bytes=4K
buffer gpu1.w bytes=8
signal host.s value=0
signal host.x value=0
queue gpu1.clear engine=3
  fill dst=gpu1.w data=0 bytes=4 unit=dword
  fence addr=host.s value=1
end
queue gpu0.p engine=2
  copy_linear bytes=4K src=gpu0.a dst=gpu1.b
  fence addr=gpu1.w value=1
end
queue gpu1.q engine=2
  poll_mem addr=gpu1.w func=ge reference=1
  copy_linear bytes=4K src=gpu1.b dst=gpu1.c
  fence addr=host.x value=1
end
host main
  submit gpu1.clear
  wait host.s == 1
  submit gpu0.p gpu1.q
  wait host.x == 1
end)"},
{"the packets of a condition that is never met do not execute", "", "fence addr=host.w value=2", "fence addr=host.w value=1",
 "never-met", R"(gpus 1
signal host.w value=0 bits=32
signal host.never value=0
signal host.x value=0
queue gpu0.p engine=2
  fence addr=host.w value=2
  cond_exec addr=host.w reference=1 dwords=6
  poll_mem addr=host.never func=eq reference=1
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"the packets of a condition that is always met execute", "", "value=1 at=host.b[8]", "value=0 at=host.b[8]", "cond-exec-assumed", R"(gpus 1
buffer host.b bytes=64 init=zero
signal host.w value=1 at=host.b[8]
signal host.x value=0
queue gpu0.p engine=2
  cond_exec addr=host.b[8] reference=1 dwords=4
  fence addr=host.x value=1
end
host main
  set host.w = 0x300000001
  submit *
  wait host.x == 1
end)"},
{"a packet that never executes stores nothing", "", "signal host.v value=0", "signal host.v value=1", "never-met", R"(gpus 1
signal host.v value=0 bits=32
signal host.w value=0 bits=32
signal host.never value=0
signal host.x value=0
queue gpu0.p engine=2
  cond_exec addr=host.v reference=1 dwords=9
  cond_exec addr=host.w reference=0 dwords=4
  fence addr=host.w value=1
  cond_exec addr=host.w reference=1 dwords=6
  poll_mem addr=host.never func=lt reference=0
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"the engine does not refuse a packet that never executes", "", "signal host.w value=0", "signal host.w value=1", "overlap",
 R"(gpus 1
buffer gpu0.a bytes=8K init=zero
signal host.w value=0 bits=32
signal host.x value=0
queue gpu0.p engine=2
  cond_exec addr=host.w reference=1 dwords=7
  copy_linear bytes=4K src=gpu0.a dst=gpu0.a[2K]
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"a condition waits for all earlier packets, whatever its outcome", "cond_exec=ordered",
 "cond_exec addr=host.w reference=1 dwords=7", "nop", "race", R"(gpus 1
buffer gpu0.a bytes=4K init=zero
buffer gpu0.b bytes=4K
buffer gpu0.c bytes=4K
signal host.w value=1 bits=32
signal host.x value=0
queue gpu0.p engine=2
  copy_linear bytes=4K src=gpu0.a dst=gpu0.b
  cond_exec addr=host.w reference=1 dwords=7
  copy_linear bytes=4K src=gpu0.b dst=gpu0.c
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"a nop that drains is a barrier", "nop=drain",
 "  nop\n", "", "race", R"(gpus 1
buffer gpu0.a bytes=4K init=zero
buffer gpu0.b bytes=4K
buffer gpu0.c bytes=4K
signal host.x value=0
queue gpu0.p engine=2
  copy_linear bytes=4K src=gpu0.a dst=gpu0.b
  nop
  copy_linear bytes=4K src=gpu0.b dst=gpu0.c
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"a condition comes between two fences, in the next round too", "cond_exec=ordered fences=unordered",
 "cond_exec addr=host.w reference=1 dwords=0", "nop", "fence-race", R"(gpus 1
signal host.w value=0 bits=32
signal host.y value=0 bits=32
signal host.x value=0
queue gpu0.p engine=2
  fence addr=host.y value=2*epoch-1
  cond_exec addr=host.w reference=1 dwords=0
  fence addr=host.y value=2*epoch
  cond_exec addr=host.w reference=1 dwords=0
  atomic op=add_rtn_64 addr=host.x value=1
end
host main
  submit *
  submit *
  wait host.x == 2
  wait host.y >= 4
end)"},
{"a poll that waits for everything earlier does not see what was there before", "poll=full", "fence addr=host.x value=1",
 "fence addr=host.x value=2", "never-met", R"(gpus 1
signal host.w value=1 bits=32
signal host.x value=0
queue gpu0.p engine=2
  fence addr=host.w value=1
  poll_mem addr=host.w func=ge reference=1
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
};
// clang-format on

/// A condition on host.w, with `packets` before it, and `actions` of the host.
std::string conditional(const std::string& packets, const std::string& actions = "", const std::string& more = "") {
  return R"(gpus 1
buffer host.b bytes=64 init=zero
signal host.w value=0 bits=32 at=host.b[16]
signal host.x value=0
queue gpu0.p engine=2
  )" + packets +
         R"(
  cond_exec addr=host.w reference=5 dwords=4
  fence addr=host.x value=1
  fence addr=host.x value=2
end
)" + more +
         R"(
host main
  )" + actions +
         R"(
  submit *
  submit *
  wait host.x >= 2
end)";
}

}  // namespace

TEST_CASE("a condition is known only if every value of its word is") {
  const auto known = [](const std::string& text) {
    const auto r = checked(text);
    for (const auto& f : r.findings) UNSCOPED_INFO(to_string(f.diagnostic));
    CHECK(has(r, "cond-exec-constant") != has(r, "cond-exec-assumed"));
    return has(r, "cond-exec-constant");
  };
  CHECK(known(conditional("nop")));
  CHECK(known(conditional("fence addr=host.w value=4")));
  CHECK(known(conditional("atomic op=swap_rtn_64 addr=host.b[16] value=0x500000004")));
  CHECK(known(conditional("nop", "set host.w = 4")));
  CHECK_FALSE(known(conditional("fence addr=host.w value=5")));
  CHECK_FALSE(known(conditional("fence addr=host.w value=epoch+1")));
  CHECK_FALSE(known(conditional("atomic op=add_rtn_32 addr=host.w value=1")));
  CHECK_FALSE(known(conditional("atomic op=swap_rtn_64 addr=host.b[16] value=0x400000005")));
  CHECK_FALSE(known(conditional("nop", "set host.w = 5")));
  CHECK_FALSE(known(conditional("nop", "repeat 5\n    set host.w = epoch\n  end")));
  CHECK_FALSE(known(conditional("copy_linear bytes=32 src=host.b[32] dst=host.b")));
  CHECK_FALSE(known(conditional("write dst=host.b[8] data=[0 0 0]")));
  CHECK_FALSE(known(conditional("nop", "", "queue gpu0.other engine=3\n  fence addr=host.b[16] value=5\nend")));
  // A kernel stores to the word, or to the bytes of its buffer.
  for (const auto action : {"set host.w = 5", "add host.w += 1", "store host.b = zero"}) {
    const auto kernel = std::string("kernel gpu0.k\n  ") + action + "\nend";
    CHECK(has(checked(conditional("nop", "", kernel)), "cond-exec-assumed"));
  }
  CHECK(known(conditional("nop", "", "kernel gpu0.k\n  set host.w = 4\nend")));
  // A condition that may be skipped itself, and whose range ends after that of the other.
  CHECK_FALSE(known(conditional("pre_exec dwords=5 devices=1")));
  CHECK_FALSE(known(conditional("cond_exec addr=host.b[32] reference=1 dwords=7")));
}

TEST_CASE("what no execution breaks is proved, and a change that breaks it is found") {
  for (const auto& p : kProofs) {
    CheckOptions o, without;
    bool adds = false;
    std::istringstream options(p.assume);
    for (std::string option; options >> option;) {
      REQUIRE(o.profile.set(option));
      // These two assume less than the default profile.
      if (option == "fence_covers=copies" || option == "fences=unordered") REQUIRE(without.profile.set(option));
      else adds = true;
    }
    INFO(p.why);
    const auto r = checked(p.text, o);
    for (const auto& f : r.findings) UNSCOPED_INFO(to_string(f.diagnostic));
    CHECK(r.proved());
    if (adds) CHECK_FALSE(checked(p.text, without).proved());
    std::string text = p.text;
    const auto at = text.find(p.right);
    REQUIRE(at != text.npos);
    text.replace(at, std::string_view(p.right).size(), p.wrong);
    INFO(text);
    CHECK(has(checked(text, o), p.rule));
  }
}
