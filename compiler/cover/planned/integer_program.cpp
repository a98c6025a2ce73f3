#include "compiler/cover/planned/integer_program.h"

#include <CbcEventHandler.hpp>
#include <CbcHeuristic.hpp>
#include <CbcModel.hpp>
#include <CglClique.hpp>
#include <CglGomory.hpp>
#include <CglMixedIntegerRounding2.hpp>
#include <CglZeroHalf.hpp>
#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <CoinError.hpp>
#include <OsiClpSolverInterface.hpp>
#include <algorithm>
#include <cmath>

namespace wl {
namespace {

constexpr double kWhole = 1e-6;
// The largest number of simplex iterations of one search, which then takes some seconds.
constexpr int kMostIterations = 200'000;
// The simplex iterations from one factorisation to the next count as this many steps of a Work.
constexpr uint64_t kFactorSteps = 100;
constexpr int kGoOn = -1, kStopSimplex = 5;  // return values of ClpEventHandler::event()

// Stops the simplex algorithm once its Work has ended. The solver copies this object.
class SimplexListener : public ClpEventHandler {
 public:
  explicit SimplexListener(Work* work) : work_(work) {}
  int event(Event event) override {
    return event == endOfFactorization && !go_on(work_, kFactorSteps) ? kStopSimplex : kGoOn;
  }
  ClpEventHandler* clone() const override { return new SimplexListener(*this); }

 private:
  Work* work_;
};

// Stops the branch-and-bound search once its Work has ended, or after too many simplex iterations.
class TreeListener : public CbcEventHandler {
 public:
  explicit TreeListener(Work* work) : work_(work) {}
  CbcAction event(CbcEvent) override {
    return model_->getIterationCount() > kMostIterations || !ended(work_).ok() ? stop : noAction;
  }
  CbcEventHandler* clone() const override { return new TreeListener(*this); }

 private:
  Work* work_;
};

// Returns the choices (0/1 variables) that are 1 at a point (the values of all variables). Sets `whole` to false if a
// choice has a fractional value there.
std::vector<int> chosen_at(const double* point, int choices, bool& whole) {
  std::vector<int> chosen;
  for (int i = 0; i < choices; ++i) {
    const double nearest = std::round(point[i]);
    whole = whole && std::fabs(point[i] - nearest) <= 1e-5;
    if (nearest > 0.5) chosen.push_back(i);
  }
  return chosen;
}

}  // namespace

int IntegerProgram::add_choice(double cost) {
  cost_.push_back(cost);
  return choices_++;
}

int IntegerProgram::add_share() {
  cost_.push_back(0);
  return static_cast<int>(cost_.size()) - 1;
}

void IntegerProgram::add_row(const std::vector<std::pair<int, double>>& terms, double low, double high) {
  for (const auto& [column, value] : terms) {
    column_.push_back(column);
    value_.push_back(value);
  }
  row_start_.push_back(static_cast<int>(column_.size()));
  low_.push_back(std::isinf(low) ? -COIN_DBL_MAX : low);
  high_.push_back(std::isinf(high) ? COIN_DBL_MAX : high);
}

void IntegerProgram::load(OsiClpSolverInterface& lp, Work* work) const {
  SimplexListener listener(work);
  lp.getModelPtr()->passInEventHandler(&listener);
  lp.messageHandler()->setLogLevel(0);
  lp.setHintParam(OsiDoReducePrint, true, OsiHintTry);
  const int columns = static_cast<int>(cost_.size());
  const std::vector<CoinBigIndex> starts(row_start_.begin(), row_start_.end());
  std::vector<int> lengths;
  for (size_t r = 0; r + 1 < row_start_.size(); ++r) lengths.push_back(row_start_[r + 1] - row_start_[r]);
  const CoinPackedMatrix matrix(/*colordered=*/false, columns, rows(), static_cast<CoinBigIndex>(column_.size()),
                                value_.data(), column_.data(), starts.data(), lengths.data());
  const std::vector<double> zeros(static_cast<size_t>(columns), 0), ones(static_cast<size_t>(columns), 1);
  lp.loadProblem(matrix, zeros.data(), ones.data(), cost_.data(), low_.data(), high_.data());
  for (int i = 0; i < choices_; ++i) lp.setInteger(i);
  lp.initialSolve();
}

std::optional<Relaxed> IntegerProgram::relaxed(Work* work) const {
  try {
    OsiClpSolverInterface lp;
    load(lp, work);
    if (!lp.isProvenOptimal()) return std::nullopt;
    return Relaxed{lp.getObjValue(), {lp.getRowPrice(), lp.getRowPrice() + rows()}};
  } catch (const CoinError&) {
    return std::nullopt;
  }
}

IntegerAnswer IntegerProgram::solve(double known, int max_nodes, Work* work) const {
  IntegerAnswer answer;
  try {
    OsiClpSolverInterface lp;
    load(lp, work);
    if (!lp.isProvenOptimal()) return answer;
    answer.bound = lp.getObjValue();
    bool whole = true;
    answer.chosen = chosen_at(lp.getColSolution(), choices_, whole);
    if (whole) {
      answer.any = true;
      return answer;
    }
    answer.chosen.clear();

    CbcModel model(lp);
    model.setLogLevel(0);
    model.messageHandler()->setLogLevel(0);
    model.solver()->messageHandler()->setLogLevel(0);
    CglClique clique;
    CglGomory gomory;
    CglMixedIntegerRounding2 rounding;
    CglZeroHalf halves;
    clique.setStarCliqueReport(false);
    clique.setRowCliqueReport(false);
    model.addCutGenerator(&clique, -1, "clique");
    model.addCutGenerator(&gomory, -1, "gomory");
    model.addCutGenerator(&rounding, -1, "rounding");
    model.addCutGenerator(&halves, -1, "halves");
    CbcRounding nearest(model);
    model.addHeuristic(&nearest);
    TreeListener listener(work);
    model.passInEventHandler(&listener);
    model.setMaximumNodes(max_nodes);
    model.setNumberThreads(0);
    model.setAllowableGap(1e-7 * std::max(1.0, known));
    model.setAllowableFractionGap(0);
    model.setIntegerTolerance(kWhole);
    model.setCutoff(known + 1e-7 * std::max(1.0, known));
    model.setMinimumDrop(std::min(1.0, std::fabs(model.getMinimizationObjValue()) * 1e-3 + 1e-4));
    model.branchAndBound();
    if (!ended(work).ok()) return {};
    const bool complete = model.isProvenOptimal() || model.isProvenInfeasible();
    const double best = model.bestSolution() != nullptr ? model.getObjValue() : known;
    answer.bound = std::max(answer.bound, complete ? std::min(best, known) : model.getBestPossibleObjValue());
    if (model.bestSolution() != nullptr) {
      whole = true;
      answer.chosen = chosen_at(model.bestSolution(), choices_, whole);
      answer.any = whole;
    }
  } catch (const CoinError&) {
    return {};
  }
  return answer;
}

}  // namespace wl
