// SPDX-License-Identifier: MIT
// The solver of flows beside SimGrid's, on the same lists: each GPU of a switch sends bytes to each other one, and each
// port carries what its GPU sends or receives.
//
//   bench-simgrid [GPUS]      CPU times (the best of five), and the largest difference of a completion; 64 GPUs
//
// Exit code 1 if a completion differs by more than 1 %. SimGrid runs its model CM02, with links of equal latency, which
// it then shares equally, and without answers (network/crosstraffic); findings/simgrid_*.sh say why. Its times include
// no platform, and ours include the queue of events that a simulation has.
#include "../lib/simulate/ends.hpp"
#include "../lib/simulate/network.hpp"

#include <simgrid/s4u.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <span>
#include <string>

using namespace sdma::detail;

namespace {

constexpr double kRate = 50;      // of a port: bytes per ns
constexpr double kLatencyNs = 1;  // of a port, in SimGrid: it needs one to share a link equally
constexpr double kTolerance = 0.01;

struct Flow {
  std::uint32_t from{}, to{};
  double begin_ns{}, bytes{};
};

/// Of this process, because other programs may use the machine, too. Both solvers have one thread.
double seconds(const std::function<void()>& what) {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  };
  const auto begin = now();
  what();
  return now() - begin;
}

/// The ends of the flows in ns, by our solver. The flows begin in their order.
std::vector<double> ours(std::uint32_t gpus, std::span<const Flow> flows) {
  Network net;
  for (std::uint32_t p = 0; p < 2 * gpus; ++p) net.add({.name = "port", .rate = kRate, .times = kRate});
  std::vector<double> out(flows.size());
  std::vector<std::size_t> flow_of;
  Ends ends;
  std::uint64_t number = 0;
  for (std::size_t next = 0; next < flows.size() || !ends.empty();) {
    const bool begins = next < flows.size() && (ends.empty() || flows[next].begin_ns <= ends.next().t);
    const auto now = begins ? flows[next].begin_ns : ends.next().t;
    for (; next < flows.size() && flows[next].begin_ns <= now; ++next) {
      const auto& f = flows[next];
      const auto id = net.start(now, f.bytes, {{f.from, 1}, {gpus + f.to, 1}});
      flow_of.resize(std::max<std::size_t>(flow_of.size(), id + 1));
      flow_of[id] = next;
    }
    while (!ends.empty() && ends.next().t <= now) {
      const auto id = ends.take();
      out[flow_of[id]] = now;
      net.end(now, id);
    }
    for (const auto id : net.settle(now)) ends.set({.t = net.finish(id), .number = number++, .flow = id});
  }
  return out;
}

/// The same by SimGrid, which can run once in a process: a child writes the ends and its time to shared memory.
class SimGrid {
 public:
  SimGrid(std::uint32_t gpus, std::span<const Flow> flows) : gpus_(gpus), flows_(flows) {
    const auto bytes = (flows.size() + 1) * sizeof(double);
    shared_ = static_cast<double*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (shared_ == MAP_FAILED) std::exit(2);
    const auto child = fork();
    if (child == 0) run();
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
      std::fprintf(stderr, "bench-simgrid: SimGrid's process has failed\n");
      std::exit(2);
    }
  }
  double seconds_taken() const { return shared_[0]; }
  std::span<const double> ends() const { return {shared_ + 1, flows_.size()}; }
  ~SimGrid() { munmap(shared_, (flows_.size() + 1) * sizeof(double)); }
  SimGrid(const SimGrid&) = delete;
  SimGrid& operator=(const SimGrid&) = delete;

 private:
  [[noreturn]] void run() {
    namespace sg = simgrid::s4u;
    std::string arguments[] = {"bench-simgrid", "--cfg=network/model:CM02", "--cfg=network/crosstraffic:0",
                               "--log=root.thres:error"};
    std::vector<char*> values;
    for (auto& a : arguments) values.push_back(a.data());
    auto count = static_cast<int>(values.size());
    values.push_back(nullptr);
    sg::Engine engine(&count, values.data());
    auto* zone = sg::create_full_zone("switch");
    std::vector<sg::Host*> hosts;
    std::vector<sg::Link*> out, in;
    for (std::uint32_t g = 0; g < gpus_; ++g) {
      const auto name = std::to_string(g);
      hosts.push_back(zone->create_host("gpu" + name, 1e9)->seal());
      out.push_back(zone->create_link("out" + name, kRate * 1e9)->set_latency(kLatencyNs * 1e-9)->seal());
      in.push_back(zone->create_link("in" + name, kRate * 1e9)->set_latency(kLatencyNs * 1e-9)->seal());
    }
    for (std::uint32_t a = 0; a < gpus_; ++a)
      for (std::uint32_t b = 0; b < gpus_; ++b)
        if (a != b)
          zone->add_route(hosts[a]->get_netpoint(), hosts[b]->get_netpoint(), nullptr, nullptr,
                          {sg::LinkInRoute(out[a]), sg::LinkInRoute(in[b])}, false);
    zone->seal();
    std::vector<sg::CommPtr> all;
    sg::Actor::create("flows", hosts[0], [&] {
      for (const auto& f : flows_) {
        if (const auto wait = f.begin_ns * 1e-9 - sg::Engine::get_clock(); wait > 0) sg::this_actor::sleep_for(wait);
        all.push_back(sg::Comm::sendto_init(hosts[f.from], hosts[f.to]));
        all.back()->set_payload_size(static_cast<std::uint64_t>(f.bytes))->start();
      }
      for (const auto& c : all) c->wait();
    });
    shared_[0] = seconds([&] { engine.run(); });
    for (std::size_t i = 0; i < all.size(); ++i) shared_[i + 1] = all[i]->get_finish_time() * 1e9 - 2 * kLatencyNs;
    std::_Exit(0);
  }

  std::uint32_t gpus_;
  std::span<const Flow> flows_;
  double* shared_{};
};

/// One flow between each two GPUs. Flow k begins k * `apart_ns` after the first one; its bytes are a multiple of 1 MB,
/// up to `most`.
std::vector<Flow> list(std::uint32_t gpus, double apart_ns, std::uint32_t most) {
  std::vector<Flow> out;
  std::uint64_t random = 1;
  for (std::uint32_t t = 1; t < gpus; ++t)
    for (std::uint32_t g = 0; g < gpus; ++g) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      out.push_back({.from = g,
                     .to = (g + t) % gpus,
                     .begin_ns = apart_ns * static_cast<double>(out.size()),
                     .bytes = 1e6 * static_cast<double>(1 + (random >> 33) % most)});
    }
  return out;
}

/// Prints a row. False if the two disagree.
bool compare(const char* what, std::uint32_t gpus, const std::vector<Flow>& flows) {
  constexpr int kTimes = 5;
  double mine = 1e9, its = 1e9, off = 0;
  for (int i = 0; i < kTimes; ++i) {
    std::vector<double> a;
    mine = std::min(mine, seconds([&] { a = ours(gpus, flows); }));
    const SimGrid b(gpus, flows);
    its = std::min(its, b.seconds_taken());
    for (std::size_t k = 0; k < flows.size(); ++k)
      off = std::max(off, std::abs(a[k] - b.ends()[k]) / (b.ends()[k] - flows[k].begin_ns));
  }
  std::printf("%-36s %6zu flows %9.1f ms, SimGrid %9.1f ms, %6.2f times as long; completions differ by %.2g %%\n", what,
              flows.size(), mine * 1e3, its * 1e3, its / mine, 100 * off);
  std::fflush(stdout);
  return off <= kTolerance;
}

}  // namespace

int main(int count, char** values) {
  const auto gpus = count > 1 ? static_cast<std::uint32_t>(std::atoi(values[1])) : 64u;
  if (gpus < 2 || gpus > 1024) {
    std::fprintf(stderr, "usage: bench-simgrid [GPUS], from 2 to 1024\n");
    return 2;
  }
  bool same = compare("equal, all at once", gpus, list(gpus, 0, 1));
  same = compare("equal, one after another", gpus, list(gpus, 100, 1)) && same;
  same = compare("unequal, all at once", gpus, list(gpus, 0, 16)) && same;
  same = compare("unequal, one after another", gpus, list(gpus, 100, 16)) && same;
  return same ? 0 : 1;
}
