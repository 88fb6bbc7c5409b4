#include "nsp/comm/cuda_driver.h"

#include <algorithm>
#include <dlfcn.h>
#include <fmt/format.h>
#include <vector>

#include <c10/cuda/CUDAStream.h>
#include <cuda.h>

#include "nsp/base/error.h"

namespace nsp {
namespace {

constexpr std::size_t kMostOperations = 255;  // of one cuStreamBatchMemOp

// Entry points by the version of CUDA whose signature is declared in cuda.h.
struct Driver {
  decltype(&cuGetErrorString) error_string = nullptr;
  decltype(&cuCtxGetStreamPriorityRange) priority_range = nullptr;
  decltype(&cuStreamCreateWithPriority) make_stream = nullptr;
  decltype(&cuStreamBatchMemOp) memory_operations = nullptr;
  decltype(&cuMemcpy2DAsync) copy_rows = nullptr;
  decltype(&cuMemcpy3DBatchAsync) copy_batch = nullptr;  // none before CUDA 13: one call a copy
};

template <class Function>
void find(decltype(&cuGetProcAddress) get, const char* name, int version, Function& function) {
  void* address = nullptr;
  const CUresult result =
      get(name, &address, version, CU_GET_PROC_ADDRESS_DEFAULT, /*symbolStatus=*/nullptr);
  function = reinterpret_cast<Function>(result == CUDA_SUCCESS ? address : nullptr);
}

template <class Function>
void require(decltype(&cuGetProcAddress) get, const char* name, Function& function) {
  find(get, name, 12000, function);
  if (function == nullptr) {
    throw Error(
        fmt::format("peer copies: the CUDA driver has no {}; update it, or use "
                    "NSP_TRANSPORT=collective",
                    name));
  }
}

Driver load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto get = reinterpret_cast<decltype(&cuGetProcAddress)>(
      library == nullptr ? nullptr : dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) {
    throw Error(
        "peer copies: libcuda.so.1 of CUDA 12 or newer was not found; use "
        "NSP_TRANSPORT=collective");
  }
  Driver driver;
  require(get, "cuGetErrorString", driver.error_string);
  require(get, "cuCtxGetStreamPriorityRange", driver.priority_range);
  require(get, "cuStreamCreateWithPriority", driver.make_stream);
  require(get, "cuStreamBatchMemOp", driver.memory_operations);
  require(get, "cuMemcpy2DAsync", driver.copy_rows);
  find(get, "cuMemcpy3DBatchAsync", 13000, driver.copy_batch);
  return driver;
}

const Driver& driver() {
  static const Driver loaded = load();
  return loaded;
}

void expect(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) {
    const char* text = nullptr;
    driver().error_string(result, &text);
    throw Error(fmt::format("peer copies: {} failed: {} ({})",
                            what,
                            text == nullptr ? "unknown error" : text,
                            static_cast<int>(result)));
  }
}

CUstream handle(const c10::Stream& stream) {
  return static_cast<CUstream>(stream.native_handle());
}

CUdeviceptr address(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

CUstreamBatchMemOpParams parameters(const WordOperation& operation) {
  CUstreamBatchMemOpParams result{};
  if (operation.kind == WordOperation::Kind::kWait) {
    result.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    result.waitValue.address = address(operation.word);
    result.waitValue.value = operation.value;
    result.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  } else {
    result.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    result.writeValue.address = address(operation.word);
    result.writeValue.value = operation.value;
    result.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  }
  return result;
}

CUmemcpy3DOperand operand(const void* pointer, std::size_t pitch) {
  CUmemcpy3DOperand result{};
  result.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  result.op.ptr.ptr = address(pointer);
  result.op.ptr.rowLength = pitch;  // in elements, which are bytes here
  return result;
}

void copy_as_batch(CUstream stream, std::span<const RowCopy> copies) {
  std::vector<CUDA_MEMCPY3D_BATCH_OP> operations;
  operations.reserve(copies.size());
  for (const RowCopy& copy : copies) {
    CUDA_MEMCPY3D_BATCH_OP& operation = operations.emplace_back();
    operation = {};
    operation.src = operand(copy.from, copy.from_pitch);
    operation.dst = operand(copy.to, copy.to_pitch);
    operation.extent = {.width = copy.width, .height = copy.rows, .depth = 1};
    operation.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    operation.flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
  }
  expect(driver().copy_batch(operations.size(), operations.data(), 0, stream),
         "cuMemcpy3DBatchAsync");
}

void copy_one(CUstream stream, const RowCopy& copy) {
  CUDA_MEMCPY2D operation{};
  operation.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  operation.srcDevice = address(copy.from);
  operation.srcPitch = copy.from_pitch;
  operation.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  operation.dstDevice = address(copy.to);
  operation.dstPitch = copy.to_pitch;
  operation.WidthInBytes = copy.width;
  operation.Height = copy.rows;
  expect(driver().copy_rows(&operation, stream), "cuMemcpy2DAsync");
}

}  // namespace

c10::Stream make_own_stream(at::Device device) {
  int least = 0;
  int greatest = 0;
  expect(driver().priority_range(&least, &greatest), "cuCtxGetStreamPriorityRange");
  CUstream stream = nullptr;
  expect(driver().make_stream(&stream, CU_STREAM_NON_BLOCKING, greatest),
         "cuStreamCreateWithPriority");
  return c10::cuda::getStreamFromExternal(stream, device.index()).unwrap();
}

void run_on(const c10::Stream& stream, std::span<const WordOperation> operations) {
  std::vector<CUstreamBatchMemOpParams> batch;
  while (!operations.empty()) {
    const auto now = operations.first(std::min(operations.size(), kMostOperations));
    batch.clear();
    for (const WordOperation& operation : now) {
      batch.push_back(parameters(operation));
    }
    expect(driver().memory_operations(
               handle(stream), static_cast<unsigned>(batch.size()), batch.data(), 0),
           "cuStreamBatchMemOp");
    operations = operations.subspan(now.size());
  }
}

void copy_on(const c10::Stream& stream, std::span<const RowCopy> copies) {
  if (copies.empty()) {
    return;
  }
  if (driver().copy_batch != nullptr) {
    copy_as_batch(handle(stream), copies);
    return;
  }
  for (const RowCopy& copy : copies) {
    copy_one(handle(stream), copy);
  }
}

}  // namespace nsp
