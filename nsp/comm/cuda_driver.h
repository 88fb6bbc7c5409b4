// The few calls of the CUDA driver that torch has no form for, found at run time: nothing of ours
// links to the driver. Streams are torch's or made here; their device is the current one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace nsp {

// A 32-bit word in device memory, this device's or a neighbour's: the stream writes `value` behind
// all earlier writes, or waits until the word is at least `value` (cyclically).
struct WordOperation {
  enum class Kind : std::uint8_t { kWrite, kWait };
  Kind kind = Kind::kWrite;
  void* word = nullptr;
  std::uint32_t value = 0;
};

// `rows` times `width` bytes; pitches in bytes from one row to the next. None of the three is 0.
struct RowCopy {
  const void* from = nullptr;
  std::size_t from_pitch = 0;
  void* to = nullptr;
  std::size_t to_pitch = 0;
  std::size_t width = 0;
  std::size_t rows = 0;
};

// A stream that nothing else uses, of the highest priority. Never given back: what waits on it may
// outlive its owner. Throws Error, as all here, when the driver refuses.
c10::Stream make_own_stream(at::Device device);

// In order, as one call.
void run_on(const c10::Stream& stream, std::span<const WordOperation> operations);

// In any order, by copy engines where the two sides are on different devices.
void copy_on(const c10::Stream& stream, std::span<const RowCopy> copies);

}  // namespace nsp
