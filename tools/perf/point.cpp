// SPDX-License-Identifier: MIT
#include "point.hpp"

#include <algorithm>
#include <numeric>

namespace collectives::perf {
namespace {

/// The resolution of steady clocks, used for a round that seems to take no time.
constexpr double kLeastTime = 1e-3;

template <class T, class Of> std::vector<T> distinct(std::span<const Point> points, Of of) {
  std::vector<T> all;
  for (const auto& p : points)
    if (std::find(all.begin(), all.end(), of(p)) == all.end()) all.push_back(of(p));
  return all;
}

}  // namespace

Times times_of(std::vector<double> us) {
  for (auto& t : us) t = std::max(t, kLeastTime);
  std::sort(us.begin(), us.end());
  const auto n = us.size();
  return {.mean = std::accumulate(us.begin(), us.end(), 0.0) / static_cast<double>(n),
          .least = us.front(),
          .median = (us[(n - 1) / 2] + us[n / 2]) / 2,
          .most = us.back(),
          .lower = us[(n - 1) / 4],
          .upper = us[n - 1 - (n - 1) / 4]};
}

std::vector<sdma::Diagnostic> failed(std::vector<sdma::Diagnostic> all, const Way& way, std::uint64_t bytes) {
  for (auto& d : all) d.where = name(way) + ", " + size_text(bytes) + (d.where.empty() ? "" : ": " + d.where);
  return all;
}

bool is_in_place(const Options& o) noexcept {
  return (o.collective != Collective::all_to_all && o.collective != Collective::alltoallv) ||
         o.variant == Variant::swap;
}

std::uint64_t moved_bytes(const Options& o) {
  switch (o.collective) {
    case Collective::all_gather:
    case Collective::all_to_all:
    case Collective::broadcast: return o.bytes * (o.gpus - 1);
    case Collective::alltoallv: {
      std::uint64_t bytes = 0;
      const auto parts = sent_parts(o);
      for (std::size_t i = 0; i < parts.size(); ++i) bytes += i / o.gpus != i % o.gpus ? parts[i].bytes : 0;
      return bytes;
    }
    case Collective::scatter:
    case Collective::gather: return o.bytes - part_of(o, o.root).bytes;
  }
  return 0;
}

void set_bandwidths(Point& p, double bus_factor) noexcept {
  p.algbw = static_cast<double>(p.bytes) / p.us.mean / 1e3;
  p.busbw = p.algbw * bus_factor;
}

const Point* find(std::span<const Point> points, std::uint64_t bytes, const Way& way) noexcept {
  const auto at =
      std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.bytes == bytes && p.way == way; });
  return at == points.end() ? nullptr : &*at;
}

std::optional<double> speed_up(std::span<const Point> points, const Point& p) noexcept {
  const auto base = std::find_if(points.begin(), points.end(),
                                 [&](const Point& b) { return b.bytes == p.bytes && b.way == kBase && b.at == p.at; });
  if (base == points.end()) return {};
  return base->us.median / p.us.median;
}

std::vector<std::uint64_t> sizes_of(std::span<const Point> points) {
  return distinct<std::uint64_t>(points, [](const Point& p) { return p.bytes; });
}
std::vector<Way> ways_of(std::span<const Point> points) {
  return distinct<Way>(points, [](const Point& p) { return p.way; });
}

}  // namespace collectives::perf
