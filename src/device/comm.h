// What ranks tell each other. Every collective moves values and adds none: tensor-parallel products
// are cut by output rows and gathered, so that a sum is made by one rank, in one order, and any
// number of ranks gives the same bits as one (docs/decisions/0002).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tensor/view.h"

namespace bascule {

// One rank's end. All ranks of a group call the same collectives in the same order; each call
// returns when this rank may read what it was promised and overwrite what it gave.
class Comm {
 public:
  virtual ~Comm() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // `all` is [n_rows, row bytes], the same shape everywhere; rank r has filled the bytes
  // [first[r], first[r + 1]) of each row. Afterwards every rank has whole rows. first: [size + 1].
  virtual void gather_columns(View<std::byte, 2> all, std::span<const int64_t> first) = 0;

  // `all` is [n_rows, row bytes]; rank r has filled rows [first[r], first[r + 1]). Afterwards every
  // rank has every row. first: [size + 1].
  virtual void gather_rows(View<std::byte, 2> all, std::span<const int64_t> first) = 0;

  // rows[i] is filled on rank owner[i]; -1: nobody is asked for it. Afterwards this rank has rows
  // [begin, end). All ranks agree on the owners of the rows they ask for; ranges may overlap.
  virtual void collect_rows(View<float, 2> rows, View<const int32_t, 1> owner, int64_t begin,
                            int64_t end) = 0;
};

// Ranks that are threads of this process and share its memory: element r is rank r's end.
std::vector<std::unique_ptr<Comm>> make_local_comms(int size);

}  // namespace bascule
