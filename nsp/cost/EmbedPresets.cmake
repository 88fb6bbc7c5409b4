# presets/*.json become string literals in a generated source: presets() needs no file at run time.
file(GLOB _presets CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/presets/*.json)
set(_literals "")
foreach(_preset IN LISTS _presets)
  file(READ ${_preset} _text)
  string(APPEND _literals "    R\"json(${_text})json\",\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_preset})
endforeach()
set(NSP_PRESETS_CPP ${CMAKE_CURRENT_BINARY_DIR}/presets.cpp)
file(CONFIGURE OUTPUT ${NSP_PRESETS_CPP} @ONLY CONTENT [[
#include "nsp/cost/profile.h"

namespace nsp {
namespace {

constexpr const char* kPresets[] = {
@_literals@};

std::vector<Profile> parse_presets() {
  std::vector<Profile> profiles;
  for (const char* text : kPresets) {
    profiles.push_back(profile_from_json(parse_json(text, "profile preset"), "profile preset"));
  }
  return profiles;
}

}  // namespace

const std::vector<Profile>& profile_presets() {
  static const std::vector<Profile> presets = parse_presets();
  return presets;
}

}  // namespace nsp
]])
