// SPDX-License-Identifier: MIT
#pragma once
// What executions of schedules do, by rule of docs/ordering.md. For each: options, the verdict, a schedule.

#include "explore.hpp"

namespace sdma::explore {

struct Case {
  const char* rule;
  const char* options;  ///< of Profile::set, with spaces between them
  Ending verdict;
  const char* text;
};

// clang-format off
#define ONE_QUEUE(packets, wait)                                                                                  \
  "sdma 1\ngpus 1\nbuffer gpu0.a bytes=8\nbuffer gpu0.b bytes=8\nbuffer gpu0.c bytes=8\nsignal host.x value=0\n"      \
  "signal host.y value=0\nqueue gpu0.p engine=2\n" packets "\nend\nhost main\nsubmit gpu0.p\n" wait "\nend\n"
#define COPY(from, to) "copy_linear bytes=8 src=gpu0." from " dst=gpu0." to "\n"

inline constexpr Case kCases[] = {
// Copies overlap, unless a fence and a poll of its word stand between them.
{"Q1", "", Ending::race, ONE_QUEUE(COPY("a", "b") COPY("b", "c") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q1", "copies=inorder", Ending::clean, ONE_QUEUE(COPY("a", "b") COPY("b", "c") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q1", "", Ending::clean, ONE_QUEUE(COPY("a", "b") COPY("a", "c") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q2", "copies=inorder", Ending::race, ONE_QUEUE("write dst=gpu0.a data=[1]\n" COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q2", "write=ordered", Ending::clean, ONE_QUEUE("write dst=gpu0.a data=[1]\n" COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q2", "copies=inorder", Ending::race, ONE_QUEUE(COPY("a", "b") "write dst=gpu0.b data=[1]\nfence addr=host.x value=1", "wait host.x == 1")},
{"Q2", "write=ordered", Ending::clean, ONE_QUEUE(COPY("a", "b") "write dst=gpu0.b data=[1]\nfence addr=host.x value=1", "wait host.x == 1")},
{"Q2", "write=ordered", Ending::race, ONE_QUEUE(COPY("a", "b") COPY("b", "c") "fence addr=host.x value=1", "wait host.x == 1")},
// A fence covers what comes before it; what comes after it is not held back.
{"Q3", "", Ending::clean, ONE_QUEUE("write dst=gpu0.a data=[1]\nfence addr=host.x value=1", "wait host.x == 1")},
{"Q3", "fence_covers=copies", Ending::incomplete, ONE_QUEUE("write dst=gpu0.a data=[1]\nfence addr=host.x value=1", "wait host.x == 1")},
{"Q3", "fence_covers=copies", Ending::clean, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q4", "", Ending::clean, ONE_QUEUE("fence addr=host.x value=1\n" "fence addr=host.x value=2", "wait host.x == 2")},
{"Q4", "fences=unordered", Ending::stuck, ONE_QUEUE("fence addr=host.x value=1\n" "fence addr=host.x value=2", "wait host.x == 2")},
{"Q5", "", Ending::race, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1\n" COPY("c", "a") "fence addr=host.x value=2", "wait host.x == 2")},
{"Q5", "fence=full", Ending::clean, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1\n" COPY("c", "a") "fence addr=host.x value=2", "wait host.x == 2")},
{"Q5", "", Ending::incomplete, ONE_QUEUE("fence addr=host.x value=1\n" COPY("a", "b"), "wait host.x == 1")},
{"Q6", "", Ending::stuck, ONE_QUEUE("poll_mem addr=host.y func=eq reference=1\nfence addr=host.x value=1", "wait host.x == 1")},
{"Q7", "", Ending::clean, ONE_QUEUE(COPY("a", "b") "fence addr=host.y value=1\npoll_mem addr=host.y func=ge reference=1\n" COPY("b", "c") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q7", "", Ending::race, ONE_QUEUE(COPY("a", "b") "poll_mem addr=host.y func=eq reference=0\n" COPY("b", "c") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q7", "poll=full", Ending::clean, ONE_QUEUE(COPY("a", "b") "poll_mem addr=host.y func=eq reference=0\n" COPY("b", "c") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q7", "fence_covers=copies poll=full", Ending::clean, ONE_QUEUE("write dst=gpu0.a data=[1]\npoll_mem addr=host.y func=eq reference=0\nfence addr=host.x value=1", "wait host.x == 1")},
{"Q9", "", Ending::race, ONE_QUEUE(COPY("a", "b") "fence addr=host.y value=1\npoll_mem addr=host.y func=ge reference=1 retry=9\n" COPY("b", "c") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q9", "finite_poll=edge", Ending::clean, ONE_QUEUE(COPY("a", "b") "fence addr=host.y value=1\npoll_mem addr=host.y func=ge reference=1 retry=9\n" COPY("b", "c") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q12", "", Ending::different, ONE_QUEUE("fence addr=host.y value=1\ncond_exec addr=host.y reference=1 dwords=7\n" COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q12", "cond_exec=ordered", Ending::clean, ONE_QUEUE("fence addr=host.y value=1\ncond_exec addr=host.y reference=1 dwords=7\n" COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q12", "", Ending::stuck, ONE_QUEUE("cond_exec addr=host.y reference=1 dwords=4\nfence addr=host.x value=1", "wait host.x == 1")},
{"Q12", "", Ending::different, ONE_QUEUE("pre_exec dwords=7 devices=1\n" COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q15", "", Ending::undefined, ONE_QUEUE("copy_linear bytes=4 src=gpu0.a dst=gpu0.a[2]\nfence addr=host.x value=1", "wait host.x == 1")},
{"Q15", "", Ending::clean, ONE_QUEUE("copy_subwindow element_log2=0 src=gpu0.a src_pitch=4 dst=gpu0.a dst_pitch=4 x=2 y=2 dst_x=2\nfence addr=host.x value=1", "wait host.x == 1")},
// A WRITE can be a flag, but only after a full barrier.
{"Q16", "", Ending::incomplete, ONE_QUEUE(COPY("a", "b") "write dst=host.x data=[1]", "wait host.x == 1")},
{"Q16", "", Ending::clean, ONE_QUEUE(COPY("a", "b") "fence addr=host.y value=1\npoll_mem addr=host.y func=ge reference=1\nwrite dst=host.x data=[1]", "wait host.x == 1")},
// Engines: two queues of one engine, and the release that a poll waits for on the same engine.
{"X2", "", Ending::stuck, R"(sdma 1
gpus 1
signal host.x value=0
signal host.y value=0
queue gpu0.p engine=2
  poll_mem addr=host.x func=eq reference=1
  fence addr=host.y value=1
end
queue gpu0.q engine=2
  fence addr=host.x value=1
end
host main
  submit *
  wait host.y == 1
end)"},
{"X2", "poll_yields=yes", Ending::clean, R"(sdma 1
gpus 1
signal host.x value=0
signal host.y value=0
queue gpu0.p engine=2
  poll_mem addr=host.x func=eq reference=1
  fence addr=host.y value=1
end
queue gpu0.q engine=2
  fence addr=host.x value=1
end
host main
  submit *
  wait host.y == 1
end)"},
{"X2", "", Ending::stuck, R"(sdma 1
gpus 2
signal host.a value=0
signal host.b value=0
signal host.c value=0
signal host.d value=0
queue gpu0.p engine=2
  poll_mem addr=host.b func=ge reference=1
  fence addr=host.c value=1
end
queue gpu0.r engine=2
  fence addr=host.a value=1
end
queue gpu1.q engine=2
  poll_mem addr=host.a func=ge reference=1
  fence addr=host.d value=1
end
queue gpu1.t engine=2
  fence addr=host.b value=1
end
host main
  submit *
  wait host.c >= 1
  wait host.d >= 1
end)"},
{"X6", "", Ending::stuck, R"(sdma 1
gpus 2
signal host.x value=0
queue gpu0.p engine=2
  fence addr=host.x value=1
end
queue gpu1.q engine=2
  fence addr=host.x value=2
end
host main
  submit *
  wait host.x == 2
end)"},
{"X6", "", Ending::clean, R"(sdma 1
gpus 2
signal host.x value=0
queue gpu0.p engine=2
  atomic op=add_rtn_64 addr=host.x value=1
end
queue gpu1.q engine=2
  atomic op=add_rtn_64 addr=host.x value=1
end
host main
  submit *
  wait host.x == 2
end)"},
// A counter that something else stores to.
{"X6", "", Ending::stuck, R"(sdma 1
gpus 2
signal host.x value=0
queue gpu0.p engine=2
  atomic op=add_rtn_64 addr=host.x value=1
end
host main
  submit gpu0.p
  set host.x = 0
  wait host.x == 1
end)"},
// Two hosts submit one queue: either may submit epoch 1.
{"H7", "", Ending::stuck, R"(sdma 1
gpus 1
signal host.x value=0
queue gpu0.p engine=2
  fence addr=host.x value=epoch
end
host a
  wait host.x >= 2
  submit gpu0.p
end
host b
  submit gpu0.p
end)"},
{"H7", "", Ending::clean, R"(sdma 1
gpus 1
signal host.x value=0
queue gpu0.p engine=2
  fence addr=host.x value=epoch
end
host a
  wait host.x >= 1
  submit gpu0.p
  wait host.x >= 2
end
host b
  submit gpu0.p
end)"},
// A ring of 1K holds less than 1K: three submits of 84 dwords, but not a fourth.
{"H9", "", Ending::stuck, R"(sdma 1
gpus 1
signal host.go value=0
signal host.x value=0
queue gpu0.p engine=2 ring=1K
  poll_mem addr=host.go func=ge reference=1
  nop dwords=74
  fence addr=host.x value=epoch
end
host main
  submit gpu0.p
  submit gpu0.p
  submit gpu0.p
  submit gpu0.p
  set host.go = 1
  wait host.x >= 4
end)"},
{"H9", "", Ending::clean, R"(sdma 1
gpus 1
signal host.go value=0
signal host.x value=0
queue gpu0.p engine=2 ring=1K
  poll_mem addr=host.go func=ge reference=1
  nop dwords=74
  fence addr=host.x value=epoch
end
host main
  submit gpu0.p
  submit gpu0.p
  submit gpu0.p
  set host.go = 1
  submit gpu0.p
  wait host.x >= 4
end)"},
// A ring is never filled to its last byte: two submits of 128 dwords would.
{"H9", "", Ending::stuck, R"(sdma 1
gpus 1
signal host.go value=0
signal host.x value=0
queue gpu0.p engine=2 ring=1K
  poll_mem addr=host.go func=ge reference=1
  nop dwords=118
  fence addr=host.x value=epoch
end
host main
  submit gpu0.p
  submit gpu0.p
  set host.go = 1
  wait host.x >= 2
end)"},
// A slot does not cross the end of the ring: the third slot of 100
// dwords begins at 256, and the first one's 100 are not enough.
{"H9", "", Ending::stuck, R"(sdma 1
gpus 1
signal host.go value=1
signal host.x value=0
queue gpu0.p engine=2 ring=1K
  poll_mem addr=host.go func=ge reference=epoch
  nop dwords=90
  fence addr=host.x value=epoch
end
host main
  submit gpu0.p
  submit gpu0.p
  submit gpu0.p
  set host.go = 3
  wait host.x >= 3
end)"},
{"H9", "", Ending::clean, R"(sdma 1
gpus 1
signal host.go value=1
signal host.x value=0
queue gpu0.p engine=2 ring=1K
  poll_mem addr=host.go func=ge reference=epoch
  nop dwords=54
  fence addr=host.x value=epoch
end
host main
  submit gpu0.p
  submit gpu0.p
  submit gpu0.p
  set host.go = 3
  wait host.x >= 3
end)"},
// First values: a random or poisoned word may hold anything, and the last declaration of a word decides.
{"first values", "", Ending::incomplete, R"(sdma 1
gpus 1
buffer gpu0.f bytes=4 init=random
queue gpu0.p engine=2
  fence addr=gpu0.f value=1
end
queue gpu0.q engine=3
  poll_mem addr=gpu0.f func=eq reference=1
  fence addr=host.x value=1
end
signal host.x value=0
host main
  submit *
  wait host.x == 1
end)"},
{"first values", "", Ending::incomplete, R"(sdma 1
gpus 1
buffer gpu0.f bytes=4
queue gpu0.p engine=2
  fence addr=gpu0.f value=1
end
queue gpu0.q engine=3
  poll_mem addr=gpu0.f func=eq reference=1
  fence addr=host.x value=1
end
signal host.x value=0
host main
  submit *
  wait host.x == 1
end)"},
{"first values", "", Ending::incomplete, R"(sdma 1
gpus 1
buffer gpu0.a bytes=4
buffer gpu0.b bytes=4
signal host.x value=0
signal host.y value=1 at=host.x
queue gpu0.p engine=2
  copy_linear bytes=4 src=gpu0.a dst=gpu0.b
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"first values", "", Ending::clean, R"(sdma 1
gpus 1
buffer gpu0.f bytes=4 init=zero
buffer gpu0.g bytes=4 at=gpu0.f
signal host.x value=0
queue gpu0.p engine=2
  poll_mem addr=gpu0.f func=eq reference=0
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"first values", "", Ending::stuck, R"(sdma 1
gpus 1
buffer gpu0.f bytes=4
buffer gpu0.g bytes=4 at=gpu0.f init=random
signal host.x value=0
queue gpu0.p engine=2
  poll_mem addr=gpu0.f func=ne reference=0
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
// What a condition skips is not pending at the end; what it executes is.
{"Q12", "", Ending::clean, ONE_QUEUE("fence addr=host.x value=1\ncond_exec addr=host.y reference=1 dwords=7\n" COPY("a", "b"), "wait host.x == 1")},
{"Q12", "", Ending::incomplete, ONE_QUEUE("fence addr=host.x value=1\ncond_exec addr=host.y reference=0 dwords=7\n" COPY("a", "b"), "wait host.x == 1")},
// 64-bit words: a poll reads one half, a wait of the host reads both.
{"Q8", "", Ending::clean, ONE_QUEUE("atomic op=add_rtn_64 addr=host.y value=0x100000002\npoll_mem addr=host.y[4] func=eq reference=1\npoll_mem addr=host.y func=eq reference=2\nfence addr=host.x value=1", "wait host.x == 1\nwait host.y == 0x100000002")},
{"Q8", "", Ending::stuck, ONE_QUEUE("atomic op=add_rtn_64 addr=host.y value=0x100000002\nfence addr=host.x value=1", "wait host.x == 1\nwait host.y == 2")},
// Expectations at the end: of bytes, then and at first, and of signals.
{"expect", "", Ending::clean, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1") "expect gpu0.b == old gpu0.a\nexpect gpu0.b == gpu0.a\nexpect gpu0.c == old gpu0.c\nexpect host.x == 1\nexpect host.y == 0"},
{"expect", "", Ending::unmet, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1") "expect gpu0.b == old gpu0.b"},
{"expect", "", Ending::unmet, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1") "expect gpu0.b[0..4] == old gpu0.a[4..8]"},
{"expect", "", Ending::unmet, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1") "expect host.x == 2"},
{"expect", "", Ending::clean, ONE_QUEUE("copy_swap bytes=8 a=gpu0.a b=gpu0.b\nfence addr=host.x value=1", "wait host.x == 1") "expect gpu0.b == old gpu0.a\nexpect gpu0.a == old gpu0.b"},
{"expect", "", Ending::unmet, ONE_QUEUE("copy_swap bytes=8 a=gpu0.a b=gpu0.b\nfence addr=host.x value=1", "wait host.x == 1") "expect gpu0.b == gpu0.a"},
{"expect", "", Ending::unmet, ONE_QUEUE(COPY("a", "b") "write dst=gpu0.c data=[1]\nfence addr=host.x value=1", "wait host.x == 1") "expect gpu0.c[4..8] == old gpu0.c[4..8]\nexpect gpu0.c == old gpu0.c"},
// One of two values is the last: some executions end with the other one.
{"expect", "fences=unordered", Ending::unmet, ONE_QUEUE("fence addr=host.y value=1\nfence addr=host.y value=2\natomic op=add_rtn_64 addr=host.x value=1", "wait host.x == 1") "expect host.y == 2"},
// A TIMESTAMP comes after everything earlier; only a fence or an atomic says that it is complete.
{"Q10", "", Ending::clean, ONE_QUEUE(COPY("a", "b") "timestamp addr=gpu0.b\nfence addr=host.x value=1", "wait host.x == 1")},
{"Q10", "", Ending::race, ONE_QUEUE("timestamp addr=gpu0.b\n" COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q10", "write=ordered copies=inorder", Ending::race, ONE_QUEUE("timestamp addr=gpu0.b\n" COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1")},
{"Q10", "", Ending::incomplete, ONE_QUEUE("fence addr=host.x value=1\ntimestamp addr=gpu0.b", "wait host.x == 1")},
{"Q11", "", Ending::clean, ONE_QUEUE("fence addr=host.x value=1\ntrap context=1", "wait host.x == 1")},
// Threads that add, that sample, and that access bytes.
{"threads", "", Ending::clean, ONE_QUEUE("fence addr=host.x value=1", "wait host.x == 1\nadd host.y += 3") "expect host.y == 3"},
{"threads", "", Ending::clean, ONE_QUEUE("atomic op=add_rtn_64 addr=host.x value=1", "wait host.x == 1\nsample n = host.x\nsubmit gpu0.p\nwait host.x == n + 1")},
{"threads", "", Ending::stuck, ONE_QUEUE("atomic op=add_rtn_64 addr=host.x value=1", "sample n = host.x\nwait host.x >= n + 1")},
{"threads", "", Ending::clean, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1\nload gpu0.b\nstore gpu0.a = 1\nexpect gpu0.b == old gpu0.a")},
{"threads", "", Ending::unmet, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1\nstore gpu0.a = 1\nexpect gpu0.b == gpu0.a")},
{"threads", "", Ending::race, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1", "load gpu0.b\nwait host.x == 1")},
{"threads", "", Ending::race, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1", "store gpu0.a = 1\nwait host.x == 1")},
{"threads", "", Ending::clean, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1", "load gpu0.a\nwait host.x == 1")},
{"threads", "", Ending::race, ONE_QUEUE("fence addr=host.x value=1", "store gpu0.a = 1\nwait host.x == 1") "host other\nload gpu0.a\nend"},
{"threads", "", Ending::clean, ONE_QUEUE("fence addr=host.x value=1", "store gpu0.a = 1\nset host.y = 1\nwait host.x == 1") "host other\nwait host.y == 1\nload gpu0.a\nend"},
// What a kernel stores stays in flight until a release; what others store is stale for it until an acquire.
{"C3", "", Ending::clean, ONE_QUEUE("poll_mem addr=host.y func=eq reference=1\n" COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1") "kernel gpu0.k\nstore gpu0.a = 1\nset host.y = 1\nend"},
{"C3", "", Ending::race, ONE_QUEUE("poll_mem addr=host.y func=eq reference=1\n" COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1") "kernel gpu0.k\nset host.y = 1\nstore gpu0.a = 1\nend"},
{"C4", "", Ending::clean, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1") "kernel gpu0.k\nwait host.x == 1\nload gpu0.b\nend"},
{"C4", "", Ending::race, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1\nset host.y = 1") "kernel gpu0.k\nwait host.y == 1\nset gpu0.z = 1 scope=agent\nend\nsignal gpu0.z value=0\nkernel gpu0.l\nwait gpu0.z == 1 scope=agent\nload gpu0.b\nend"},
{"C4", "l2_probe=yes", Ending::clean, ONE_QUEUE(COPY("a", "b") "fence addr=host.x value=1", "wait host.x == 1\nset host.y = 1") "kernel gpu0.k\nwait host.y == 1\nset gpu0.z = 1 scope=agent\nend\nsignal gpu0.z value=0\nkernel gpu0.l\nwait gpu0.z == 1 scope=agent\nload gpu0.b\nend"},
{"C3", "", Ending::clean, ONE_QUEUE("fence addr=host.x value=1", "wait host.y == 1\nload gpu0.a") "signal gpu0.z value=0\nkernel gpu0.k\nstore gpu0.a = 1\nset gpu0.z = 1 scope=agent\nend\nkernel gpu0.l\nwait gpu0.z == 1 scope=agent\nstore gpu0.a = 2\nset host.y = 1\nend"},
{"C3", "", Ending::race, ONE_QUEUE("fence addr=host.x value=1", "wait host.y == 1\nload gpu0.b") "signal gpu0.z value=0\nkernel gpu0.k\nstore gpu0.b = 1\nset gpu0.z = 1 scope=agent\nend\nkernel gpu0.l\nwait gpu0.z == 1 scope=agent\nstore gpu0.a = 2\nset host.y = 1\nend"},
// At the scope of a GPU, only its kernels see a value, until one of them releases it at system scope.
{"C3", "", Ending::stuck, ONE_QUEUE("fence addr=host.x value=1", "wait host.y == 1") "kernel gpu0.k\nset host.y = 1 scope=agent\nend"},
{"C3", "", Ending::clean, ONE_QUEUE("fence addr=host.x value=1", "wait host.y == 1") "kernel gpu0.k\nset host.y = 1 scope=agent\nset host.x = 2\nend"},
{"C3", "", Ending::clean, ONE_QUEUE("fence addr=host.x value=1", "wait host.x == 1") "kernel gpu0.k\nset host.y = 1 scope=agent\nend\nexpect host.y == 1"},
{"C4", "", Ending::stuck, ONE_QUEUE("fence addr=host.x value=1", "") "kernel gpu0.k\nwait host.x == 1 scope=agent\nend"},
{"C4", "", Ending::clean, ONE_QUEUE("fence addr=host.x value=1", "") "kernel gpu0.k\nset host.y = 1 scope=agent\nend\nkernel gpu0.l\nwait host.y == 1 scope=agent\nwait host.x == 1\nend"},
// A swap of a word and of data loads both before it stores either.
{"X7", "", Ending::clean, ONE_QUEUE("copy_swap bytes=8 a=gpu0.a b=gpu0.b\nfence addr=gpu0.a value=5\nfence addr=host.x value=1", "wait host.x == 1") "expect gpu0.b == old gpu0.a"},
// A sum of integers.
{"sums", "", Ending::clean, ONE_QUEUE("fence addr=host.x value=1", "wait host.x == 1") "kernel gpu0.k\nstore gpu0.c = sum(gpu0.a, gpu0.b) type=i32\nend\nexpect gpu0.c == old sum(gpu0.b, gpu0.a) type=i32"},
{"sums", "", Ending::unmet, ONE_QUEUE("fence addr=host.x value=1", "wait host.x == 1") "kernel gpu0.k\nstore gpu0.c = sum(gpu0.a, gpu0.b) type=i32\nend\nexpect gpu0.c == old sum(gpu0.b, gpu0.b) type=i32"},
};
#undef ONE_QUEUE
#undef COPY
// clang-format on

}  // namespace sdma::explore
