# HiGHS, the MILP solver of the flexsp baseline: whole files are swapped. It comes as the Python package highsbox, whose
# own package config names files that the wheel does not have; its C++ interface uses another ABI, so only C is used.
# NSP_HIGHS=AUTO takes it where the Python in use has it; a folder (highs_dist of the package) insists; OFF never.
set(NSP_HIGHS AUTO CACHE STRING "HiGHS: AUTO, OFF, or the folder highs_dist of the package highsbox")

set(NSP_MILP_SOURCE no_milp.cpp)
set(NSP_MILP_LIBRARIES)
set(NSP_MILP_RPATH_MODULE) # of Python modules and of programs, once installed
set(NSP_MILP_RPATH_PROGRAM)
set(highs)
if(NSP_HIGHS STREQUAL AUTO)
  find_package(Python 3.10 QUIET COMPONENTS Interpreter)
  if(Python_Interpreter_FOUND)
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -c "
import importlib.util, os, sysconfig
spec = importlib.util.find_spec('highsbox')
if spec:
    highs = os.path.join(os.path.dirname(spec.origin), 'highs_dist')
    library = os.path.join(highs, 'lib')
    from_ = lambda *path: os.path.relpath(library, os.path.join(*path))
    print(highs, from_(sysconfig.get_path('platlib'), 'nsp'), from_(sysconfig.get_path('scripts')), sep=';', end='')"
      OUTPUT_VARIABLE found)
    if(found)
      list(GET found 0 highs)
      list(GET found 1 module)
      list(GET found 2 program)
      set(NSP_MILP_RPATH_MODULE "$ORIGIN/${module}")
      set(NSP_MILP_RPATH_PROGRAM "$ORIGIN/${program}")
    endif()
  endif()
elseif(NSP_HIGHS)
  set(highs "${NSP_HIGHS}")
endif()

if(highs)
  set(library "${highs}/lib/libhighs${CMAKE_SHARED_LIBRARY_SUFFIX}")
  if(NOT EXISTS "${library}" OR NOT EXISTS "${highs}/include/highs/interfaces/highs_c_api.h")
    message(FATAL_ERROR "NSP_HIGHS: ${highs} holds no HiGHS (include/highs, lib); use highs_dist of highsbox, or OFF")
  endif()
  message(STATUS "HiGHS: ${highs}")
  add_library(highs::highs SHARED IMPORTED)
  set_target_properties(highs::highs PROPERTIES
    IMPORTED_LOCATION "${library}"
    INTERFACE_INCLUDE_DIRECTORIES "${highs}/include/highs;${highs}/include")
  set(NSP_MILP_SOURCE milp_highs.cpp)
  set(NSP_MILP_LIBRARIES highs::highs)
  list(APPEND NSP_MILP_RPATH_MODULE "${highs}/lib") # where a package was installed elsewhere than expected
  list(APPEND NSP_MILP_RPATH_PROGRAM "${highs}/lib")
else()
  message(STATUS "HiGHS: no (planner flexsp is left out; pip install highsbox)")
endif()
