// SPDX-License-Identifier: MIT
#pragma once
// Schedules with one thing wrong, and some with nothing: for each Case c of kCases, check(c.text) has the error c.rule
// and no other.

namespace sdma::test {

struct Case {
  const char* rule;  ///< "" where all is right
  const char* text;
};

// clang-format off
inline constexpr Case kCases[] = {
// Two accesses that nothing orders: queues, one queue, rounds.
{"race", R"(gpus 2
buffer gpu*.a bytes=8K
signal host.x value=0
signal host.y value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
  fence addr=host.x value=1
end
queue gpu1.q peer=gpu0
  copy_linear bytes=4K src=gpu1.a[2K] dst=gpu0.a[4K]
  fence addr=host.y value=1
end
host main
  submit *
  wait host.x == 1
  wait host.y == 1
end)"},
{"", R"(gpus 2
buffer gpu*.a bytes=8K
signal host.x value=0
signal host.y value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
  fence addr=host.x value=1
end
queue gpu1.q peer=gpu0
  poll_mem addr=host.x func=eq reference=1
  copy_linear bytes=4K src=gpu1.a[2K] dst=gpu0.a[4K]
  fence addr=host.y value=1
end
host main
  submit *
  wait host.y == 1
end)"},
{"race", R"(gpus 2
buffer gpu0.a bytes=4K
buffer gpu1.b bytes=4K
buffer gpu1.c bytes=4K
signal host.x value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.b
  fence addr=host.x value=1
  copy_linear bytes=4K src=gpu1.c dst=gpu0.a
  fence addr=host.x value=2
end
host main
  submit *
  wait host.x == 2
end)"},
{"", R"(gpus 2
buffer gpu0.a bytes=4K
buffer gpu1.b bytes=4K
buffer gpu1.c bytes=4K
signal host.x value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.b
  fence addr=host.x value=1
  poll_mem addr=host.x func=ge reference=1
  copy_linear bytes=4K src=gpu1.c dst=gpu0.a
  fence addr=host.x value=2
end
host main
  submit *
  wait host.x == 2
end)"},
{"race", R"(gpus 2
buffer gpu*.a bytes=4K
signal host.go value=0
signal host.x value=0
queue gpu0.p peer=gpu1
  poll_mem addr=host.go func=ge reference=epoch
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
  fence addr=host.x value=epoch
end
host main
  repeat 3
    set host.go = epoch
    submit *
  end
  wait host.x >= 3
end)"},
// A poll that nothing can satisfy.
{"never-met", R"(gpus 1
signal host.x value=0
signal host.y value=0
queue gpu0.p peer=host
  poll_mem addr=host.x func=eq reference=7
  fence addr=host.y value=1
end
host main
  submit *
  set host.x = 6
  wait host.y == 1
end)"},
{"never-met", R"(gpus 1
signal host.x value=0
host main
  wait host.x == 1
end)"},
// Cycles.
{"deadlock", R"(gpus 2
signal host.x value=0
signal host.y value=0
queue gpu0.p peer=gpu1
  poll_mem addr=host.x func=eq reference=1
  fence addr=host.y value=1
end
queue gpu1.q peer=gpu0
  poll_mem addr=host.y func=eq reference=1
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"deadlock", R"(gpus 1
signal host.go value=0
signal host.x value=0
queue gpu0.p peer=host
  poll_mem addr=host.go func=eq reference=1
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
  set host.go = 1
end)"},
{"self-wait", R"(gpus 1
signal host.x value=0
queue gpu0.p peer=host
  poll_mem addr=host.x func=eq reference=1
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"engine-wait", R"(gpus 1
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
// Values from before.
{"stale-wait", R"(gpus 1
signal host.x value=1
queue gpu0.p peer=host
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"stale-wait", R"(gpus 1
signal host.x value=0
queue gpu0.p peer=host
  fence addr=host.x value=1
end
host main
  repeat 2
    submit *
    wait host.x == 1
  end
end)"},
{"stale-wait", R"(gpus 1
signal host.x value=0
queue gpu0.p peer=host
  atomic op=add_rtn_64 addr=host.x value=1
end
host main
  repeat 2
    submit *
    wait host.x >= 1
  end
end)"},
{"", R"(gpus 1
signal host.x value=0
queue gpu0.p peer=host
  fence addr=host.x value=1
end
host main
  repeat 3
    set host.x = 0
    submit *
    wait host.x == 1
  end
end)"},
// Completions that do not say what they should.
{"early-completion", R"(gpus 2
buffer gpu*.a bytes=4K
signal host.x value=0
queue gpu0.p peer=gpu1
  fence addr=host.x value=1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
end
host main
  submit *
  wait host.x == 1
end)"},
{"foreign-completion", R"(gpus 2
buffer gpu*.a bytes=4K
signal host.x value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
end
queue gpu1.q peer=gpu0
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"unawaited", R"(gpus 2
buffer gpu*.a bytes=4K
signal host.x value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
  fence addr=host.x value=1
end
host main
  submit *
end)"},
{"data-as-flag", R"(gpus 2
buffer gpu*.a bytes=4K
signal host.f value=0
signal host.y value=0
signal host.x value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.a dst=gpu1.a
  write dst=host.f data=[1]
  fence addr=host.y value=1
end
queue gpu1.q peer=gpu0
  poll_mem addr=host.f func=eq reference=1
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
  wait host.y == 1
end)"},
{"", R"(gpus 3
signal host.x value=0 bits=32
signal host.y value=0 bits=32
queue gpu0.p peer=gpu1
  fence addr=host.x value=1
  atomic op=add_rtn_32 addr=host.y value=1
end
queue gpu1.q peer=gpu0
  fence addr=host.x value=1
  atomic op=add_rtn_32 addr=host.y value=1
end
host main
  submit *
  wait host.x == 1
  wait host.y == 2
end)"},
{"fence-race", R"(gpus 3
signal host.x value=0 bits=32
signal host.y value=0 bits=32
signal host.z value=0 bits=32
queue gpu0.p peer=gpu1
  fence addr=host.x value=1
  atomic op=add_rtn_32 addr=host.y value=1
end
queue gpu1.q peer=gpu0
  fence addr=host.x value=1
  fence addr=host.z value=1
  atomic op=add_rtn_32 addr=host.y value=1
end
queue gpu2.r peer=gpu0
  poll_mem addr=host.z func=eq reference=1
  fence addr=host.x value=2
  atomic op=add_rtn_32 addr=host.y value=1
end
host main
  submit *
  wait host.x >= 1
  wait host.y == 3
end)"},
{"fence-race", R"(gpus 2
signal host.x value=0
queue gpu0.p peer=gpu1
  fence addr=host.x value=1
end
queue gpu1.q peer=gpu0
  fence addr=host.x value=2
end
host main
  submit *
  wait host.x >= 1
end)"},
{"missed-value", R"(gpus 2
signal host.x value=0
signal host.y value=0
for i in 0..2
  queue gpu{i}.p peer=host
    atomic op=add_rtn_64 addr=host.x value=1
    atomic op=add_rtn_64 addr=host.y value=1
  end
end
host main
  submit *
  wait host.x == 1
  wait host.y == 2
end)"},
{"missed-value", R"(gpus 1
signal host.x value=0
queue gpu0.p peer=host
  fence addr=host.x value=1
  fence addr=host.x value=2
end
host main
  submit *
  wait host.x == 1
end)"},
{"", R"(gpus 1
signal host.x value=0
queue gpu0.p peer=host
  fence addr=host.x value=1
  fence addr=host.x value=2
end
host main
  submit *
  wait host.x >= 1
  wait host.x >= 2
end)"},
{"unreachable-count", R"(gpus 2
signal host.x value=0
for i in 0..2
  queue gpu{i}.p peer=host
    atomic op=add_rtn_64 addr=host.x value=1
  end
end
host main
  submit *
  wait host.x >= 3
end)"},
{"reset-while-polled", R"(gpus 1
signal host.go value=0
signal host.x value=0
queue gpu0.p peer=host
  poll_mem addr=host.go func=eq reference=1
  fence addr=host.x value=1
end
host main
  submit *
  set host.go = 1
  set host.go = 0
  wait host.x == 1
end)"},
{"wide-poll", R"(gpus 1
signal host.w value=0x100000000
signal host.x value=0
queue gpu0.p engine=2
  atomic op=add_rtn_64 addr=host.w value=-1
  atomic op=add_rtn_64 addr=host.w value=1
end
queue gpu0.q engine=3
  poll_mem addr=host.w[4] func=ge reference=0
  poll_mem addr=host.w func=ge reference=0
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
  wait host.w >= 1
end)"},
{"overlap", R"(gpus 1
buffer gpu0.a bytes=8K
signal host.x value=0
queue gpu0.p peer=gpu0
  copy_linear bytes=4K src=gpu0.a dst=gpu0.a[2K]
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"unmapped", R"(gpus 2
buffer gpu1.a bytes=4K map=gpu1
buffer gpu0.b bytes=4K
signal host.x value=0
queue gpu0.p peer=gpu1
  copy_linear bytes=4K src=gpu0.b dst=gpu1.a
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"unmapped", R"(gpus 1
buffer gpu0.b bytes=4K
signal host.x value=0
queue gpu0.p peer=gpu0
  copy_linear bytes=4K src=gpu0.b dst=0x1000
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"host-vram", R"(gpus 1
signal gpu0.go value=0
signal host.x value=0
queue gpu0.p peer=gpu0
  poll_mem addr=gpu0.go func=eq reference=1
  fence addr=host.x value=1
end
host main
  submit *
  set gpu0.go = 1
  wait host.x == 1
end)"},
{"vram-fence", R"(gpus 1
buffer gpu0.a bytes=4K init=random
buffer host.b bytes=4K
signal gpu0.y value=0 bits=32
signal host.x value=0
queue gpu0.p engine=0
  copy_linear bytes=4K src=gpu0.a dst=host.b
  fence addr=gpu0.y value=1
end
queue gpu0.q engine=1
  poll_mem addr=gpu0.y func=eq reference=1
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"freed-while-polled", R"(gpus 1
signal host.go value=0
signal host.x value=0
queue gpu0.p peer=gpu0
  fence addr=host.x value=1
  poll_mem addr=host.go func=eq reference=1
end
host main
  submit *
  set host.go = 1
  wait host.x == 1
end)"},
{"unused-signal", R"(gpus 1
signal host.y value=0
signal host.x value=0
queue gpu0.p peer=gpu0
  fence addr=host.y value=1
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"never-submitted", R"(gpus 1
signal host.x value=0
queue gpu0.p peer=gpu0
  fence addr=host.x value=1
end
queue gpu0.q peer=gpu0
  nop
end
host main
  submit gpu0.p
  wait host.x == 1
end)"},
{"epoch-overflow", R"(gpus 1
signal host.x value=0
signal host.y value=0
queue gpu0.p peer=gpu0
  fence addr=host.y value=0x80000000*epoch
  fence addr=host.x value=epoch
end
host main
  submit *
  submit *
  wait host.x >= 2
end)"},
{"cond-exec-unordered", R"(gpus 1
signal host.c value=0 bits=32
signal host.x value=0
queue gpu0.p peer=gpu0
  fence addr=host.c value=1
  cond_exec addr=host.c reference=1 dwords=4
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
end)"},
{"unknown-value", R"(gpus 1
signal host.x value=0
queue gpu0.p peer=gpu0
  atomic op=cmpswap_rtn_64 addr=host.x value=1 compare=0 loop
end
host main
  submit *
  wait host.x == 1
end)"},
{"unknown-sample", R"(gpus 1
signal host.x value=0
queue gpu0.p peer=gpu0
  fence addr=host.x value=2
end
host main
  submit *
  sample n = host.x
  wait host.x >= n
  wait host.x == 2
end)"},
{"indirect-user-queue", R"(gpus 1
buffer gpu0.ib bytes=64 align=32
signal host.x value=0
queue gpu0.p peer=gpu0
  nop
  nop
  indirect base=gpu0.ib dwords=8
  fence addr=host.x value=1
  nop dwords=4
end
host main
  submit *
  wait host.x == 1
end)"},
// What is sampled is used.
{"", R"(gpus 1
signal host.c value=0
signal host.x value=0
queue gpu0.p peer=gpu0
  fence addr=host.c value=3
  fence addr=host.x value=1
end
host main
  submit *
  wait host.x == 1
  sample n = host.c
  wait host.x == n-2
end)"},
// A barrier that counts: each round's arrivals are needed because the next round's need this one's.
{"", R"(gpus 4
buffer gpu*.a bytes=4K
buffer gpu*.b bytes=4K
signal host.bar value=0
for i in 0..4
  queue gpu{i}.p peer=gpu{(i+1)%4}
    copy_linear bytes=4K src=gpu{i}.a dst=gpu{(i+1)%4}.b
    atomic op=add_rtn_64 addr=host.bar value=1
    poll_mem addr=host.bar func=ge reference=4
    copy_linear bytes=4K src=gpu{i}.b dst=gpu{(i+1)%4}.a
    atomic op=add_rtn_64 addr=host.bar value=1
    poll_mem addr=host.bar func=ge reference=8
    copy_linear bytes=4K src=gpu{i}.a dst=gpu{(i+1)%4}.b
    atomic op=add_rtn_64 addr=host.bar value=1
  end
end
host main
  submit *
  wait host.bar >= 12
end)"},
};
// clang-format on

}  // namespace sdma::test
