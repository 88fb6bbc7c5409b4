#include "nsp/planner/search_state.h"

#include <gtest/gtest.h>

#include "cases.h"

namespace nsp {
namespace {

TEST(SearchState, KeepsMaximaOfTheTree) {
  SearchState state(4, 4);
  state.add({0, 2}, {.index = 0, .tokens = 7}, 10);  // slices 3 and 4
  state.add({2, 1}, {.index = 1, .tokens = 5}, 30);
  EXPECT_EQ(state.cost({0, 1}), 10);
  EXPECT_EQ(state.cost({0, 4}), 30);
  EXPECT_EQ(state.tokens({0, 1}), 3);
  EXPECT_EQ(state.tokens({1, 1}), 4);
  EXPECT_EQ(state.tokens({0, 2}), 4);
  EXPECT_EQ(state.tokens({0, 4}), 5);
  EXPECT_TRUE(state.active({0, 2}));
  EXPECT_FALSE(state.active({0, 1}));
  EXPECT_EQ(state.cost_max(), 30);
}

TEST(SearchState, FitsCountsTheLayoutsSlices) {
  SearchState state(2, 2);
  state.add({1, 1}, {.index = 0, .tokens = 1}, 1);
  // Sequence 2 of 5 tokens over two ranks: boundaries 0, 2, 5 -> slices 2 and 3; ranks hold 0
  // and 1.
  EXPECT_FALSE(state.fits({0, 2}, {.index = 2, .tokens = 5}, 3));
  // Sequence 1: boundaries 0, 3, 5 -> slices 3 and 2.
  EXPECT_TRUE(state.fits({0, 2}, {.index = 1, .tokens = 5}, 3));
}

TEST(SearchState, SymmetricNodesAreOfferedOnce) {
  SearchState state(8, 4);  // two trees
  std::vector<Node> nodes;
  state.distinct_nodes(1, nodes);
  EXPECT_EQ(nodes, (std::vector<Node>{{0, 1}}));
  state.add({0, 1}, {.index = 0, .tokens = 8}, 5);
  state.distinct_nodes(1, nodes);  // itself, its sibling, a cousin, a rank of the other tree
  EXPECT_EQ(nodes, (std::vector<Node>{{0, 1}, {1, 1}, {2, 1}, {4, 1}}));
  state.distinct_nodes(4, nodes);
  EXPECT_EQ(nodes, (std::vector<Node>{{0, 4}, {4, 4}}));
}

TEST(SearchState, SignatureIsBlindToSiblingsOnly) {
  const Sequence sequence{.index = 0, .tokens = 8};
  SearchState left(4, 4);
  SearchState right(4, 4);
  SearchState far(4, 4);
  for (SearchState* state : {&left, &right, &far}) {
    state->add({0, 1}, sequence, 5);
  }
  left.add({1, 1}, sequence, 5);
  far.add({2, 1}, sequence, 5);
  EXPECT_NE(left.signature(), far.signature());
  SearchState mirrored(4, 4);
  mirrored.add({3, 1}, sequence, 5);
  EXPECT_EQ(right.signature(), mirrored.signature());
}

}  // namespace
}  // namespace nsp
