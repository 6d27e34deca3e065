// SPDX-License-Identifier: MIT
#pragma once
// A sweep for other programs: CSV, one line per row, and JSON, written as a whole.
//
//   collective,gpus,device,order,size,count,type,variant,ran,time_us,min_us,median_us,max_us,algbw_gbps,busbw_gbps,
//   wrong,notes,q1_us,q3_us,joules,nj_per_byte,watts,beside_us,gemm_alone_tflops,gemm_tflops,sweep
//   all_gather,8,soft,strict,65536,8192,uint8,b2b+pl,b2b,41.2,39.9,41,44.1,1.59,1.39,0,,40.2,42,,,,,,,
//
//   {"program":"collective_perf", ..., "complete":true, "points":[{"size":65536, ...}], "best":[{"from":..}]}
//
// What was not measured or verified is empty (CSV) or null (JSON). Text follows RFC 4180 and RFC 8259. Pure functions.
#include "elsewhere.hpp"

#include <string>
#include <string_view>

namespace collectives::perf {

std::string csv_header();
std::string csv_line(const Settings&, const Point&);
/// `complete`: whether the sweep has finished. `idle_watts`: what --energy has subtracted. `elsewhere`: of --published.
std::string to_json(const Settings&, std::string_view device, std::span<const Point>, bool complete,
                    std::optional<double> idle_watts = {}, std::span<const Elsewhere> elsewhere = {});

}  // namespace collectives::perf
