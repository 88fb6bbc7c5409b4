// Lets the kernel of a collective onto the device before the compute that is issued after it:
// behind a resident attention kernel it would wait for that one's end.
//
//   communication   tiny kernel, event; the collective
//   compute         waits for the event, then two memory writes (a few us) before its next kernel
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "nsp/comm/device_events.h"

namespace nsp {

class Gate {
 public:
  // On the communication stream, which is the current one, just before the collective.
  void open(const c10::Stream& communication);
  // On the compute stream, after the collective was issued.
  void hold(const c10::Stream& compute);

 private:
  DeviceEvents events_;
  std::shared_ptr<c10::Event> opened_;
  at::Tensor words_;  // written, never read
};

// Whether NSP_NCCL_GATE=1 asks for gates and this build has them (it needs CUDA).
bool wants_gate();

}  // namespace nsp
