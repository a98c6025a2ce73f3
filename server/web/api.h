// The data of the web pages, as JSON. Each function answers one address below /api for one reader, and shows no more
// than the RPC that the address corresponds to (docs/design/service.md#web-pages). Texts in the JSON may come from
// callers; pages insert them as text, never as markup.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/services/services.h"
#include "server/web/curves.h"
#include "server/web/drawings.h"

namespace wl {

using WebJson = nlohmann::ordered_json;

struct WebQuery {
  Reader reader;
  std::vector<std::string> parts;                 // the parts of the path that match a * of the route's pattern
  std::map<std::string, std::string> parameters;  // the parameters of the URL's query, by name
};

// The sources from which the functions of the API read.
struct WebData {
  explicit WebData(const Serving& serving_in)
      : serving(serving_in), curves(serving_in.store), drawings(&serving_in.engine->compiler()) {}
  const Serving serving;
  Curves curves;
  Drawings drawings;
};

// The function that answers an address. InvalidArgument: a parameter is wrong. NotFound: what is asked for does not
// exist, or not for this reader.
using WebAnswer = absl::StatusOr<WebJson>(WebData& data, const WebQuery& query);

WebAnswer jobs_json;    // jobs.cpp: the list of jobs, newest first; before=ID: only older ones
WebAnswer job_json;     // job.cpp: a job with its groups
WebAnswer curves_json;  // job.cpp: for every group of a job, the trials that were faster than all earlier ones
WebAnswer group_json;   // job.cpp: all trials of one group
// In kernels.cpp: compute and memory rates of the machine, and time, bytes and FLOPs of each kernel of a job.
WebAnswer kernels_json;
WebAnswer graph_json;       // kernels.cpp: the picture of a job's graph, and the reasons for its groups
WebAnswer workers_json;     // workers.cpp: the workers, and what each of them is measuring
WebAnswer records_json;     // records.cpp: the list of records, newest first; after=TOKEN: the next page
WebAnswer record_json;      // records.cpp: one record, by its digest
WebAnswer usage_json;       // usage.cpp: what programs ran, what tuning has saved, what it may save, what was missed
WebAnswer records_by_json;  // records.cpp: the models and machines that records can be listed by

// Returns a parameter as a number from `least` to `most`; `otherwise` if the parameter is absent.
absl::StatusOr<int64_t> number_parameter(const WebQuery& query, const std::string& name, int64_t least, int64_t most,
                                         int64_t otherwise);

WebJson outcomes_json(const OutcomeCounts& outcomes);
WebJson device_json(const Device& device);
WebJson number_or_null(double value);  // JSON's null if the value is not above 0, and so not known
WebJson summary_json(int64_t id, const Job& job);
WebJson record_row_json(const RecordRow& row);

}  // namespace wl
