-- What wrk sends: POSTs of one JSON body, each with a phone number of its own.
--
--   wrk … URL -- PATH BODY SEED POPULATION
--
-- The word PHONE in BODY stands for the number. With POPULATION 0 every request draws a new number at random. With
-- another, the requests go to the numbers that so many requests of the same SEED went to, in another order, over and
-- over: a send makes codes that way, and the wrong guesses that follow find them.
--
-- There is no response callback here: it would cost the client about a third of its speed.

local parts, draw

local function phone_number()
  return string.format("91%010d", math.random(0, 9999999999))
end

-- The numbers of an earlier run, in an order unlike that of their rows.
local function earlier_numbers(population)
  -- wrk asks for one request before it starts, and does not send it.
  phone_number()
  local numbers = {}
  for i = 1, population do
    numbers[i] = phone_number()
  end
  for i = population, 2, -1 do
    local j = math.random(i)
    numbers[i], numbers[j] = numbers[j], numbers[i]
  end
  return numbers
end

function init(args)
  local path, body, seed, population = args[1], args[2], tonumber(args[3]), tonumber(args[4])
  local before, after = body:match("^(.*)PHONE(.*)$")
  local head = string.format(
    "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
    path, wrk.headers["Host"], #before + 12 + #after
  )
  parts = { head .. before, after }
  math.randomseed(seed)
  if population == 0 then
    draw = phone_number
  else
    local numbers = earlier_numbers(population)
    local next_index = 0
    draw = function()
      next_index = next_index % population + 1
      return numbers[next_index]
    end
  end
end

function request()
  return parts[1] .. draw() .. parts[2]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"seconds":%.6f,"p50Ms":%.3f,"p99Ms":%.3f,"maxMs":%.3f,"above399":%d,"broken":%d}\n',
    summary.requests, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout
  ))
end
