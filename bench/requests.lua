-- What wrk sends: one HTTP request over and over, each with a phone number of its own.
--
--   wrk … URL -- REQUEST SEED POPULATION
--
-- The number replaces the word PHONE_NUMBER in REQUEST. With POPULATION 0 every request draws a new number at random.
-- With another, the requests go to the numbers that so many requests of the same SEED went to, in another order, over
-- and over: a send makes codes that way, and the wrong guesses that follow find them.
-- There is no response callback here: it would cost the client about a third of its speed.

local before, after, draw

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
  local text, seed, population = args[1], tonumber(args[2]), tonumber(args[3])
  before, after = text:match("^(.*)PHONE_NUMBER(.*)$")
  math.randomseed(seed)
  if not before then
    before, after = text, ""
    draw = function() return "" end
  elseif population == 0 then
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
  return before .. draw() .. after
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"seconds":%.6f,"p50Ms":%.3f,"p99Ms":%.3f,"above399":%d,"broken":%d}\n',
    summary.requests, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout
  ))
end
