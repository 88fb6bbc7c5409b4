# Imported targets for the torch of the Python in use. Torch's own package config demands a CUDA
# toolkit whenever the wheel is a CUDA build; the host-only part of NSP needs none.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c "
import importlib.util, importlib.metadata, os
spec = importlib.util.find_spec('torch')
print(os.path.dirname(spec.origin) if spec else '', importlib.metadata.version('torch') if spec else '', sep=';', end='')"
  OUTPUT_VARIABLE torch RESULT_VARIABLE failed)
list(GET torch 0 TORCHWHEEL_DIR)
list(GET torch 1 TORCHWHEEL_VERSION)
if(failed OR NOT EXISTS "${TORCHWHEEL_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "${Python_EXECUTABLE} has no torch; install it first and build with --no-build-isolation")
endif()
message(STATUS "torch ${TORCHWHEEL_VERSION} at ${TORCHWHEEL_DIR}")
foreach(library c10 torch_cpu torch_python)
  add_library(torchwheel::${library} SHARED IMPORTED)
  set_target_properties(torchwheel::${library} PROPERTIES
    IMPORTED_LOCATION "${TORCHWHEEL_DIR}/lib/lib${library}.so"
    INTERFACE_INCLUDE_DIRECTORIES "${TORCHWHEEL_DIR}/include;${TORCHWHEEL_DIR}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "_GLIBCXX_USE_CXX11_ABI=1;USE_DISTRIBUTED;USE_C10D_GLOO")
endforeach()
set_property(TARGET torchwheel::torch_cpu PROPERTY INTERFACE_LINK_LIBRARIES torchwheel::c10)
set_property(TARGET torchwheel::torch_python PROPERTY INTERFACE_LINK_LIBRARIES torchwheel::torch_cpu)
