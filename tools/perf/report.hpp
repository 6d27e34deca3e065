// SPDX-License-Identifier: MIT
#pragma once
// What a sweep prints and saves: rows, conclusions, files for other programs, curves.
//
//   table.cpp        #       size         count      type    variant      time    algbw    busbw  #wrong
//                    #        (B)    (elements)                            (us)   (GB/s)   (GB/s)
//                          65536          8192     uint8     b2b+pl     41.20     1.59     1.39       0
//
//   summary.cpp      # Speed-up over pcpy, by medians
//                    #   size   pcpy+pl     bcst  bcst+pl      b2b   b2b+pl   best
//                    #     1K      2.87     1.59     3.67     2.58     4.10   b2b+pl
//                    # Best by size (3 % is a tie)           over pcpy
//                    #     1K to  128K  b2b+pl                 4.10 to 4.58
//                    # Against NCCL, by medians; a tie: the middle halves of both ways' rounds overlap
//                    #    size  ours            us  theirs          us  theirs/ours
//                    #    256K  pcpy+pl      19.60  nccl         21.90         1.12  tie
//
//   records.cpp      collective,gpus,device,order,size,count,type,variant,ran,time_us,..
//                    all_gather,8,soft,strict,65536,8192,uint8,b2b+pl,b2b,41.2,..
//                    {"program":"sdma perf", ..., "points":[{"size":65536, ...}], "best":[{"from":..}]}
//
//   plot.cpp         speed-up over pcpy, if that and another variant were measured; bus bandwidth, always
//
//   With --format=nccl-tests, the table has the 13 columns and the footer of nccl-tests from version 2.13 on, for
//   scripts that parse them.
//
// A column of the table grows if a number needs it, so that columns never touch. A range of the best variants continues
// while its way is within kTie of the best, so that noise does not split it, or while the model does not know which of
// both is faster (Point::ties). auto is compared, but is never the best, because it is one of the others. What was not
// measured or verified is empty in CSV, null in JSON, and N/A in the columns of nccl-tests, where a collective has
// either the half in place or the one out of place. In curves, each variant has one colour, prelaunch is dashed, and
// both axes are logarithmic: half as fast is as far from 1 as twice as fast.
//
// Pure functions; any thread may call them. Lines end with newlines. No errors.
#include "json/json.hpp"
#include "others.hpp"
#include "point.hpp"

#include <string>
#include <string_view>

namespace collectives::perf {

/// `device`: a description for people; `remarks`: further '#' lines. Ends with the names of the columns.
std::string header(const Settings&, std::string_view device, std::string_view remarks = {});
/// '#' lines about what the times mean: software, a simulation, settings without effect.
std::string cautions(const Settings&);
/// The row, and its details. `intervals`: the table has a column for half of the 68 % interval, as in a simulation.
/// `energy`: it also has one for joules.
std::string row(const Point&, std::size_t variant_width = 12, bool intervals = false, bool energy = false);
/// '#' lines below a row: wrong data, energy, times beside a matrix product.
std::string details(const Point&);
/// "# note: ..." lines for fallbacks that are not in `said` yet, which is updated.
std::string notes(const Point&, std::vector<std::string>& said);
/// The number of wrong elements, and the average bus bandwidth.
std::string footer(std::span<const Point>);
/// The width of the column of variants: names of schedule files may be long.
std::size_t variant_width(const Settings&);
/// "auto=b2b": the way, and the variant that auto has chosen.
std::string way_text(const Point&);
/// "b2b": the variant that ran, the rival, or the file.
std::string ran_text(const Point&);
/// Of all ways but rivals.
double average_busbw(std::span<const Point>) noexcept;
std::uint64_t wrong_elements(std::span<const Point>) noexcept;

namespace nccl_format {
std::string header(const Settings&, std::string_view device, std::string_view remarks);
std::string row(const Settings&, const Point&);
/// Says OK only if every row was verified.
std::string footer(std::span<const Point>);
}  // namespace nccl_format

inline constexpr double kTie = 1.03;

struct Range {
  std::uint64_t least{}, most{};  ///< measured sizes, both inclusive
  Way way{};
  std::optional<double> least_speed_up{}, most_speed_up{};  ///< over pcpy, if that was measured
};
/// The fastest point at this size; null if there is none.
const Point* fastest(std::span<const Point>, std::uint64_t bytes, bool prelaunch);
/// Ranges in the order of sizes. `prelaunch`: include ways with prelaunch. Empty if no way is left.
std::vector<Range> best(std::span<const Point>, bool prelaunch, double tie = kTie);
/// True if the times say which way is best on a GPU: those of software engines do not.
bool comparable(const Settings&) noexcept;
/// '#' lines; "" if there is only one way. If the times are not comparable, one line says so.
std::string summary(std::span<const Point>, bool comparable = true);
/// '#' lines for each alternative of the machine that changes a way's time, and where it changes it the most; "" if
/// nothing was simulated with intervals, or if none does.
std::string rests_on(std::span<const Point>);

/// Ours is the way with the smallest median, without auto; theirs, the mode with the smallest.
struct Comparison {
  std::uint64_t bytes{};
  Way ours{}, theirs{};
  double ours_us{}, theirs_us{};  ///< medians
  bool tie{};                     ///< from the lower to the upper quartile, the times overlap
};
/// Only sizes at which both were measured count.
std::vector<Comparison> compared(std::span<const Point>);
/// '#' lines; "" if no rival was measured.
std::string against(std::span<const Point>);

std::string csv_header();
std::string csv_line(const Settings&, const Point&);
/// `complete`: whether the sweep has finished. `idle_watts`: what --energy has subtracted. `elsewhere`: of --published.
/// `machine`: the simulated one, for its `defaults`; null: a device was measured.
sdma::json::Json to_json(const Settings&, std::string_view device, std::span<const Point>, bool complete,
                         std::optional<double> idle_watts = {}, std::span<const Elsewhere> elsewhere = {},
                         const sdma::MachineDescription* machine = nullptr);
/// "" if there are no points. What was measured elsewhere has curves of its own in the second plot.
std::string plot_svg(const Settings&, std::string_view device, std::span<const Point>, std::span<const Elsewhere> = {});

}  // namespace collectives::perf
