// SPDX-License-Identifier: MIT
// Copies that are listed at run time: sdma_copies of sdma/client.h.
#include "collectives/engines.hpp"
#include "handles.hpp"
#include "sdma/device/open.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/sync/recipes.hpp"
#include "sdma/sync/submission.hpp"

#include <algorithm>
#include <limits>
#include <optional>

using namespace sdma;
using client::done;
using client::made;
using client::refused;

struct sdma_copies {
  /// A queue, which one thread at a time serves.
  struct Lane {
    explicit Lane(Queue q) noexcept : queue(std::move(q)), ring(queue.memory()) {}
    Queue queue;
    Ring<> ring;
  };
  ~sdma_copies() {
    for (const auto& w : words) open->forget(w.va);
  }

  std::shared_ptr<client::Opened> open;
  Memory memory{};              ///< of the words
  std::vector<Signal> words{};  ///< go, then one per part
  std::vector<GpuVa> parts{};
  std::optional<StreamOrder> order{};
  std::vector<std::unique_ptr<Lane>> lanes{};
  std::uint32_t round = 0;  ///< 0: none has begun
  bool released = true;
  bool boxes = true;
  bool host_sees = true;  ///< the memory of the GPU, which is then read past what its path still holds
};

namespace {

constexpr std::uint64_t kWordBytes = 64;

sdma_copies* create(sdma_device* d, std::uint32_t gpu, const char* settings) {
  std::uint64_t queues = 1, parts = 1, ring = 1u << 20;
  auto direction = HostDirection::from_host;
  const bool cuda = dynamic_cast<CudaDevice*>(d->open->device.get()) != nullptr;
  bool boxes = true;
  for (const auto& s : client::settings(settings)) {
    const auto& [name, value] = s;
    if (name == "queues") queues = client::number(s, 64);
    else if (name == "parts") parts = client::number(s, 1u << 20);
    else if (name == "ring") ring = client::number(s, 1u << 30);
    else if (name == "direction" && (value == "from_host" || value == "to_host"))
      direction = value == "to_host" ? HostDirection::to_host : HostDirection::from_host;
    else if (name == "boxes" && (value == "yes" || value == "no")) boxes = value == "yes";
    else
      return refused("sdma_copies_create", "the setting " + name + "=" + value + " does not exist",
                     "queues=N parts=N ring=SIZE direction=from_host|to_host boxes=yes|no");
  }
  if (queues == 0 || parts == 0) return refused("sdma_copies_create", "there are 0 queues or parts");
  auto c = std::make_unique<sdma_copies>();
  c->open = d->open;
  c->boxes = boxes;
  c->host_sees = !cuda;
  auto& device = *d->open->device;
  auto memory = device.allocate({.bytes = (parts + 1) * kWordBytes, .purpose = Purpose::words});
  if (!memory) return refused(memory.error());
  c->memory = std::move(*memory);
  for (std::uint64_t i = 0; i <= parts; ++i) {
    const auto word = device.signal_at(c->memory, i * kWordBytes);
    if (!word) return refused(word.error());
    c->words.push_back(*word);
    c->open->know(*word);
    if (i > 0) c->parts.push_back(word->va);
  }
  c->order.emplace(c->words.front().va, c->parts);
  const auto engines = collectives::engines_of(device.topology(), GpuId{gpu}, direction);
  if (!engines)
    return refused("sdma_copies_create", "the node has no gpu" + std::to_string(gpu) + " with a live engine", "",
                   SDMA_ERROR_DEVICE);
  for (std::uint64_t i = 0; i < queues; ++i) {
    auto queue =
        device.create_queue({.gpu = GpuId{gpu}, .engine = (*engines)[i % engines->size()], .ring_bytes = ring});
    if (!queue) return refused(queue.error());
    c->lanes.push_back(std::make_unique<sdma_copies::Lane>(std::move(*queue)));
  }
  return c.release();
}

/// The rows as one packet, if they fit into one: a row of the box is a row, or a slice if rows are far apart.
std::optional<CopySubwindow> box_of(const sdma_copy& c, Generation g) noexcept {
  const auto all = c.src | c.dst | c.bytes | c.src_pitch | c.dst_pitch;
  if (all % 4 != 0) return {};
  const std::uint8_t log2 = all % 16 == 0 ? 4 : 2;
  const auto x = c.bytes >> log2, from = c.src_pitch >> log2, to = c.dst_pitch >> log2;
  if (from < x || to < x || std::max({from, to, c.rows}) > std::numeric_limits<std::uint32_t>::max()) return {};
  const auto n = [](std::uint64_t elements) { return static_cast<std::uint32_t>(elements); };
  CopySubwindow p{.src = GpuVa{c.src},
                  .dst = GpuVa{c.dst},
                  .element_log2 = log2,
                  .src_pitch = n(from),
                  .dst_pitch = n(to),
                  .src_slice = from * c.rows,
                  .dst_slice = to * c.rows,
                  .x = n(x),
                  .y = n(c.rows)};
  if (fits(p, g)) return p;
  p.src_pitch = p.dst_pitch = p.x;
  p.src_slice = from;
  p.dst_slice = to;
  p.y = 1;
  p.z = n(c.rows);
  if (fits(p, g)) return p;
  return {};
}

/// Some copies with one doorbell, after the poll if they are the first, and before the fence if they are the last.
Errc publish(sdma_copies& c, Ring<>& ring, std::size_t part, std::span<const sdma_copy> some, bool first, bool last) {
  std::size_t dwords = dwords_of<PollMem, Fence>();
  for (const auto& copy : some)
    dwords += copy.rows * (copy.bytes / kChunk + 1) * dwords_of<CopyLinear>() + dwords_of<CopySubwindow>();
  Submission packets{ring, dwords, client::within(client::kRoomSeconds), AnyGeneration{ring.generation()}};
  const auto go = c.order->go(), word = c.parts[part];
  if (first) packets.with([&](auto& w) { return acquire_equal(w, go, c.round); });
  for (const auto& copy : some) {
    const auto box = c.boxes && copy.rows > 1 ? box_of(copy, ring.generation()) : std::nullopt;
    if (box) packets.put(*box);
    for (std::uint64_t r = 0; !box && r < copy.rows; ++r)
      packets.copy({.src = GpuVa{copy.src + r * copy.src_pitch},
                    .dst = GpuVa{copy.dst + r * copy.dst_pitch},
                    .bytes = copy.bytes});
  }
  if (last) packets.with([&](auto& w) { return complete_with_fence(w, word, c.round); });
  return packets.publish();
}

int publish(sdma_copies& c, std::uint32_t queue, std::uint32_t part, std::span<const sdma_copy> all, bool each) {
  if (queue >= c.lanes.size() || part >= c.parts.size())
    return refused("sdma_publish",
                   "there is no queue " + std::to_string(queue) + ", or no part " + std::to_string(part));
  if (c.round == 0) return refused("sdma_publish", "no round has begun", "call sdma_round first");
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].bytes == 0 || all[i].rows == 0)
      return refused("sdma_publish", "copy " + std::to_string(i) + " has 0 bytes or 0 rows");
  auto& lane = *c.lanes[queue];
  auto e = Errc::ok;
  if (!each || all.size() < 2) e = publish(c, lane.ring, part, all, true, true);
  for (std::size_t i = 0; each && all.size() >= 2 && i < all.size() && e == Errc::ok; ++i)
    e = publish(c, lane.ring, part, all.subspan(i, 1), i == 0, i + 1 == all.size());
  if (e != Errc::ok) return refused("sdma_publish", e, *c.open, lane.queue);
  return SDMA_OK;
}

}  // namespace

sdma_copies* sdma_copies_create(sdma_device* d, std::uint32_t gpu, const char* settings) {
  return made([&]() -> sdma_copies* {
    if (!d) return refused("sdma_copies_create", "the device is NULL");
    return create(d, gpu, settings);
  });
}
std::uint32_t sdma_round(sdma_copies* c) {
  std::uint32_t round = 0;
  (void)done([&]() -> int {
    if (!c) return refused("sdma_round", "the copies are NULL");
    if (!c->released) return refused("sdma_round", "the last round has not been released", "call sdma_release");
    c->released = false;
    round = c->round = c->order->next();
    return SDMA_OK;
  });
  return round;
}
int sdma_publish(sdma_copies* c, std::uint32_t queue, std::uint32_t part, const sdma_copy* copies, std::size_t count,
                 int each) {
  return done([&]() -> int {
    if (!c || (!copies && count != 0)) return refused("sdma_publish", "the queues or the copies are NULL");
    return publish(*c, queue, part, {copies, count}, each != 0);
  });
}
int sdma_release(sdma_copies* c, const sdma_stream* s) {
  return done([&]() -> int {
    if (!c || (s && !s->write)) return refused("sdma_release", "the copies or the stream's function is NULL");
    if (c->released) return refused("sdma_release", "no round has begun", "call sdma_round first");
    if (!s) c->words.front().set(c->round);
    else if (const auto r = c->order->begin(client::calls_of(*s), c->round); !r)
      return refused("sdma_release", r.error());
    c->released = true;
    return SDMA_OK;
  });
}
int sdma_hold(sdma_copies* c, std::uint32_t part, const sdma_stream* s) {
  return done([&]() -> int {
    if (!c || !s || !s->hold) return refused("sdma_hold", "the copies, the stream or its function is NULL");
    if (part >= c->parts.size()) return refused("sdma_hold", "there is no part " + std::to_string(part));
    if (const auto status = s->hold(s->stream, c->parts[part].value, c->round); status != 0)
      return refused("sdma_hold", StreamRefusal{.status = status, .word = c->parts[part]});
    return SDMA_OK;
  });
}
int sdma_copies_wait(sdma_copies* c, std::uint32_t part, double seconds) {
  return done([&]() -> int {
    if (!c || part >= c->parts.size())
      return refused("sdma_copies_wait", "the copies are NULL, or there is no part " + std::to_string(part));
    if (c->round == 0) return SDMA_OK;
    std::vector<const Queue*> queues;
    for (const auto& l : c->lanes) queues.push_back(&l->queue);
    const WaitCondition all[] = {{c->words[part + 1], Compare::eq, c->round, {}}};
    const auto r = client::reach(*c->open, all, queues, client::within(seconds));
    if (c->host_sees) (void)c->open->device->flush_host_writes(c->lanes.front()->queue.gpu());
    return r;
  });
}
void sdma_copies_free(sdma_copies* c) { delete c; }
