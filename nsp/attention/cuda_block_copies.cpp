// The one kernel of our own. It is written in PTX, which the driver itself compiles (once a
// process, milliseconds), so that neither building nor running NSP needs a CUDA compiler.
#include <array>
#include <dlfcn.h>
#include <string>

#include <c10/cuda/CUDAStream.h>
#include <cuda.h>

#include "nsp/attention/copy_list.h"
#include "nsp/base/error.h"

namespace nsp {
namespace {

// copy_list.h in PTX: an entry is 48 bytes, 3072 is where `count` lies, 1024 and 256 are words of a
// tile and threads.
constexpr const char* kPtx = R"(
.version 7.0
.target sm_80
.address_size 64

.visible .entry nsp_copy_list(.param .align 8 .b8 list[3080])
{
  .reg .pred %stop;
  .reg .u32 %tile, %next, %count, %first, %word, %end, %words, %width, %row, %column, %thread;
  .reg .b32 %a, %b, %c, %d;
  .reg .u64 %entry, %from, %to, %from_pitch, %to_pitch, %wide_row, %offset, %source, %target;

  // entry: the last whose first tile is at most this one
  mov.u32 %tile, %ctaid.x;
  ld.param.u32 %count, [list+3072];
  mov.u64 %entry, list;
  mov.u32 %next, 1;
find:
  setp.ge.u32 %stop, %next, %count;
  @%stop bra found;
  ld.param.u32 %first, [%entry+88];  // of the next entry
  setp.gt.u32 %stop, %first, %tile;
  @%stop bra found;
  add.u64 %entry, %entry, 48;
  add.u32 %next, %next, 1;
  bra find;

found:
  ld.param.u64 %from, [%entry];
  ld.param.u64 %to, [%entry+8];
  ld.param.u64 %from_pitch, [%entry+16];
  ld.param.u64 %to_pitch, [%entry+24];
  ld.param.u32 %width, [%entry+32];
  ld.param.u32 %words, [%entry+36];
  ld.param.u32 %first, [%entry+40];
  cvta.to.global.u64 %from, %from;
  cvta.to.global.u64 %to, %to;

  // word: this thread's first of the tile; end: behind its last
  mov.u32 %thread, %tid.x;
  sub.u32 %word, %tile, %first;
  shl.b32 %word, %word, 10;
  add.u32 %end, %word, 1024;
  min.u32 %end, %end, %words;
  add.u32 %word, %word, %thread;
copy:
  setp.ge.u32 %stop, %word, %end;
  @%stop bra done;
  div.u32 %row, %word, %width;
  mul.lo.u32 %column, %row, %width;
  sub.u32 %column, %word, %column;
  mul.wide.u32 %offset, %column, 16;
  cvt.u64.u32 %wide_row, %row;
  mad.lo.u64 %source, %wide_row, %from_pitch, %offset;
  add.u64 %source, %source, %from;
  ld.global.v4.b32 {%a, %b, %c, %d}, [%source];
  mad.lo.u64 %target, %wide_row, %to_pitch, %offset;
  add.u64 %target, %target, %to;
  st.global.v4.b32 [%target], {%a, %b, %c, %d};
  add.u32 %word, %word, 256;
  bra copy;
done:
  ret;
}
)";
static_assert(CopyList::kThreads == 256 && CopyList::kTileWords == 1024);

struct Launcher {
  decltype(&cuCtxGetCurrent) current_context = nullptr;
  decltype(&cuLaunchKernel) launch = nullptr;
  CUkernel kernel = nullptr;  // of every device; null: the driver cannot
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Launcher load() {
  Launcher result;
  decltype(&cuLibraryLoadData) load_library = nullptr;
  decltype(&cuLibraryGetKernel) get_kernel = nullptr;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  if (driver != nullptr && find(driver, "cuCtxGetCurrent", result.current_context) &&
      find(driver, "cuLaunchKernel", result.launch) &&
      find(driver, "cuLibraryLoadData", load_library) &&
      find(driver, "cuLibraryGetKernel", get_kernel) &&
      load_library(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS &&
      get_kernel(&kernel, library, "nsp_copy_list") == CUDA_SUCCESS) {
    result.kernel = kernel;
  }
  return result;
}

// The driver's calls need a context on this thread; a call of the runtime gives it one.
void ensure_context(const Launcher& launcher, const c10::cuda::CUDAStream& stream) {
  CUcontext context = nullptr;
  if (launcher.current_context(&context) != CUDA_SUCCESS || context == nullptr) {
    stream.query();
  }
}

const Launcher& launcher(const c10::cuda::CUDAStream& stream) {
  static const Launcher loaded = [&] {
    stream.query();
    return load();
  }();
  return loaded;
}

}  // namespace

bool launch_copies(std::span<const BlockCopy> blocks, at::Device device) {
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream(device.index());
  const Launcher& ours = launcher(stream);
  if (ours.kernel == nullptr) {
    return false;
  }
  ensure_context(ours, stream);
  CopyList list;
  while (!blocks.empty()) {
    blocks = blocks.subspan(fill(list, blocks));
    if (list.tiles > 0) {
      std::array<void*, 1> parameters = {&list};
      const CUresult result = ours.launch(reinterpret_cast<CUfunction>(ours.kernel),
                                          list.tiles,
                                          1,
                                          1,
                                          CopyList::kThreads,
                                          1,
                                          1,
                                          0,
                                          stream.stream(),
                                          parameters.data(),
                                          nullptr);
      if (result != CUDA_SUCCESS) {
        throw Error("copying rows on " + device.str() + " failed: CUDA driver error " +
                    std::to_string(static_cast<int>(result)));
      }
    }
  }
  return true;
}

}  // namespace nsp
