// SPDX-License-Identifier: MIT
#pragma once
// Nodes by name: products, and link layouts that exist only in simulations.
//
//   auto ring = layout("ring:8");                     // Result<Topology, Diagnostic>
//
//   mi300x:8             a product's own node, 1 to 8 GPUs: mi300x, mi308x,
//                        mi325x, mi350x, mi355x; or mi250x, one module of two dies
//   mesh:16              a link from each GPU to each other
//   ring:8               a link to the next and to the previous GPU
//   switch:8x400G        a port of 400 Gbit/s a GPU into one switch: whatever enters or leaves a GPU shares its port
//   nodes:2x8            two nodes, each a mesh of 8 (Gpu::node); each GPU has a NIC of 400 Gbit/s, which
//                        reaches all GPUs of the other node: only queues of the network use it (docs/nodes.md)
//   nodes:2x8x200G       the same with other NICs
//   nodes:3+2            nodes that differ: of three GPUs, and of two; nodes:3+2x200G
//
//   mesh:16x100G         the raw rate of the links of a mesh or a ring, in
//                        Gbit/s; the default is MI300X's: 512, which is 64 GB/s
//
// The GPUs of built layouts are MI300X, so the parameters of share/machines/mi300x.json apply. With more peers than
// engines, peers share engines in turn. Two GPUs without a link cannot exchange bytes directly: a schedule for ring:8
// forwards them itself. The GPUs of a node share one host. Switches and NICs are links of type
// `other`; the parameters nic.flight_ns and nic.efficiency say what they cost.
//
// A pure function that allocates; any thread may call it. Errors: a Diagnostic with the names that there are.
#include "sdma/device/topology.hpp"

namespace sdma::inline v0 {

/// The most GPUs of a built layout: as many as a schedule can have.
inline constexpr std::uint32_t kMostLaidOut = 64;

/// A layout of each kind.
inline constexpr std::string_view kLayoutExamples[] = {"mi300x:8",      "mi308x:8",      "mi325x:8", "mi350x:8",
                                                       "mi355x:8",      "mi250x:2",      "mesh:16",  "ring:8",
                                                       "switch:8x400G", "nodes:2x8x400G"};

/// Could this be the name of a layout, rather than that of a file? True for "word:digits...".
bool names_layout(std::string_view) noexcept;

Result<Topology, Diagnostic> layout(std::string_view name);
/// NVIDIA GPUs as a CudaDevice presents them (cuda.hpp): six engines of five queues on each, and a link between all
/// pairs, whose rates are not known. For checks without the device: a machine may have fewer links or atomics.
Topology cuda_layout(std::uint32_t gpus);
/// The name of the layout that this topology is; empty if it is none, or one that was changed.
std::string layout_of(const Topology&);
/// What to write in place of `given`, which is neither a layout nor a file. `command` prints such files.
std::string node_hint(std::string_view given, std::string_view command);

}  // namespace sdma::inline v0
