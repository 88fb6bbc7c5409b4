// What the ranks of one context tell each other through the job's store: the first failure, ranks
// that are gone, and a sign of life of each. No collective and no device, so that it works when
// those do not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace nsp {

// Every rank uses the same name. All calls throw what the store throws when it is gone.
class Board {
 public:
  // The store is this board's alone: a call that blocks holds up its other users.
  Board(c10::intrusive_ptr<c10d::Store> store, const std::string& name, std::int32_t rank);

  // Posts a failure unless one is there; returns the one that was first.
  std::string fail(const std::string& why) { return first("failure", why); }
  std::optional<std::string> failure() { return find("failure"); }
  // The same for a rank that ended or does not answer: it matters only to ranks that wait for it.
  std::string lose(const std::string& why) { return first("lost", why); }
  std::optional<std::string> lost() { return find("lost"); }

  void beat(const std::string& text);
  // What a rank said last, if it ever did.
  std::optional<std::string> last_beat(std::int32_t rank);

 private:
  std::string first(const std::string& key, const std::string& why);
  std::optional<std::string> find(const std::string& key);

  c10::intrusive_ptr<c10d::Store> store_;
  std::string prefix_;
  std::int32_t rank_;
};

}  // namespace nsp
