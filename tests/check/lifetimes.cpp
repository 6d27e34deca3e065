// SPDX-License-Identifier: MIT
// Memory that comes and goes: what uses it too early or too late, on some order, and what does not.
#include "checked.hpp"

using namespace sdma;
using sdma::test::checked, sdma::test::has, sdma::test::said;

namespace {

struct Life {
  const char* rule;     ///< the only error; "": proved
  const char* message;  ///< a part of it
  const char* text;
};

/// A copy from gpu0 through host.stage to gpu1, and what the threads do.
#define RELAY(hosts)                                     \
  "gpus 2\n"                                             \
  "buffer gpu0.in bytes=4K init=random\n"                \
  "buffer host.stage bytes=4K\n"                         \
  "buffer gpu1.out bytes=4K\n"                           \
  "signal host.filled value=0 bits=32\n"                 \
  "signal host.done value=0 bits=32\n"                   \
  "signal host.go value=0\n"                             \
  "queue gpu0.put peer=host\n"                           \
  "  copy_linear bytes=4K src=gpu0.in dst=host.stage\n"  \
  "  fence addr=host.filled value=1\n"                   \
  "end\n"                                                \
  "queue gpu1.get from=host\n"                           \
  "  poll_mem addr=host.filled func=eq reference=1\n"    \
  "  copy_linear bytes=4K src=host.stage dst=gpu1.out\n" \
  "  fence addr=host.done value=1\n"                     \
  "end\n" hosts

/// A copy behind a condition about a word in a block of host.words, which always holds 0.
#define GATED(condition, map, host)                   \
  "gpus 2\n"                                          \
  "buffer gpu0.a bytes=4K init=random\n"              \
  "buffer gpu0.b bytes=4K\n"                          \
  "buffer host.words bytes=64 init=zero" map          \
  "\n"                                                \
  "buffer host.block bytes=8 at=host.words[8]\n"      \
  "signal host.go value=0 bits=32 at=host.block[0]\n" \
  "signal host.done value=0 bits=32\n"                \
  "queue gpu0.p engine=2\n"                           \
  "  cond_exec addr=host.go " condition               \
  " dwords=7\n"                                       \
  "  copy_linear bytes=4K src=gpu0.a dst=gpu0.b\n"    \
  "  fence addr=host.done value=1\n"                  \
  "end\n"                                             \
  "host main\n" host "\nend"

// clang-format off
const Life kLives[] = {
// A buffer that is allocated before its uses, and freed after all.
{"", "", RELAY("host main\nalloc host.stage\nsubmit *\nwait host.done == 1\nfree host.stage\nend\nexpect gpu1.out == old gpu0.in")},
// What nobody allocates is there; who frees it need not have allocated it.
{"", "", RELAY("host main\nsubmit *\nwait host.done == 1\nfree host.stage\nend")},
// The free does not wait at all, or for the first half only.
{"use-after-free", "host main may free host.stage before gpu0.put has written it",
 RELAY("host main\nalloc host.stage\nsubmit *\nfree host.stage\nwait host.done == 1\nend")},
{"use-after-free", "host main may free host.stage before gpu1.get has read it",
 RELAY("host main\nalloc host.stage\nsubmit *\nwait host.filled == 1\nfree host.stage\nwait host.done == 1\nend")},
// Another thread frees, and waits for too little.
{"use-after-free", "host other may free host.stage before gpu1.get has read it",
 RELAY("host main\nsubmit *\nwait host.done == 1\nend\nhost other\nwait host.filled == 1\nfree host.stage\nend")},
{"", "", RELAY("host main\nsubmit *\nwait host.done == 1\nend\nhost other\nwait host.done == 1\nfree host.stage\nend")},
// The use is known to come later.
{"use-after-free", "gpu1.get reads host.stage after host main frees host.stage",
 RELAY("host main\nsubmit gpu0.put\nwait host.filled == 1\nfree host.stage\nsubmit gpu1.get\nwait host.done == 1\nend")},
// Too early: in the same thread, and in another one.
{"use-before-alloc", "gpu0.put may write host.stage before host main allocates host.stage",
 RELAY("host main\nsubmit *\nalloc host.stage\nwait host.done == 1\nend")},
{"use-before-alloc", "host other allocates host.stage",
 RELAY("host main\nsubmit *\nwait host.done == 1\nend\nhost other\nalloc host.stage\nset host.go = 1\nend")},
{"", "", RELAY("host main\nwait host.go == 1\nsubmit *\nwait host.done == 1\nend\nhost other\nalloc host.stage\nset host.go = 1\nend")},
// A host's own accesses are uses.
{"use-after-free", "host main reads host.stage after host main frees host.stage",
 RELAY("host main\nsubmit *\nwait host.done == 1\nfree host.stage\nload host.stage\nend")},
{"use-after-free", "host other may free host.stage before host main has written it",
 RELAY("host main\nsubmit *\nwait host.done == 1\nset host.go = 1\nstore host.stage = zero\nend\nhost other\nwait host.go == 1\nfree host.stage\nend")},
// So is a final expectation.
{"use-after-free", "reads host.stage at the end",
 RELAY("host main\nsubmit *\nwait host.done == 1\nfree host.stage\nend\nexpect host.stage == gpu0.in")},
{"", "", RELAY("host main\nsubmit *\nwait host.done == 1\nfree host.stage\nend\nexpect gpu1.out == old gpu0.in")},

// Mappings are of one GPU each.
{"", "", RELAY("host main\nmap host.stage gpu1\nsubmit *\nwait host.done == 1\nunmap host.stage gpu1\nend")},
{"use-before-alloc", "gpu1.get may read host.stage before host main maps host.stage for gpu1",
 RELAY("host main\nsubmit *\nmap host.stage gpu1\nwait host.done == 1\nend")},
{"use-after-free", "host main may unmap host.stage for gpu1 before gpu1.get has read it",
 RELAY("host main\nsubmit *\nwait host.filled == 1\nunmap host.stage gpu1\nwait host.done == 1\nend")},
{"", "", RELAY("host main\nsubmit *\nwait host.filled == 1\nunmap host.stage gpu0\nwait host.done == 1\nend")},
// A free takes the mapping that an action has given, and a new allocation does not bring it back.
{"use-after-free", "gpu1.get reads host.stage after host main frees host.stage",
 RELAY("host main\nalloc host.stage\nmap host.stage gpu1\nsubmit gpu0.put\nwait host.filled == 1\nfree host.stage\nalloc host.stage\nsubmit gpu1.get\nwait host.done == 1\nend")},
// Handles: only GPUs other than its own need one; a buffer is not freed while it is open.
{"", "", RELAY("host main\nexport gpu1.out\nsubmit *\nwait host.done == 1\nclose gpu1.out\nfree gpu1.out\nend")},
{"", "", RELAY("host main\nexport gpu1.out\nclose gpu1.out\nsubmit *\nwait host.done == 1\nend")},
{"use-after-free", "host main may close the handle of host.stage before gpu1.get has read it",
 RELAY("host main\nexport host.stage\nsubmit *\nwait host.filled == 1\nclose host.stage\nwait host.done == 1\nend")},
{"use-before-alloc", "before host main exports host.stage",
 RELAY("host main\nsubmit *\nexport host.stage\nwait host.done == 1\nclose host.stage\nend")},
{"bad-lifetime", "frees host.stage, whose handle is still open",
 RELAY("host main\nexport host.stage\nsubmit *\nwait host.done == 1\nfree host.stage\nend")},

// What makes no sense.
{"bad-lifetime", "which is not there", RELAY("host main\nsubmit *\nwait host.done == 1\nfree host.stage\nfree host.stage\nend")},
{"bad-lifetime", "which is there already", RELAY("host main\nalloc host.stage\nalloc host.stage\nsubmit *\nwait host.done == 1\nend")},
{"bad-lifetime", "which has not mapped it", RELAY("host main\nsubmit *\nwait host.done == 1\nunmap host.stage gpu1\nunmap host.stage gpu1\nend")},
{"bad-lifetime", "which is not open", RELAY("host main\nsubmit *\nwait host.done == 1\nclose host.stage\nend")},
{"bad-lifetime", "nothing orders the two",
 RELAY("host main\nsubmit *\nwait host.done == 1\nfree host.stage\nend\nhost other\nwait host.done == 1\nfree host.stage\nend")},

// Blocks of a pool: a name may be gone while the bytes are there, and not the reverse.
{"use-after-free", "gpu0.p reads gpu0.one after host main frees gpu0.one", R"(gpus 1
buffer gpu0.pool bytes=8K init=random
buffer gpu0.one bytes=4K at=gpu0.pool[0]
buffer gpu0.out bytes=4K
signal host.done value=0
queue gpu0.p engine=2
  copy_linear bytes=4K src=gpu0.one dst=gpu0.out
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  alloc gpu0.one
  free gpu0.one
  submit gpu0.p
  wait host.done == 1
end)"},
{"use-after-free", "host main may free gpu0.pool before gpu0.p has read it", R"(gpus 1
buffer gpu0.pool bytes=8K init=random
buffer gpu0.one bytes=4K at=gpu0.pool[0]
buffer gpu0.out bytes=4K
signal host.done value=0
queue gpu0.p engine=2
  copy_linear bytes=4K src=gpu0.one dst=gpu0.out
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit gpu0.p
  free gpu0.pool
  wait host.done == 1
end)"},
// A poll is a use until it is satisfied, and a later post of its queue says so. The host's own set does not.
{"use-after-free", "host main may free host.words before gpu0.p has polled it", R"(gpus 1
buffer host.words bytes=64 init=zero
signal host.go value=0 at=host.words[0]
signal host.done value=0
queue gpu0.p engine=2
  poll_mem addr=host.go func=ge reference=1
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit gpu0.p
  set host.go = 1
  free host.words
  wait host.done == 1
end)"},
{"", "", R"(gpus 1
buffer host.words bytes=64 init=zero
signal host.go value=0 at=host.words[0]
signal host.done value=0
queue gpu0.p engine=2
  poll_mem addr=host.go func=ge reference=1
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit gpu0.p
  set host.go = 1
  wait host.done == 1
  free host.words
end)"},
// A condition whose outcome never changes reads its word all the same: of its own buffer, of a block, through a mapping
// or a handle, and where the packets behind it are never executed.
{"use-after-free", "gpu0.p tests host.words after host main frees host.words",
 GATED("reference=0", "", "free host.words\nsubmit gpu0.p\nwait host.done == 1")},
{"use-after-free", "gpu0.p tests host.words after host main frees host.words",
 GATED("reference=5", "", "free host.words\nsubmit gpu0.p\nwait host.done == 1")},
{"use-after-free", "host main may free host.words before gpu0.p has tested it",
 GATED("reference=0", "", "submit gpu0.p\nfree host.words\nwait host.done == 1")},
{"", "", GATED("reference=0", "", "alloc host.words\nsubmit gpu0.p\nwait host.done == 1\nfree host.words")},
{"use-before-alloc", "gpu0.p may test host.words before host main allocates host.words",
 GATED("reference=0", "", "submit gpu0.p\nalloc host.words\nwait host.done == 1")},
{"use-after-free", "gpu0.p tests host.block after host main frees host.block",
 GATED("reference=0", "", "free host.block\nsubmit gpu0.p\nwait host.done == 1")},
{"", "", GATED("reference=0", "", "submit gpu0.p\nwait host.done == 1\nfree host.block")},
{"use-after-free", "gpu0.p tests host.words after host main unmaps host.words for gpu0",
 GATED("reference=0", "", "unmap host.words gpu0\nsubmit gpu0.p\nwait host.done == 1")},
{"use-after-free", "host main may unmap host.words for gpu0 before gpu0.p has tested it",
 GATED("reference=5", "", "submit gpu0.p\nunmap host.words gpu0\nwait host.done == 1")},
{"", "", GATED("reference=5", "", "submit gpu0.p\nwait host.done == 1\nunmap host.words gpu0")},
{"use-after-free", "gpu0.p tests host.words after host main closes the handle of host.words",
 GATED("reference=0", "", "export host.words\nclose host.words\nsubmit gpu0.p\nwait host.done == 1")},
{"", "", GATED("reference=0", "", "export host.words\nsubmit gpu0.p\nwait host.done == 1\nclose host.words")},
// What is never executed needs no memory.
{"", "", GATED("reference=5", "", "free gpu0.a\nsubmit gpu0.p\nwait host.done == 1")},
{"use-after-free", "gpu0.p reads gpu0.a after host main frees gpu0.a",
 GATED("reference=0", "", "free gpu0.a\nsubmit gpu0.p\nwait host.done == 1")},
// Nor does a mapping that was never there.
{"unmapped", "gpu0 has not mapped host.words",
 GATED("reference=0", " map=gpu1", "submit gpu0.p\nwait host.done == 1")},
// Rounds: each has its own buffer life; a free of the last round's buffer comes one round too early.
{"", "", R"(gpus 1
buffer gpu0.a bytes=4K init=random
buffer host.b bytes=4K
signal host.done value=0
queue gpu0.p peer=host
  copy_linear bytes=4K src=gpu0.a dst=host.b
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  repeat 3
    alloc host.b
    submit gpu0.p
    wait host.done >= epoch
    expect host.b == gpu0.a
    free host.b
  end
end)"},
{"use-after-free", "host main may free host.b before gpu0.p has written it", R"(gpus 1
buffer gpu0.a bytes=4K init=random
buffer host.b bytes=4K
signal host.done value=0
queue gpu0.p peer=host
  copy_linear bytes=4K src=gpu0.a dst=host.b
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  repeat 3
    alloc host.b
    submit gpu0.p
    wait host.done >= epoch-1
    free host.b
  end
  wait host.done >= 3
end)"},
// What a kernel has stored is in its L2 until it releases.
{"use-after-free", "host main may free gpu0.a before kernel gpu0.k has written it", R"(gpus 1
buffer gpu0.a bytes=4K
signal gpu0.inner value=0
signal host.done value=0
kernel gpu0.k
  store gpu0.a = zero
  set gpu0.inner = 1 scope=agent
  wait host.done == 1
  set host.done = 2
end
kernel gpu0.l
  wait gpu0.inner == 1 scope=agent
  set host.done = 1 scope=agent
end
host main
  wait host.done == 1
  free gpu0.a
  wait host.done == 2
end)"},
{"use-after-free", "host main may free gpu0.words before kernel gpu0.k has stored to it", R"(gpus 1
buffer gpu0.words bytes=64 init=zero
signal gpu0.inner value=0 at=gpu0.words[0]
signal host.done value=0
kernel gpu0.k
  set gpu0.inner = 1 scope=agent
  wait host.done == 1
  set host.done = 2
end
kernel gpu0.l
  wait gpu0.inner == 1 scope=agent
  set host.done = 1
end
host main
  wait host.done == 1
  free gpu0.words
  wait host.done == 2
end)"},
{"", "", R"(gpus 1
buffer gpu0.words bytes=64 init=zero
signal gpu0.inner value=0 at=gpu0.words[0]
signal host.done value=0
signal host.go value=0
kernel gpu0.k
  set gpu0.inner = 1 scope=agent
  set host.go = 1
end
kernel gpu0.l
  wait gpu0.inner == 1 scope=agent
  wait host.go == 1
  set host.done = 1
end
host main
  wait host.done == 1
  free gpu0.words
end)"},
{"", "", R"(gpus 1
buffer gpu0.a bytes=4K
signal host.done value=0
kernel gpu0.k
  store gpu0.a = zero
  set host.done = 1
end
host main
  wait host.done == 1
  free gpu0.a
end)"},
};
// clang-format on

/// The errors of a report, without those of the same rule.
std::string errors(const CheckReport& r) {
  std::string out;
  for (const auto& f : r.findings)
    if (f.diagnostic.severity == Severity::error && out.find(f.diagnostic.rule) == out.npos)
      out += f.diagnostic.rule + " ";
  return out;
}

}  // namespace

TEST_CASE("a use of memory comes after its allocation and before its free, on every order") {
  for (const auto& c : kLives) {
    INFO(c.text);
    const auto r = checked(c.text);
    INFO(said(r));
    if (*c.rule == '\0') {
      CHECK(r.proved());
      continue;
    }
    CHECK(has(r, c.rule));
    CHECK(said(r).find(c.message) != std::string::npos);
  }
}

TEST_CASE("the hint is the missing wait before the free") {
  const auto r =
      checked(RELAY("host main\nsubmit *\nwait host.filled == 1\nfree host.stage\nwait host.done == 1\nend"));
  INFO(said(r));
  REQUIRE(errors(r) == "use-after-free ");
  CHECK(r.findings[0].diagnostic.hint.find("before line 21 add: wait host.done == 1") != std::string::npos);
  REQUIRE(r.findings[0].edits.size() == 1);
  CHECK(r.findings[0].edits[0].text == "wait host.done == 1");
}

TEST_CASE("a mapped range of the host stays, unless that is not assumed") {
  const auto text = RELAY("host main\nmap host.stage gpu1\nsubmit *\nwait host.done == 1\nend");
  CheckOptions o;
  CHECK(checked(text, o).proved());
  REQUIRE(o.profile.set("pinned=moves"));
  const auto r = checked(text, o);
  CHECK(r.verdict() == Verdict::unproved);
  CHECK(has(r, "pinned-range"));
  // Memory that nothing maps is the runtime's.
  CHECK(checked(RELAY("host main\nsubmit *\nwait host.done == 1\nend"), o).proved());
}

TEST_CASE("a word that begins anew with its buffer is not followed") {
  const auto r = checked(R"(gpus 1
buffer host.w bytes=64 init=zero
signal host.n value=0 at=host.w[0]
queue gpu0.p engine=2
  atomic op=add_rtn_64 addr=host.n value=1
end
host main
  alloc host.w
  submit gpu0.p
  wait host.n == 1
  free host.w
  alloc host.w
  wait host.n == 1
end)");
  INFO(said(r));
  CHECK_FALSE(r.proved());
  CHECK(has(r, "unknown-value"));
}

TEST_CASE("an allocation brings the first contents back") {
  const std::string text = R"(gpus 1
buffer gpu0.a bytes=4K init=zero
buffer gpu0.b bytes=4K
signal host.x value=0 bits=32
signal host.y value=0 bits=32
queue gpu0.fill engine=2
  fill dst=gpu0.a bytes=4K unit=dword data=7
  fence addr=host.x value=1
end
queue gpu0.copy engine=3
  copy_linear bytes=4K src=gpu0.a dst=gpu0.b
  fence addr=host.y value=1
end
host main
  alloc gpu0.a
  submit gpu0.fill
  wait host.x == 1
  free gpu0.a
  alloc gpu0.a
  submit gpu0.copy
  wait host.y == 1
end
expect gpu0.b == )";
  CHECK(checked(text + "old gpu0.a").proved());
  const auto kept = checked(R"(gpus 1
buffer gpu0.a bytes=4K init=zero
buffer gpu0.seven bytes=4K
buffer gpu0.b bytes=4K
signal host.x value=0 bits=32
signal host.y value=0 bits=32
queue gpu0.fill engine=2
  fill dst=gpu0.a bytes=4K unit=dword data=7
  fill dst=gpu0.seven bytes=4K unit=dword data=7
  fence addr=host.x value=1
end
queue gpu0.copy engine=3
  copy_linear bytes=4K src=gpu0.a dst=gpu0.b
  fence addr=host.y value=1
end
host main
  alloc gpu0.a
  submit gpu0.fill
  wait host.x == 1
  free gpu0.a
  alloc gpu0.a
  submit gpu0.copy
  wait host.y == 1
end
expect gpu0.b == gpu0.seven)");
  CHECK(has(kept, "wrong-result"));
}
