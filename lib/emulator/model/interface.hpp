// SPDX-License-Identifier: MIT
#pragma once
// The model interface of libhsakmt, version 0.4: a library that replaces the kernel driver and executes queues.
//
//   HSA_MODEL_TOPOLOGY=DIR HSA_MODEL_LIB=/.../libsdma-model.so PROGRAM
//
//   libhsakmt -> get_hsakmt_model_functions() -> for each GPU: create, set_global_aperture, set_set_event
//                    alloced_memory, register_queue ... destroy_queue, freed_memory
//
//   CPU  base                                base + address                      base + size
//        |  aperture: one reservation per GPU  | pages that this GPU has mapped |   |
//   GPU  0                                   address                             size
//
// The names, the order and the types are those of libhsakmt's hsakmtmodeliface.h, because this is a binary interface.
// What its client does besides: it announces an allocation only to the model of the GPU that owns it, but maps it into
// the aperture of every GPU that may access it; it passes GPU addresses where a pointer is declared (alloced_memory,
// freed_memory); it leaves `doorbell` null, so that only the write pointer in memory tells of new packets; it takes a
// queue that is null for a free slot; and it never calls destroy, set_notify_event and set_wait_event.
//
// Plain C types.
#include <cstdint>

extern "C" {

struct hsakmt_model;
struct hsakmt_model_queue;

/// The addresses are the GPU's, relative to the aperture.
struct hsakmt_model_queue_info {
  std::uint64_t ring_base_address;
  std::uint64_t write_pointer_address;  ///< of a 64-bit word: bytes since the queue's first use for SDMA
  std::uint64_t read_pointer_address;
  std::uint64_t* doorbell;   ///< an address of the program, or null
  std::uint32_t ring_size;   ///< in bytes
  std::uint32_t queue_type;  ///< the number that CREATE_QUEUE of the kernel's interface has
};

typedef void (*hsakmt_model_set_event_fn)(void* data, unsigned event_id);

struct hsakmt_model_functions {
  std::uint32_t version_major, version_minor;
  hsakmt_model* (*create)();
  void (*destroy)(hsakmt_model*);
  /// GPU address 0 is at `base`.
  void (*set_global_aperture)(hsakmt_model*, void* base, std::uint64_t size);
  void (*alloced_memory)(hsakmt_model*, void* address, std::uint64_t size, std::uint32_t flags);
  void (*freed_memory)(hsakmt_model*, void* address, std::uint64_t size);
  void (*set_notify_event)(hsakmt_model*, void (*)(void* data), void* data);
  void (*set_wait_event)(hsakmt_model*, void (*)(void* data, std::uint64_t address, std::uint64_t age), void* data);
  /// Null if there cannot be such a queue.
  hsakmt_model_queue* (*register_queue)(hsakmt_model*, hsakmt_model_queue_info*);
  void (*set_set_event)(hsakmt_model*, hsakmt_model_set_event_fn, void* data);
  /// Returns once the engine accesses neither ring nor data any more. Does not drain.
  void (*destroy_queue)(hsakmt_model*, hsakmt_model_queue*);
};

const hsakmt_model_functions* get_hsakmt_model_functions();
}
