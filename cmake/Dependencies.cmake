# Header-only libraries: from the system, or from the git-ignored folder .deps that tools/fetch_deps.sh fills.
set(NSP_DEPS ${PROJECT_SOURCE_DIR}/.deps CACHE PATH "folder with header-only libraries, laid out like /")
set(_hints ${NSP_DEPS}/usr/include)

# nsp_header(<target> <header>): an interface target for the folder that holds <header>.
function(nsp_header target header)
  find_path(${target}_DIR NAMES ${header} HINTS ${_hints})
  if(NOT ${target}_DIR)
    message(FATAL_ERROR "${header} not found; run tools/fetch_deps.sh or install its Debian package")
  endif()
  add_library(deps_${target} INTERFACE)
  target_include_directories(deps_${target} SYSTEM INTERFACE ${${target}_DIR})
  add_library(deps::${target} ALIAS deps_${target})
endfunction()

nsp_header(json nlohmann/json.hpp)
nsp_header(cli11 CLI/CLI.hpp)
nsp_header(fmt fmt/format.h)
nsp_header(xxhash xxhash.h)
nsp_header(zlib zlib.h)
target_compile_definitions(deps_fmt INTERFACE FMT_HEADER_ONLY=1)
target_compile_definitions(deps_xxhash INTERFACE XXH_INLINE_ALL=1)
# Every Debian and Ubuntu has the library (dpkg needs it); only its header is a development package.
# (A static libz.a beside the header is not position independent: never that one.)
find_library(NSP_ZLIB NAMES libz.so.1 libz.so)
if(NOT NSP_ZLIB)
  message(FATAL_ERROR "libz.so.1 not found; install zlib1g")
endif()
target_link_libraries(deps_zlib INTERFACE ${NSP_ZLIB})
