#pragma once
// The result of a simulation as text for people, as JSON for programs, and as a picture.
//
//   fputs(to_table(*t, *s).c_str(), stdout);      // time by phase, utilisation, bottleneck, sensitivity
//   save(to_json(*t), "run.json");
//   save(timeline_svg(recorder.snapshot(), {.title = "all-gather b2b, 64K"}), "run.svg");
//   save(curves_svg({.title = "...", .series = {{"bcst", {{1024, 1.6}, ...}}}}), "speedup.svg");
//
// Pictures are SVG 1.1 without scripts or fonts of their own. Pure functions that allocate; any thread; no errors.
#include "sdma/simulate/simulate.hpp"

#include <span>
#include <utility>

namespace sdma {
inline namespace v0 {

/// Ends with a newline. Shows the uncertainty and what it depends on only if a Sensitivity is given.
std::string to_table(const Simulation&, const Sensitivity* = nullptr);
/// {"ns":.., "uncertainty_ns":.., "phases":{..}, "path":[..], "busy":[..], "sensitivity":[..]}
std::string to_json(const Simulation&, const Sensitivity* = nullptr);

struct TimelineOptions {
  std::string title{};
  double begin_ns = 0, end_ns = 0;  ///< both 0: the whole trace
};
/// Draws any trace: one bar per packet, one row per lane, and arrows from trigger to completion.
std::string timeline_svg(const trace::Trace&, const TimelineOptions& = {});

struct Curves {
  struct Series {
    std::string name{};
    std::vector<std::pair<double, double>> points{};  ///< x (on a logarithmic axis), y
    bool dashed = false;
  };
  std::string title{}, x_label{}, y_label{};
  std::vector<Series> series{};
  bool bytes = true;  ///< x are sizes: 1K, 1M
};
std::string curves_svg(const Curves&);

/// "1.6 us", "430 ns", "2.85 ms".
std::string time_text(double ns);

}  // namespace v0
}  // namespace sdma
