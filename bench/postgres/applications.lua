-- What wrk sends where the requests are of many applications: those of requests.lua, of a hundred in turns. The names are
-- as long as the one they stand for, so that the length of the body stays true.

dofile(debug.getinfo(1, "S").source:match("^@(.*)postgres/") .. "requests.lua")

local request_of_one = request
local turn = 0

function request()
  turn = (turn + 1) % 100
  return (request_of_one():gsub('"appId":"bench"', string.format('"appId":"app%02d"', turn), 1))
end
