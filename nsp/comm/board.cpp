#include "nsp/comm/board.h"

#include <utility>

namespace nsp {

Board::Board(c10::intrusive_ptr<c10d::Store> store, const std::string& name, std::int32_t rank)
    : store_(std::move(store)), prefix_("nsp/" + name + "/board/"), rank_(rank) {}

void Board::beat(const std::string& text) {
  store_->set(prefix_ + std::to_string(rank_), text);
}

std::optional<std::string> Board::last_beat(std::int32_t rank) {
  return find(std::to_string(rank));
}

std::string Board::first(const std::string& key, const std::string& why) {
  return store_->compareSet(prefix_ + key, "", why);
}

// get() alone would wait for a key that is not there.
std::optional<std::string> Board::find(const std::string& key) {
  if (!store_->check({prefix_ + key})) {
    return std::nullopt;
  }
  return store_->get_to_str(prefix_ + key);
}

}  // namespace nsp
