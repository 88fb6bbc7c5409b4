#include "nsp/base/json.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <vector>

#include "nsp/base/error.h"

namespace nsp {
namespace {

constexpr int kMaxDepth = 64;  // messages print values by recursion

}  // namespace

Json parse_json(std::string_view text, std::string_view what) {
  // The library keeps the last of repeated fields silently; a plan edited by hand must not lose one
  // so.
  std::vector<std::set<std::string>> open_objects;
  const auto refuse = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) {
      throw BadInput(std::string(what) + ": nested deeper than " + std::to_string(kMaxDepth) +
                     " levels; give a document of this project's formats");
    }
    if (event == Json::parse_event_t::object_start) {
      open_objects.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      open_objects.pop_back();
    } else if (event == Json::parse_event_t::key &&
               !open_objects.back().insert(parsed.get<std::string>()).second) {
      throw BadInput(std::string(what) + ": field '" + parsed.get<std::string>() +
                     "' stands twice; keep one");
    }
    return true;
  };
  try {
    return Json::parse(text, refuse);
  } catch (const Json::exception& error) {
    throw BadInput(std::string(what) + ": not valid JSON: " + error.what());
  }
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  if (!(text << std::ifstream(path, std::ios::binary).rdbuf())) {
    throw BadInput(path + ": cannot be read; give the path of an existing, non-empty file");
  }
  return text.str();
}

Json load_json(const std::string& path) {
  return parse_json(read_file(path), path);
}

void write_file(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) {
    throw Error(path + ": cannot be written");
  }
}

JsonReader::JsonReader(const Json& object,
                       std::string where,
                       std::initializer_list<std::string_view> fields)
    : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) {
    throw BadInput(where_ + ": must be a JSON object");
  }
  for (const auto& item : object_.items()) {
    if (std::find(fields.begin(), fields.end(), item.key()) == fields.end()) {
      throw BadInput(where_ + ": unknown field '" + item.key() + "'");
    }
  }
}

bool JsonReader::has(std::string_view field) const {
  return object_.contains(field);
}

const Json& JsonReader::at(std::string_view field) const {
  const auto it = object_.find(field);
  if (it == object_.end()) {
    throw BadInput(where_ + ": field '" + std::string(field) + "' is missing");
  }
  return *it;
}

std::string JsonReader::where(std::string_view field) const {
  return where_ + "." + std::string(field);
}

const Json& JsonReader::array(std::string_view field) const {
  const Json& value = at(field);
  if (!value.is_array()) {
    throw BadInput(where(field) + ": must be an array");
  }
  return value;
}

std::int64_t JsonReader::integer(std::string_view field) const {
  const Json& value = at(field);
  const bool wraps = value.is_number_unsigned() &&
                     value.get<std::uint64_t>() >
                         static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_number_integer() || wraps) {
    throw BadInput(where(field) +
                   (wraps ? ": must be below 2^63, not " : ": must be an integer, not ") +
                   value.dump());
  }
  return value.get<std::int64_t>();
}

double JsonReader::number(std::string_view field) const {
  const Json& value = at(field);
  if (!value.is_number()) {
    throw BadInput(where(field) + ": must be a number, not " + value.dump());
  }
  return value.get<double>();
}

bool JsonReader::boolean(std::string_view field) const {
  const Json& value = at(field);
  if (!value.is_boolean()) {
    throw BadInput(where(field) + ": must be true or false, not " + value.dump());
  }
  return value.get<bool>();
}

std::string JsonReader::text(std::string_view field) const {
  const Json& value = at(field);
  if (!value.is_string()) {
    throw BadInput(where(field) + ": must be a string, not " + value.dump());
  }
  return value.get<std::string>();
}

}  // namespace nsp
