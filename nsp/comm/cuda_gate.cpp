#include <array>
#include <cstdlib>
#include <string_view>

#include <ATen/ops/empty.h>

#include "nsp/comm/cuda_driver.h"
#include "nsp/comm/gate.h"

namespace nsp {

void Gate::open(const c10::Stream& communication) {
  if (!words_.defined()) {
    words_ = at::empty({2}, at::TensorOptions().dtype(at::kInt).device(communication.device()));
  }
  words_.fill_(1);
  opened_ = events_.record(communication);
}

void Gate::hold(const c10::Stream& compute) {
  opened_->block(compute);
  const WordOperation write{
      .kind = WordOperation::Kind::kWrite, .word = words_.data_ptr(), .value = 1};
  run_on(compute, std::array<WordOperation, 2>{write, write});
}

bool wants_gate() {
  const char* value = std::getenv("NSP_NCCL_GATE");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace nsp
