// SPDX-License-Identifier: MIT
// What threads access and compute: the rules of packets about mappings, links, overlap and values, for their data.
#include "checked.hpp"
#include "sdma/device/topology.hpp"

using namespace sdma;
using sdma::test::checked;
using sdma::test::has;
using sdma::test::said;

namespace {

std::string kernel(const std::string& declared, const std::string& actions) {
  return "gpus 4\n" + declared + "buffer gpu0.o bytes=4K\nkernel gpu0.k\n" + actions + "end\nhost main\nend\n";
}
const std::string kDenied = "buffer gpu1.d bytes=4K init=random map=gpu1\n";

}  // namespace

TEST_CASE("a kernel accesses only what its GPU has mapped") {
  const std::string unmapped = "unmapped: gpu0 has not mapped gpu1.d\n";
  CHECK(said(checked(kernel(kDenied, "  load gpu1.d\n"))) == unmapped);
  CHECK(said(checked(kernel(kDenied, "  store gpu1.d = 1\n"))) == unmapped);
  CHECK(said(checked(kernel(kDenied, "  store gpu0.o = sum(gpu1.d, gpu1.d) type=i32\n"))) == unmapped);
  CHECK(said(checked(kernel(kDenied + "signal gpu1.w value=0 at=gpu1.d\n", "  wait gpu1.w != 1\n"))).find(unmapped) !=
        std::string::npos);
  CHECK(said(checked(kernel("buffer gpu1.d bytes=4K map=gpu1,gpu0\n", "  load gpu1.d\n"))) == "");
}

TEST_CASE("a kernel reaches the memory of a GPU only over a link") {
  const auto ring = *layout("ring:4");
  const std::string far = "buffer gpu2.d bytes=4K init=random\n";
  const std::string no_link = "no-link: kernel gpu0.k: gpu0 has no link to gpu2: its kernels do not reach gpu2.d\n";
  CHECK(said(checked(kernel(far, "  load gpu2.d\n"), {.topology = &ring})) == no_link);
  CHECK(said(checked(kernel(far, "  store gpu0.o = sum(gpu0.o, gpu2.d) type=f32\n"), {.topology = &ring})) == no_link);
  CHECK(said(checked(kernel("buffer gpu1.d bytes=4K\n", "  store gpu1.d = 1\n"), {.topology = &ring})) == "");
}

TEST_CASE("a kernel rings the doorbell of another GPU's queue only over a link") {
  const auto ring = *layout("ring:4");
  const auto rings = [&](const std::string& gpu, const std::string& by) {
    return checked("gpus 4\nbuffer " + gpu + ".a bytes=4K init=random\nbuffer " + gpu +
                       ".b bytes=4K\nsignal host.done value=0\nqueue " + gpu +
                       ".q engine=2\n  copy_linear bytes=4K src=" + gpu + ".a dst=" + gpu +
                       ".b\n  atomic op=add_rtn_64 addr=host.done value=1\nend\n" + by + "\n  repeat 2\n    submit " +
                       gpu + ".q\n    wait host.done >= epoch\n  end\nend\n",
                   {.topology = &ring});
  };
  CHECK(said(rings("gpu2", "kernel gpu0.k")) ==
        "no-link: kernel gpu0.k: gpu0 has no link to gpu2: its kernels do not reach the doorbell of gpu2.q\n");
  CHECK(said(rings("gpu1", "kernel gpu0.k")) == "");
  CHECK(said(rings("gpu0", "kernel gpu0.k")) == "");
  // A thread of the host reaches all GPUs of its node.
  CHECK(said(rings("gpu2", "host main")) == "");
}

TEST_CASE("a sum is stored to other bytes than those of its parts, or to exactly these") {
  const std::string a = "buffer gpu0.a bytes=8K init=random\nbuffer gpu0.b bytes=4K at=gpu0.a[2K]\n";
  CHECK(has(checked(kernel(a, "  store gpu0.a[4..+4K] = sum(gpu0.a[0..+4K], gpu0.o) type=i32\n")), "overlap"));
  CHECK(has(checked(kernel(a, "  store gpu0.b = sum(gpu0.o, gpu0.a[0..+4K]) type=i32\n")), "overlap"));
  CHECK(said(checked(kernel(a, "  store gpu0.a[0..+4K] = sum(gpu0.a[0..+4K], gpu0.o) type=i32\n"))) == "");
  CHECK(said(checked(kernel(a, "  store gpu0.a[4K..+4K] = sum(gpu0.a[0..+4K], gpu0.o) type=i32\n"))) == "");
}

TEST_CASE("a value of a thread fits the 32 bits of its word, in each round and with each sample") {
  const auto word = [](const std::string& bits, const std::string& actions) {
    return checked("gpus 1\nsignal host.s value=5 bits=" + bits +
                   "\nsignal host.n value=0xfffffffe bits=32\nhost main\n" + actions + "end\n");
  };
  for (const std::string act :
       {"wait host.s <= 2000000000*epoch", "set host.s = 2000000000*epoch", "add host.s += 2000000000*epoch"}) {
    INFO(act);
    const auto r = word("32", "  repeat 3\n    " + act + "\n  end\n");
    CHECK(said(r).find("epoch-overflow: host main: 6000000000 does not fit the 32 bits of host.s in round 3\n") !=
          std::string::npos);
    CHECK_FALSE(has(word("32", "  repeat 2\n    " + act + "\n  end\n"), "epoch-overflow"));
    CHECK_FALSE(has(word("64", "  repeat 3\n    " + act + "\n  end\n"), "epoch-overflow"));
  }
  CHECK(has(word("32", "  sample n = host.n\n  wait host.s != n + 2\n"), "epoch-overflow"));
  CHECK_FALSE(has(word("32", "  sample n = host.n\n  wait host.s != n + 1\n"), "epoch-overflow"));
  // A constant is stored as the bits that the word has.
  CHECK_FALSE(has(word("32", "  set host.s = -1\n"), "epoch-overflow"));
}

TEST_CASE("a proof about a kernel says whose caches its waits clean") {
  const std::string text = R"(gpus 1
buffer gpu0.in bytes=4K init=random
buffer gpu0.mid bytes=4K
signal gpu0.f value=0
signal gpu0.g value=0
queue gpu0.q engine=2
  copy_linear bytes=4K src=gpu0.in dst=gpu0.mid
  fence addr=gpu0.f value=1
end
kernel gpu0.one
  wait gpu0.f == 1
  load gpu0.mid
  set gpu0.g = 1 scope=agent
end
kernel gpu0.two
  wait gpu0.g == 1 scope=agent
)";
  const auto all = [&](const std::string& reads, bool dies) {
    CheckOptions o;
    o.profile.kernels_are_dies = dies;
    return checked(text + reads + "end\nhost main\n  submit *\nend\n", o);
  };
  CHECK(all("", false).assumes == std::vector<std::string>{"kernel=gpu"});
  CHECK(all("", true).assumes == std::vector<std::string>{"kernel=die"});
  CHECK_FALSE(has(all("", true), "kernel-scope"));
  // The other die has not acquired at system scope.
  CHECK(has(all("  load gpu0.mid\n", true), "kernel-scope"));
  CHECK(checked("gpus 1\nkernel gpu0.k\nend\nhost main\nend\n").assumes.empty());
}
