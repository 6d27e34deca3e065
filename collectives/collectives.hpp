// SPDX-License-Identifier: MIT
#pragma once
// All DMA collectives. They are clients of the SDK; no part of them is in the library.
//
//   Options o{.collective = Collective::all_gather, .gpus = 8, .bytes = 1 << 20};  options.hpp  the request
//   Variant v = choose(default_table(), o);                                        table.hpp    the best variant
//   auto p = plan(o);                                                              plan.hpp     schedule, notes, counts
//   auto r = Run::prepare(*p, device);                                             run.hpp      fill, start, wait
//   r->fill(1);
//   if (auto e = r->once(Deadline::in(10s)); !e) puts(to_string(e.error()).c_str());
//   if (auto c = r->check(); !c) puts(c.first.c_str());
//
// Link `collectives_dep` (meson). Nothing here prints, throws or exits. One thread at a time drives a Run; what else is
// here are plain values and pure functions. Errors are Diagnostics.
#include "options.hpp"
#include "plan.hpp"
#include "run.hpp"
#include "table.hpp"
