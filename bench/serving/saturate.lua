-- Requests from a file, in turn: a path, a tab, and the JSON body of a POST, which may be empty.
local requests, at = {}, 0

function init()
  wrk.headers["Content-Type"] = "application/json"
  for line in io.lines(os.getenv("REQUESTS")) do
    local path, body = line:match("^([^\t]*)\t(.*)$")
    if body == "" then
      requests[#requests + 1] = wrk.format("GET", path)
    else
      requests[#requests + 1] = wrk.format("POST", path, nil, body)
    end
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("counted %d %d %d\n", summary.requests, summary.duration, failed))
end
